package tool

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// counter says "ready", counts signals until a TERM comes, and ends with 10 and their
// number. It makes the file $NOTE when it has counted one.
const counter = `n=0; trap 'n=$((n+1)); : >"${NOTE:-/dev/null}"' HUP INT QUIT USR1 USR2;
	trap 'exit $((10+n))' TERM; echo ready
	i=0; while [ $i -lt 400 ]; do sleep 0.05; i=$((i+1)); done`

// TestSignalsPassedOn sends each signal to the tool, once.
func TestSignalsPassedOn(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2} {
		note := filepath.Join(t.TempDir(), "note")
		// Who runs the tests may ignore signals (nohup), which a shell could then not count.
		cmd := start(t, []string{"NOTE=" + note}, "env", "--default-signal", tool(t), "run", "-q",
			"--no-live", "--library", testlib.Lib(t), "bash", "-c", counter)
		syscall.Kill(cmd.Process.Pid, s)
		testlib.Wait(t, s.String()+" is counted", cmd.Process,
			func() bool { _, err := os.Stat(note); return err == nil })
		pause() // for a second one
		syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
		if status := statusOf(testlib.End(cmd)); status != 11 {
			t.Errorf("%v: the command ended with %d, not 11", s, status)
		}
	}
}

// pause lets a shell that waits for sleep notice a signal before the next one comes.
func pause() { exec.Command("sleep", "0.3").Run() }

func statusOf(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}

// TestKeyboardOnce: an interrupt from the keyboard reaches the command once, and the
// summary follows its end.
func TestKeyboardOnce(t *testing.T) {
	term := onTerminal(t, nil, tool(t), "run", "--no-live", "--library", testlib.Lib(t), "bash",
		"-c", counter)
	term.await("ready")
	term.press("\x03")
	pause()
	term.press("\x1c")
	pause()
	syscall.Kill(term.cmd.Process.Pid, syscall.SIGTERM)
	if status := term.wait(); status != 12 {
		t.Errorf("status %d, not 12", status)
	}
	term.await("FAST")
}

// TestNohup: a signal that is ignored stays so.
func TestNohup(t *testing.T) {
	cmd := start(t, nil, "bash", "-c", `trap '' HUP; exec "$@"`, "x", tool(t), "run", "-q",
		"--no-live", "--library", testlib.Lib(t),
		"bash", "-c", `trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done`)
	syscall.Kill(cmd.Process.Pid, syscall.SIGHUP)
	pause()
	syscall.Kill(cmd.Process.Pid, syscall.SIGTERM)
	if status := statusOf(testlib.End(cmd)); status != 3 {
		t.Errorf("status %d, not 3", status)
	}
}
