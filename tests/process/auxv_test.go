package process

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestEnvironmentTaken: what the kernel has told of the process is known after the program has
// taken its environment apart: a rule by library finds the program's name.
func TestEnvironmentTaken(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "auxv.c", "-ldl")
	r := preloaded(t, []string{"TA_RULES=lib=auxv:cold"}, prog)
	clean(t, r)
	if r.Stdout != "2\n" {
		t.Errorf("tier %q, want 2", r.Stdout)
	}
}

// TestSetUserID: the library in a set-user-ID program writes no file that the caller names,
// whatever variables the loader has taken out of the environment.
func TestSetUserID(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can make a set-user-ID program of another user's")
	}
	dir := t.TempDir()
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lib, prog := filepath.Join(dir, "libtieralloc.so.1"), filepath.Join(dir, "auxv")
	copyTo(t, testlib.Lib(t), lib, 0o755)
	copyTo(t, testlib.CC(t, "auxv.c", "-ldl", lib, "-Wl,-rpath,"+dir), prog, os.ModeSetuid|0o755)
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for _, taken := range []string{"A=1", "LD_LIBRARY_PATH=/x", "TMPDIR=/x"} {
		cmd := exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", prog,
			"setuid")
		cmd.Env = []string{taken, "TA_STATS_FILE=" + open + "/report",
			"TA_STATS_LIVE=" + open + "/live", "TA_LOG=info", "TA_LOG_FILE=" + open + "/log"}
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", taken, err, text)
		}
		testlib.OnlyFiles(t, open)
	}
}

func copyTo(t *testing.T, from, to string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err == nil {
		err = os.Chmod(to, mode)
	}
	if err != nil {
		t.Fatal(err)
	}
}
