package live

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

// await reads the page until its process is in the state.
func await(t *testing.T, p *Page, want State) *Snapshot {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		s := snapshot(t, p)
		if s.State == want {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("%v, not %v", s.State, want)
		}
	}
}

func TestExited(t *testing.T) {
	w := start(t, "exit")
	p := w.open(t)
	wantOne(t, await(t, p, Running))
	w.stdin.Close()
	if err := w.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	s := snapshot(t, p)
	wantOne(t, s)
	if s.State != Exited || s.Updates != 2 || !s.State.Dead() {
		t.Errorf("%v, %d updates", s.State, s.Updates)
	}
}

// TestKilled: also before its parent has taken notice of its end.
func TestKilled(t *testing.T) {
	w := start(t, "idle")
	p := w.open(t)
	if err := w.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	await(t, p, Killed)
	_ = w.cmd.Wait()
	if s := await(t, p, Killed); !s.State.Dead() || s.Updates != 1 {
		t.Errorf("%v, %d updates", s.State, s.Updates)
	}
}

// TestIdle: a process that updates nothing for long is running, with its page removed as
// well.
func TestIdle(t *testing.T) {
	w := start(t, "idle")
	p := w.open(t)
	for range 2 {
		if got := p.State(); got != Running || got.Dead() {
			t.Error(got)
		}
		os.Remove(w.path)
	}
}

func TestReplaced(t *testing.T) {
	w := start(t, "exec")
	p := w.open(t)
	if got := p.State(); got != Running {
		t.Error(got)
	}
	w.stdin.Close()
	if s := await(t, p, Replaced); !s.State.Dead() {
		t.Errorf("%v", s.State)
	}
	w.kill()
	await(t, p, Killed)
}

// TestLeaderEnded: a process lives on when its first thread ends.
func TestLeaderEnded(t *testing.T) {
	w := start(t, "leader")
	p := w.open(t)
	for { // until the thread has ended
		proc, ok := processOf(p.Pid())
		if !ok || proc.ended {
			t.Fatalf("%+v, %v", proc, ok)
		}
		if proc.leaderOnly {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if got := p.State(); got != Running {
		t.Error(got)
	}
}

// TestNumberReused: another process has the number now, or another boot had it.
func TestNumberReused(t *testing.T) {
	p := start(t, "idle").open(t)
	head := p.head
	for _, c := range []struct {
		name   string
		change func()
		want   State
	}{
		{"nothing", func() {}, Running},
		{"another start", func() { p.head.StartTicks++ }, Killed},
		{"another boot", func() { p.head.BootID[3] ^= 1 }, Killed},
		{"another namespace", func() { p.head.PidNamespace++ }, Unknown},
		{"another boot and namespace", func() { p.head.BootID[3] ^= 1; p.head.PidNamespace++ },
			Killed},
		{"no such process", func() { p.head.Pid = 1<<31 - 1 }, Killed},
		{"nothing known", func() {
			p.head.BootID = [40]byte{}
			p.head.PidNamespace,
				p.head.StartTicks = 0, 0
		}, Running},
	} {
		p.head = head
		c.change()
		if got := p.State(); got != c.want {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
	if Unknown.Dead() || Running.Dead() {
		t.Error("who may be running is dead")
	}
}

// TestOtherNamespace reads a page of a process that counts from 1.
func TestOtherNamespace(t *testing.T) {
	path := t.TempDir() + "/page"
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), modeVar+"=idle", pathVar+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	stdin, _ := cmd.StdinPipe()
	if err := cmd.Start(); err != nil {
		t.Skipf("no right to make a PID namespace: %v", err)
	}
	defer func() { _ = cmd.Wait() }()
	defer stdin.Close()
	var p *Page
	for end := time.Now().Add(30 * time.Second); p == nil; time.Sleep(time.Millisecond) {
		var err error
		if p, err = Open(path); err != nil && time.Now().After(end) {
			t.Fatal(err)
		}
	}
	defer p.Close()
	// Its /proc is this namespace's, where it found itself under its other number.
	if s := snapshot(t, p); s.State != Unknown || p.Pid() != 1 || s.State.Dead() {
		t.Errorf("process %d is %v", p.Pid(), s.State)
	}
}

func TestParseStat(t *testing.T) {
	mid := strings.Repeat(" 0", 16) // fields 4 to 19
	for line, want := range map[string]process{
		"7 (a) S" + mid + " 1 0 123 0":       {startTicks: 123},
		"7 (a) b) Z" + mid + " 1 0 123\n":    {ended: true, startTicks: 123},
		"7 ((Z) 1 ) Z" + mid + " 2 0 5":      {leaderOnly: true, startTicks: 5},
		"7 (a) X" + mid + " 0 0 5":           {ended: true, startTicks: 5},
		"7 (a\nb) R" + mid + " 1 0 5":        {startTicks: 5},
		"7 (a) S" + mid + " 1 0 notanumber ": {},
	} {
		if got, ok := parseStat(line); got != want || !ok {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", ")", "7 (a) S" + mid + " 1 0", "7 (a"} {
		if got, ok := parseStat(line); ok {
			t.Errorf("%q: %+v", line, got)
		}
	}
}

func TestMapsHave(t *testing.T) {
	maps := "55d0-55d1 r--p 00000000 fe:00 123   /usr/bin/p\n" +
		"7f00-7f01 rw-p 00000000 00:00 0 \n" +
		"7f02-7f03 rw-s 00000000 00:19 77 /dev/shm/a page (deleted)\n"
	for _, c := range []struct {
		inode, base string
		want        bool
	}{
		{"77", "x", true}, {"123", "x", true}, {"0", "x", false}, {"7", "x", false},
		{"9", "a page", true},
		{"9", "page", false}, {"9", "p", true}, {"9", "", false}, {"00:19", "x", false},
	} {
		if got := mapsHave([]byte(maps), c.inode, c.base); got != c.want {
			t.Errorf("%s, %q: %v", c.inode, c.base, got)
		}
	}
}
