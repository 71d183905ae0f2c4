package testlib

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Null returns a device like /dev/null, for tests of code that must not replace one. Root could
// replace the machine's, so for root it is a copy that is removed after the test.
func Null(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "null")
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		return "/dev/null"
	}
	return path
}

// OnlyFiles fails if the directory contains anything else, such as a temporary file that was not
// removed.
func OnlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, not %q", dir, got, names)
	}
}
