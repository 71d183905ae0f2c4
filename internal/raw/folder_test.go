package raw

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// opened returns the folder that OpenFolder opens.
func opened(path string) (File, error) {
	fd, errno := OpenFolder(Bytes(path), uintptr(len(path)))
	if errno != 0 {
		return File{}, syscall.Errno(errno)
	}
	defer closeFile(fd)
	return Identify(fd), nil
}

// TestOpenFolder: with links of the own user a path leads where the kernel says.
func TestOpenFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err = errors.Join(err, os.MkdirAll("a/b", 0o700), os.WriteFile("file", nil, 0o600),
		os.Symlink("a/b", "relative"), os.Symlink(here+"/a", "absolute"),
		os.Symlink("../../absolute/b/", "a/b/up"), os.Symlink("loop", "loop"),
		os.Symlink("nowhere", "dangling"), os.Symlink("file", "tofile"),
		os.Symlink(strings.Repeat("./", 2000)+"a", "long")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"", ".", "/", "//", "a", "a/", "a//b/", "a/../a/b", here + "/a/b",
		"relative", "relative/..", "absolute/b", "absolute/b/up/../b/up/", "loop", "dangling",
		"dangling/x", "file", "file/x", "tofile", "none", "none/x", "long/b", "/proc/self/cwd/a",
		"/proc/self/root/proc", "/proc/self/fd/none", strings.Repeat("x", 256),
		strings.Repeat("./", 2000) + "long", "long/" + strings.Repeat("./", 1000)} {
		var want syscall.Stat_t
		name := path
		if name == "" {
			name = "."
		}
		wantErr := syscall.Stat(name, &want)
		if wantErr == nil && want.Mode&syscall.S_IFMT != syscall.S_IFDIR {
			wantErr = syscall.ENOTDIR
		}
		if strings.HasPrefix(path, "long/./") { // longer than a page when the link is followed
			wantErr = syscall.ENAMETOOLONG
		}
		got, err := opened(path)
		if wantErr == nil && got != (File{want.Dev, want.Ino}) ||
			wantErr != nil && !errors.Is(err, wantErr) {
			t.Errorf("%.40q: %v, %v, not %v, %v", path, got, err, want.Ino, wantErr)
		}
	}
	if _, err := opened(strings.Repeat("a", Page)); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a path of a page: %v", err)
	}
}

// TestOpenFolderOwners has links of several owners, for root and for another user.
func TestOpenFolderOwners(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make files of other users")
	}
	const self, other, third = 12345, 12346, 12347
	for name, c := range map[string]struct {
		user, folder, link int
		want               error
	}{
		"root, link of root":           {0, other, 0, nil},
		"root, link of another":        {0, 0, other, syscall.ELOOP},
		"root, link of folder's owner": {0, other, other, syscall.ELOOP},
		"user, link of root":           {self, other, 0, nil},
		"user, own link":               {self, other, self, nil},
		"user, link of folder's owner": {self, other, other, nil},
		"user, link of a third":        {self, other, third, syscall.ELOOP},
		"user, link in root's folder":  {self, 0, third, syscall.ELOOP},
	} {
		dir := t.TempDir()
		link := filepath.Join(dir, "in", "link")
		if err := errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(dir, 0o755),
			os.Mkdir(filepath.Dir(link), 0o755), os.Chown(filepath.Dir(link), c.folder, 0),
			os.Symlink("/usr", link), os.Lchown(link, c.link, 0),
			os.Symlink("in/link", filepath.Join(dir, "trusted"))); err != nil {
			t.Fatal(err)
		}
		var direct, behind error
		as(c.user, func() {
			_, direct = opened(link)
			_, behind = opened(filepath.Join(dir, "trusted"))
		})
		if direct != c.want || behind != c.want {
			t.Errorf("%s: %v, behind another link %v, not %v", name, direct, behind, c.want)
		}
	}
}

// as calls do on a thread with the rights of a user. The thread ends with the goroutine, because it
// stays locked.
func as(user int, do func()) {
	done := make(chan bool)
	go func() {
		defer close(done)
		runtime.LockOSThread()
		Sys(syscall.SYS_SETRESUID, ^uintptr(0), uintptr(user), ^uintptr(0), 0, 0, 0)
		do()
	}()
	<-done
}
