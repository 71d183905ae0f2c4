package live

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/internal/testlib"
	"tieralloc/stats"
)

const whole = int(stats.LiveSize)

// putPage puts a copy of the page at path into a folder, as process pid's, and returns its
// path.
func putPage(t *testing.T, path, dir, name string, pid uint64) string {
	t.Helper()
	to := filepath.Join(dir, name)
	if err := os.Rename(copyOf(t, path, headAt{pidAt: pid}, whole), to); err != nil {
		t.Fatal(err)
	}
	return to
}

// openFolder opens a folder until the test ends.
func openFolder(t *testing.T, path string) *Folder {
	t.Helper()
	d, err := OpenFolder(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// TestUsual: what has a usual name and is a page counts, one of another version, too. What is
// damaged is told of.
func TestUsual(t *testing.T) {
	dir := t.TempDir()
	path, _ := ownPage(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	for name, pid := range map[string]uint64{"tieralloc.2": 2, "tieralloc.31": 31, "tieralloc.5": 6,
		"anything":     7,
		"tieralloc.08": 8, "tieralloc.9.x": 9, "tieralloc.": 10, "tieralloc.+11": 11} {
		putPage(t, path, dir, name, pid)
	}
	if err := errors.Join(
		os.Rename(copyOf(t, path, headAt{versionAt: 9, pidAt: 20}, whole), in("tieralloc.20")),
		os.Rename(copyOf(t, path, nil, whole-1), in("tieralloc.21")),
		os.WriteFile(in("tieralloc.22"), []byte(strings.Repeat("text", 9999)), 0o600),
		os.WriteFile(in("tieralloc.23"), nil, 0o600),
		os.Mkdir(in("tieralloc.24"), 0o700), syscall.Mkfifo(in("tieralloc.25"), 0o600),
		os.Symlink(path, in("tieralloc.26")),
	); err != nil {
		t.Fatal(err)
	}
	var pids []int
	broken := errors.New("of the caller's")
	err := openFolder(t, dir).Usual(0, nil, func(p *Page) error {
		pids = append(pids, p.Pid())
		return broken
	})
	if slices.Sort(pids); !slices.Equal(pids, []int{2, 20, 31}) {
		t.Errorf("pages of %v", pids)
	}
	for _, words := range []string{in("tieralloc.21") + ": damaged",
		in("tieralloc.5") + ": damaged live page: it is process 6's"} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q is missing in %v", words, err)
		}
	}
	if !errors.Is(err, broken) || strings.Count(err.Error(), "\n") != 4 {
		t.Errorf("%v", err)
	}
	if err := openFolder(t, t.TempDir()).Usual(1, nil, nil); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := OpenFolder(in("none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// deadPage is a page in a folder whose process is gone.
func deadPage(t *testing.T, dir string) *Page {
	t.Helper()
	path, _ := ownPage(t)
	stats.LiveEnd(false, false)
	putPage(t, path, dir, "page", 1<<22+1)
	p, err := openFolder(t, dir).Open("page")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func TestRemove(t *testing.T) {
	dir := t.TempDir()
	p := deadPage(t, dir)
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	testlib.OnlyFiles(t, dir)
	if err := p.Remove(); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a page that is gone: %v", err)
	}
}

// TestRemoveMovedFolder: the folder's name leads to another one by now. A file there that has
// the page's name is not touched.
func TestRemoveMovedFolder(t *testing.T) {
	base := t.TempDir()
	dir, other := filepath.Join(base, "dir"), filepath.Join(base, "other")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Mkdir(other, 0o700),
		os.WriteFile(other+"/page", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	p := deadPage(t, dir)
	if err := errors.Join(os.Rename(dir, dir+".old"), os.Symlink(other, dir)); err != nil {
		t.Fatal(err)
	}
	if err := p.Remove(); err != nil {
		t.Error(err)
	}
	testlib.OnlyFiles(t, other, "page")
	testlib.OnlyFiles(t, dir+".old")
}

// TestRemoveRefused: another file has the name by now, or another owner, or the process
// lives, or nobody knows where the name was looked up.
func TestRemoveRefused(t *testing.T) {
	for name, change := range map[string]func(p *Page) error{
		"another file": func(p *Page) error {
			return errors.Join(os.Rename(p.path, p.path+".old"), os.WriteFile(p.path, nil, 0o600))
		},
		"a link to it": func(p *Page) error {
			return errors.Join(os.Rename(p.path, p.path+".old"), os.Symlink(p.path+".old", p.path))
		},
		"another owner": func(p *Page) error { p.stat.Uid++; return nil },
		"a living process": func(p *Page) error {
			p.head.Pid = 1
			p.head.StartTicks, p.head.PidNamespace = 0, 0
			p.holder = 1
			return nil
		},
		"another namespace": func(p *Page) error { p.head.PidNamespace = 1; return nil },
		"no folder":         func(p *Page) error { p.folder = nil; return nil },
	} {
		p := deadPage(t, t.TempDir())
		if err := change(p); err != nil {
			t.Fatal(err)
		}
		if err := p.Remove(); err == nil || !strings.Contains(err.Error(), "not removed") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Lstat(p.path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestNothingIsOpened: what is no regular file is not opened to find that out, and a link
// leads nowhere in a folder.
func TestNothingIsOpened(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.Symlink(fifo, dir+"/link")); err != nil {
		t.Fatal(err)
	}
	watch, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, fifo, unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	d := openFolder(t, dir)
	for _, name := range []string{"fifo", "link"} {
		if _, err := d.Open(name); !errors.Is(err, ErrNotPage) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := Open(filepath.Join(dir, name)); !errors.Is(err, ErrNotPage) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var event [4096]byte
	if n, err := unix.Read(watch, event[:]); err != unix.EAGAIN {
		t.Errorf("it was opened: %d bytes, %v", n, err)
	}
}
