package testlib

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Null is a device like /dev/null, for code that must not replace one: as root, which could do that
// to the machine's, it is a copy that is gone after the test.
func Null(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "null")
	if err := syscall.Mknod(path, syscall.S_IFCHR|0o666, 1<<8|3); err != nil {
		return "/dev/null"
	}
	return path
}

// OnlyFiles fails when the directory holds anything else, such as a temporary file
// left behind.
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
