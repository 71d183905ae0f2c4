package cuda

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestDevicePrograms has the Python programs that tests/gpu runs on a device, on the fake driver:
// the host computes what their kernels would.
func TestDevicePrograms(t *testing.T) {
	const python = "/usr/bin/python3"
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		testlib.Lacks(t, "NumPy for "+python)
	}
	right := regexp.MustCompile(`^[1-9][0-9]* .*right\n$`) // what run.sh looks for
	for _, c := range []string{"examples.py properties", "examples.py functions",
		"examples.py batch", "examples.py together",
		"manager.py chunks host 8", "manager.py limit host 8", "manager.py eviction host 8"} {
		t.Run(c, func(t *testing.T) {
			args := strings.Fields(c)
			if len(args) == 2 {
				args = append(args, "host")
			}
			args[0] = filepath.Join("..", "gpu", args[0])
			env := []string{"PYTHONPATH=" + filepath.Join("..", "..", "python"),
				"PYTHONDONTWRITEBYTECODE=1"}
			cmd := command(true, env, append([]string{python, "testdata/onhost.py"}, args...)...)
			cmd.Timeout = 3 * time.Minute
			r := testlib.Run(t, cmd)
			clean(t, r)
			if !right.MatchString(r.Stdout) {
				t.Errorf("printed %q", r.Stdout)
			}
		})
	}
}
