package testlib

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// LinkOf makes a folder, and a symbolic link to it that the user owner has in a folder of theirs.
// It skips the test without root.
func LinkOf(t *testing.T, owner int) (target, link string) {
	t.Helper()
	if os.Getuid() != 0 {
		Lacks(t, "root, to make links of another user")
	}
	dir := t.TempDir()
	target, link = filepath.Join(dir, "target"), filepath.Join(dir, "folder", "link")
	if err := errors.Join(os.Mkdir(target, 0o755), os.Mkdir(filepath.Dir(link), 0o755),
		os.Chown(filepath.Dir(link), owner, owner), os.Symlink("../target", link),
		os.Lchown(link, owner, owner)); err != nil {
		t.Fatal(err)
	}
	return target, link
}
