package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestLog: a driver that is missing, too old, or has no device is one line of the log,
// at warn, and changes nothing for the program.
func TestLog(t *testing.T) {
	program := cc(t, "log.c")
	for _, c := range []struct{ name, libraries, stdout, line string }{
		{"missing", t.TempDir(), "(nil) 1\n(nil) 1\n(nil) 1\n", `"no CUDA driver is loaded"`},
		{"old", oldDriver(t), "0\n(nil) 1\n(nil) 1\n(nil) 1\n",
			`"the CUDA driver is too old: device memory is not managed"`},
		{"fails", drivers, "100\n", `"error":100,"message":"the CUDA driver does not start"`},
		{"refused", drivers, "cu.cuMemAlloc_v2(&p, 100 * MIB) = 2\n",
			`"device":0,"bytes":104857600,"message":"no device memory"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "log")
			r := testlib.Run(t, command(true,
				[]string{"LD_LIBRARY_PATH=" + c.libraries, "TA_LOG=warn", "TA_LOG_FILE=" + log,
					"TA_CUDA_HARD=64M"}, program, c.name))
			clean(t, r)
			if r.Stdout != c.stdout {
				t.Errorf("stdout %q, want %q", r.Stdout, c.stdout)
			}
			text, err := os.ReadFile(log)
			if err != nil || strings.Count(string(text), "\n") != 1 ||
				!strings.Contains(string(text), c.line) ||
				!strings.Contains(string(text), `"level":"warn"`) {
				t.Errorf("the log: %v %q", err, text)
			}
			quiet := testlib.Run(t, command(true,
				[]string{"LD_LIBRARY_PATH=" + c.libraries, "TA_CUDA_HARD=64M"}, program, c.name))
			clean(t, quiet)
		})
	}
}
