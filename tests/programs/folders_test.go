package programs

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"testing"

	"tieralloc/internal/testlib"
)

// openFolder makes an empty folder that other users may enter. Its name is short,
// as the path of a Unix socket is limited to 107 bytes.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// preload is what a preloaded run has besides a plain one.
type preload struct {
	env   []string
	stats string // the folder of the statistics
}

// newPreload puts into a folder a copy of the library, since the source tree may
// lie where the program's user cannot read, and room for statistics.
func newPreload(t *testing.T, dir string) *preload {
	t.Helper()
	text, err := os.ReadFile(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	lib := filepath.Join(dir, filepath.Base(testlib.Lib(t)))
	if err := os.WriteFile(lib, text, 0o755); err != nil {
		t.Fatal(err)
	}
	stats := filepath.Join(dir, "stats")
	if err := os.Mkdir(stats, 0o755); err != nil {
		t.Fatal(err)
	}
	return &preload{[]string{"LD_PRELOAD=" + lib, statsEnv(stats)}, stats}
}

func statsEnv(dir string) string {
	return "TA_STATS_FILE=" + filepath.Join(dir, "%p.%e.json")
}

// become gives folders to a user other than root and returns the command that
// runs another as that user. Where the test is not root's it has nothing to do.
func become(t *testing.T, folders ...string) []string {
	t.Helper()
	if os.Getuid() != 0 {
		return nil
	}
	testlib.Need(t, "setpriv")
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("there is no user but root to run the program as")
	}
	uid, _ := strconv.Atoi(u.Uid)
	gid, _ := strconv.Atoi(u.Gid)
	for _, dir := range folders {
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	return []string{"setpriv", "--reuid=" + u.Uid, "--regid=" + u.Gid, "--clear-groups", "--"}
}
