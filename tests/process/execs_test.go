package process

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestExecs: the kernel refuses new threads while a thread is in execve. Calls that fail do not end
// the control plane.
func TestExecs(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "execs.c")
	file := filepath.Join(t.TempDir(), "file")
	for range 40 { // about one of five meets it
		r := preloaded(t, []string{"TA_LOG=warn", "TA_BACKGROUND=1"}, prog, file)
		if r.Status != 0 || r.Stdout != "end\n" || r.Stderr != "" {
			t.Fatalf("%+v", r)
		}
	}
}
