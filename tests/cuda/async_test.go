package cuda

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestAsync has the futures and the pool of Python on the library itself, in each mode of reuse.
func TestAsync(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testlib.Lacks(t, python)
	}
	for mode, env := range modes {
		t.Run(mode, func(t *testing.T) {
			env := append([]string{"PYTHONPATH=" + filepath.Join("..", "..", "python"),
				"PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore::DeprecationWarning"}, env...)
			c := command(true, env, python, "testdata/async.py")
			c.Timeout = 3 * time.Minute
			r := testlib.Run(t, c)
			clean(t, r)
			if r.Stdout != "ok\n" {
				t.Errorf("printed %q", r.Stdout)
			}
		})
	}
}
