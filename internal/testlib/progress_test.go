package testlib

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A command that works for longer than its limit is left to end.
func TestRunWorks(t *testing.T) {
	r, err := run(Cmd{Args: []string{"bash", "-c", "for ((i = 0; i < 400000; i++)); do :; done; echo end; exit 3"}, Timeout: 300 * time.Millisecond})
	if err != nil || r.Stdout != "end\n" || r.Status != 3 {
		t.Errorf("%+v, %v", r, err)
	}
}

// So is one whose children do the work.
func TestRunChildrenWork(t *testing.T) {
	r, err := run(Cmd{Args: []string{"sh", "-c", "bash -c 'for ((i = 0; i < 400000; i++)); do :; done'; echo end"}, Timeout: 300 * time.Millisecond})
	if err != nil || r.Stdout != "end\n" {
		t.Errorf("%+v, %v", r, err)
	}
}

// A command that waits for nothing is ended with its children.
func TestRunStandsStill(t *testing.T) {
	r, err := run(Cmd{Args: []string{"bash", "-c", "sleep 1000 & echo $!; wait"}, Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "stood still") {
		t.Fatalf("%+v, %v", r, err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(r.Stdout))
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 { // killed, it may take its time to go
		p, ok := readProcess(child)
		if !ok || p.state == "Z" || p.state == "X" {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the child lives on")
}

func TestRunRunsAway(t *testing.T) {
	r, err := run(Cmd{Args: []string{"bash", "-c", "while :; do :; done"}, Timeout: 500 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "processor time") {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestWait(t *testing.T) {
	cmd := exec.Command("bash", "-c", "for ((i = 0; i < 100000; i++)); do :; done")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	Wait(t, "its end", cmd.Process, func() bool {
		p, ok := readProcess(cmd.Process.Pid)
		return !ok || p.state == "Z"
	})
	if err := End(cmd); err != nil {
		t.Error(err)
	}
}
