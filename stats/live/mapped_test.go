package live

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// TestMappedElsewhere: the page of a process that has another number in a PID namespace of its own.
func TestMappedElsewhere(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	path := filepath.Join(t.TempDir(), "page")
	cmd.Env = append(os.Environ(), modeVar+"=idle", pathVar+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	stdin, _ := cmd.StdinPipe()
	stdout, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Skipf("no right to make a PID namespace: %v", err)
	}
	defer func() { _ = cmd.Wait() }()
	defer stdin.Close()
	bufio.NewReader(stdout).ReadString('\n')
	pid := cmd.Process.Pid
	p := Mapped(pid)
	if p == nil {
		t.Fatal("no page")
	}
	defer p.Close()
	if p.Pid() != pid || p.head.Pid != 1 || p.Path() != path {
		t.Errorf("%s of %d, in the namespace %d", p.Path(), p.Pid(), p.head.Pid)
	}
	if proc := fmt.Sprintf("/proc/%d", pid); innerNumber(proc, pid) != 1 ||
		innerNumber("/proc/self", os.Getpid()) != uint64(os.Getpid()) {
		t.Error("a number is of another namespace")
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
