package stats

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
	"tieralloc/internal/testlib"
)

// TestLiveOpenTakesOver: a page that an earlier process left is replaced, whole or not,
// of this version or another.
func TestLiveOpenTakesOver(t *testing.T) {
	magic := "tierlive"
	for name, old := range map[string]string{
		"ended":      magic + strings.Repeat("x", int(LiveSize)-8),
		"other":      magic,
		"empty":      "",
		"unfinished": strings.Repeat("\x00", int(LiveSize)),
	} {
		path := filepath.Join(t.TempDir(), "page")
		if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		reader, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if errno := openLive(path); errno != 0 {
			t.Errorf("%s: %v", name, errno)
			continue
		}
		LiveBegin(1).Pid = 7
		LiveCommit(1)
		if p := pageAt(t, path); p.Head.Magic != LiveMagic || p.Buffers[1].Figures.Pid != 7 {
			t.Errorf("%s: %+v", name, p.Head)
		}
		// Who reads the old page keeps it.
		buf := make([]byte, len(old)+1)
		if n, _ := reader.Read(buf); string(buf[:n]) != old {
			t.Errorf("%s: the old page was written to", name)
		}
		reader.Close()
		LiveForked()
	}
}

// TestLiveOpenRefused has the paths where no page can be made. What is there stays.
func TestLiveOpenRefused(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	zeros := strings.Repeat("\x00", int(LiveSize)-1)
	if err := errors.Join(os.Mkdir(in("dir"), 0o700), syscall.Mkfifo(in("fifo"), 0o600),
		os.Symlink("file", in("link")),
		os.Symlink("nowhere", in("dangling")), os.WriteFile(in("file"), []byte("tierlove"), 0o600),
		os.WriteFile(in("zeros"), []byte(zeros), 0o600),
		os.WriteFile(in("short"), []byte("tierliv"), 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want syscall.Errno
	}{
		{"", syscall.ENOENT},
		{in("dir"), syscall.EEXIST},
		{in("dir") + "/", syscall.ENOENT},
		{in("fifo"), syscall.EEXIST},
		{in("link"), syscall.EEXIST},
		{in("dangling"), syscall.EEXIST},
		{in("file"), syscall.EEXIST},
		{in("zeros"), syscall.EEXIST},
		{in("short"), syscall.EEXIST},
		{testlib.Null(t), syscall.EEXIST},
		{in("file/page"), syscall.ENOTDIR},
		{in("none/page"), syscall.ENOENT},
		{in("a\x00b"), syscall.EINVAL},
		{in(strings.Repeat("x", 256)), syscall.ENAMETOOLONG},
		{"/" + strings.Repeat("x/", config.PathMax/2), syscall.ENAMETOOLONG},
	} {
		if errno := openLive(c.path); errno != c.want {
			t.Errorf("%.60q: %v, not %v", c.path, errno, c.want)
		}
		if LiveOn() {
			t.Fatalf("%.60q: the page is on", c.path)
		}
	}
	testlib.OnlyFiles(t, dir, "dangling", "dir", "fifo", "file", "link", "short", "zeros")
	if text, err := os.ReadFile(in("file")); err != nil || string(text) != "tierlove" {
		t.Errorf("the file holds %q, %v", text, err)
	}
}

// TestLivePathSwapped: while somebody changes what a folder's name leads to, pages are made
// and removed in it, and a file of the same name in the other folder stays.
func TestLivePathSwapped(t *testing.T) {
	base := t.TempDir()
	in := func(name string) string { return filepath.Join(base, name) }
	if err := errors.Join(os.Mkdir(in("other"), 0o700), os.Mkdir(in("dir"), 0o700),
		os.Symlink(in("other"), in("link"))); err != nil {
		t.Fatal(err)
	}
	stop, done := make(chan bool), make(chan bool)
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, in("dir"), unix.AT_FDCWD, in("link"),
					unix.RENAME_EXCHANGE)
			}
		}
	}()
	const others = "not a page"
	if err := os.WriteFile(in("other/page"), []byte(others), 0o600); err != nil {
		t.Fatal(err)
	}
	made := 0
	for range 20_000 {
		if openLive(in("dir/page")) == 0 {
			made++
			LiveEnd(true, true)
			LiveForked()
		}
		if text, err := os.ReadFile(in("other/page")); string(text) != others {
			t.Errorf("the other file holds %q, %v", text, err)
			break
		}
	}
	close(stop)
	<-done
	if made < 100 {
		t.Errorf("only %d pages were made", made)
	}
}

// TestLiveOpenFull: on a full file system there is no page, rather than a SIGBUS later.
func TestLiveOpenFull(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestFullHelper$", "-test.v")
	cmd.Env = append(os.Environ(), "TA_TEST_FULL="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if strings.Contains(string(out), "--- SKIP") {
		t.Skip("needs the right to mount")
	}
}

// TestFullHelper is the other process of TestLiveOpenFull. It has a small file system of
// its own, which goes away with it.
func TestFullHelper(t *testing.T) {
	dir := os.Getenv("TA_TEST_FULL")
	if dir == "" {
		return // the other process of a test, not one of its own
	}
	runtime.LockOSThread() // only this thread sees the file system
	if syscall.Unshare(syscall.CLONE_NEWNS) != nil ||
		syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "") != nil {
		t.Skip("no right to mount")
	}
	for pages, want := range map[uintptr]syscall.Errno{1: syscall.ENOSPC,
		LiveSize/4096 - 1: syscall.ENOSPC, LiveSize / 4096: 0} {
		if err := syscall.Mount("none", dir, "tmpfs", 0,
			fmt.Sprintf("size=%d", pages*4096)); err != nil {
			t.Fatal(err)
		}
		if errno := openLive(filepath.Join(dir, "page")); errno != want {
			t.Errorf("room for %d pages: %v, not %v", pages, errno, want)
		}
		if want == 0 {
			*LiveBegin(1) = Report{} // had it no memory, this would be a SIGBUS
			LiveCommit(1)
			LiveForked()
		} else {
			testlib.OnlyFiles(t, dir)
		}
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTicksIn(t *testing.T) {
	rest := strings.Repeat(" 7", 18) // fields 4 to 21
	for text, want := range map[string]uint64{
		"":                                     0,
		"1 (a) S" + rest + " 123 9":            123,
		"1 (a) S" + rest + " 0 9":              0,
		"1 (a b) c) (d) S" + rest + " 456 9\n": 456,
		"1 () R" + rest + " 18446744073709551615 ": 1<<64 - 1,
		"1 (a) S" + rest + " 123":                  0, // cut
		"1 (a) S" + rest:                           0,
		"1 (a":                                     0,
		")":                                        0,
		"1 a S" + rest + " 123 9":                  0,
	} {
		var buf [statRoom]byte
		n := copy(buf[:], text)
		if got := ticksIn(&buf, uintptr(n)); got != want {
			t.Errorf("%q: %d, not %d", text, got, want)
		}
	}
	if startTicks() == 0 {
		t.Error("this process has no start")
	}
}
