package live

import (
	"fmt"
	"os"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/stats"
)

// TestMapped: the page of a process is found in its memory, wherever its file is, and also
// when its name is gone or another file has it.
func TestMapped(t *testing.T) {
	w := start(t, "idle")
	pid := w.cmd.Process.Pid
	p := Mapped(pid)
	if p == nil {
		t.Fatal("no page")
	}
	defer p.Close()
	if p.Path() != w.path || p.Pid() != pid || p.ID() != w.open(t).ID() ||
		p.Owner() != os.Geteuid() {
		t.Errorf("%s of process %d", p.Path(), p.Pid())
	}
	if s := snapshot(t, p); s.State != Running {
		t.Error(s.State)
	}
	if err := p.Remove(); err == nil {
		t.Error("a page was removed from where its process says that it is")
	}
	if err := os.Rename(copyOf(t, w.path, nil, whole), w.path); err != nil {
		t.Fatal(err)
	}
	if other := Mapped(pid); other != nil { // it takes the right to look files up by mappings
		if other.ID() != p.ID() {
			t.Error("another file is taken for the page")
		}
		other.Close()
	}
	if Mapped(1<<30) != nil {
		t.Error("a process that is not has a page")
	}
}

// TestMappedByChild: a child that has its parent's memory has not its page.
func TestMappedByChild(t *testing.T) {
	w := start(t, "idle")
	p := w.open(t)
	for _, c := range []struct {
		pid  uint64
		want bool
	}{{uint64(p.Pid()), true}, {uint64(p.Pid()) + 1, false}} {
		file, err := os.OpenFile(w.path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(words(&c.pid), int64(pidAt)); err != nil {
			t.Fatal(err)
		}
		file.Close()
		p := Mapped(w.cmd.Process.Pid)
		if (p != nil) != c.want {
			t.Errorf("the page of %d is %d's: %v", c.pid, w.cmd.Process.Pid, !c.want)
		}
		if p != nil {
			p.Close()
		}
	}
}

func TestParseMapping(t *testing.T) {
	const from = 0x7f0000000000
	span := func(bytes uintptr) string { return fmt.Sprintf("%x-%x", from, from+bytes) }
	whole := span(stats.LiveSize)
	for line, want := range map[string]mapping{
		whole + " rw-s 00000000 00:19 77 /dev/shm/a page (deleted)\n": {from,
			from + uint64(stats.LiveSize), 77, "/dev/shm/a page (deleted)"},
		whole + " rw-p 00000000 00:19 77 /dev/shm/a":                     {},
		whole + " r--s 00000000 00:19 77 /dev/shm/a":                     {},
		whole + " rw-s 00001000 00:19 77 /dev/shm/a":                     {},
		whole + " rw-s 00000000 00:19 x7 /dev/shm/a":                     {},
		whole + " rw-s 00000000 00:01 77 anon_inode:[io_uring]":          {},
		span(stats.LiveSize-4096) + " rw-s 00000000 00:19 77 /dev/shm/a": {},
		span(stats.LiveSize+4096) + " rw-s 00000000 00:19 77 /dev/shm/a": {},
		" rw-s 00000000 ": {},
		"":                {},
	} {
		got, ok := parseMapping([]byte(line))
		if ok != (want != mapping{}) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}

// TestMappedOften: a process with a great many files of a page's size is not looked through.
func TestMappedOften(t *testing.T) {
	path, _ := ownPage(t)
	file, err := os.OpenFile(copyOf(t, path, headAt{pidAt: 1}, int(stats.LiveSize)), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for range 4 * candidates {
		mem, err := syscall.Mmap(int(file.Fd()), 0, int(stats.LiveSize),
			syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Munmap(mem)
	}
	w, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(w)
	// Events that are alike and follow each other count once, but these are two in turn.
	if _, err := unix.InotifyAddWatch(w, file.Name(),
		unix.IN_OPEN|unix.IN_CLOSE_NOWRITE); err != nil {
		t.Fatal(err)
	}
	if p := Mapped(os.Getpid()); p != nil {
		p.Close()
	}
	var events [1 << 16]byte
	n, _ := unix.Read(w, events[:])
	if opened := n / unix.SizeofInotifyEvent / 2; opened > candidates {
		t.Errorf("%d files were opened", opened)
	}
}
