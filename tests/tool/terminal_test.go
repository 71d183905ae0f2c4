package tool

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/internal/testlib"
)

// terminal is a pseudo-terminal with a command on it that leads its session.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu  sync.Mutex
	got strings.Builder
}

// onTerminal starts a command on a terminal of 40 lines and 160 columns.
func onTerminal(t *testing.T, env []string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("there are no pseudo-terminals: %v", err)
	}
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ,
		&unix.Winsize{Row: 40, Col: 160}); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	term := &terminal{t: t, master: master, cmd: exec.Command(args[0], args[1:]...)}
	term.cmd.Env = append(append(append(os.Environ(), quiet()...), "TERM=xterm-256color"), env...)
	term.cmd.Stdin, term.cmd.Stdout, term.cmd.Stderr = slave, slave, slave
	term.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := term.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go term.collect()
	t.Cleanup(func() {
		term.cmd.Process.Kill()
		term.cmd.Wait()
		master.Close()
		if t.Failed() {
			t.Logf("shown: %.3000q", term.text())
		}
	})
	return term
}

// collect keeps what the terminal shows until its last user has gone.
func (term *terminal) collect() {
	buf := make([]byte, 4096)
	for {
		n, err := term.master.Read(buf)
		term.mu.Lock()
		term.got.Write(buf[:n])
		term.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (term *terminal) text() string {
	term.mu.Lock()
	defer term.mu.Unlock()
	return term.got.String()
}

// await waits until the terminal was sent each of the words. Of a full screen only what
// changes is sent.
func (term *terminal) await(words ...string) {
	term.t.Helper()
	testlib.Wait(term.t, fmt.Sprintf("%q on the terminal", words), term.cmd.Process, func() bool {
		return !slices.ContainsFunc(words,
			func(w string) bool { return !strings.Contains(term.text(), w) })
	})
}

// press sends keys.
func (term *terminal) press(keys string) {
	term.t.Helper()
	if _, err := term.master.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// wait waits for the command's end and returns its status.
func (term *terminal) wait() int {
	term.t.Helper()
	if err := testlib.End(term.cmd); term.cmd.ProcessState.ExitCode() < 0 {
		term.t.Fatal(err)
	}
	return term.cmd.ProcessState.ExitCode()
}
