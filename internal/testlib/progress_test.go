package testlib

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// What a tree with a limit of a second is taken for, looked at so many times, by how much of each
// period it is on a processor.
func TestProgress(t *testing.T) {
	const limit = time.Second
	for _, c := range []struct {
		name         string
		period, used time.Duration
		looks        int
		want         string // the beginning of the answer
	}{
		{"works", limit / 10, limit / 10, 99, ""},
		{"works beside busy neighbours", limit / 2, limit / 200, 119, ""},
		{"runs away", limit / 10, limit / 10, 101, "used "},
		{"stands still", limit / 10, 0, 11, "stood still for 1s"},
		{"hardly moves", limit / 10, limit / 100000, 11, "stood still for 1s"},
		{"polls for ever", limit / 2, limit / 200, 121, "has not ended in 1m0s"},
	} {
		start := time.Unix(0, 0)
		w := &tree{limit: limit, start: start, begun: start}
		for i := 1; i < c.looks; i++ {
			if got := w.seen(start.Add(time.Duration(i)*c.period),
				time.Duration(i)*c.used); got != "" {
				t.Errorf("%s: look %d of %d: %s", c.name, i, c.looks, got)
			}
		}
		last := time.Duration(c.looks)
		if got := w.seen(start.Add(last*c.period), last*c.used); !strings.HasPrefix(got, c.want) ||
			(got == "") != (c.want == "") {
			t.Errorf("%s: %q, not %q", c.name, got, c.want)
		}
	}
}

// A child that is gone takes its time with it; that is no step back.
func TestProgressOrphan(t *testing.T) {
	start := time.Unix(0, 0)
	w := &tree{limit: time.Second, start: start, begun: start}
	for i, sum := range []time.Duration{time.Second, 0, time.Second} {
		if got := w.seen(start.Add(time.Duration(i)*time.Second), sum); got != "" {
			t.Errorf("look %d: %s", i, got)
		}
	}
	if w.used != 2*time.Second {
		t.Errorf("%v used, not 2s", w.used)
	}
}

// The work of children counts.
func TestProgressOfChildren(t *testing.T) {
	cmd := exec.Command("bash", "-c", "(while :; do :; done); exit")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w := watch(cmd.Process.Pid, time.Hour)
	for w.used == 0 {
		if why := w.stuck(); why != "" {
			t.Fatal(why)
		}
		time.Sleep(time.Millisecond)
	}
	w.kill()
	_ = cmd.Wait()
}

// What is born while the tree is killed ends, too.
func TestKillBirths(t *testing.T) {
	for range 5 {
		cmd := exec.Command("bash", "-c", "for ((i = 0; i < 50; i++)); do sleep 1000 & done; wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		group := cmd.Process.Pid
		for len(family(group)) < 3 {
			time.Sleep(time.Millisecond)
		}
		watch(group, time.Hour).kill()
		_ = cmd.Wait()
		for end := time.Now().Add(time.Minute); alive(group); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				_ = syscall.Kill(-group, syscall.SIGKILL)
				t.Fatal("some live on")
			}
		}
	}
}

// alive reports whether a process group has members that are not zombies.
func alive(group int) bool {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range stats {
		text, _ := os.ReadFile(file)
		_, rest, _ := strings.Cut(string(text), ") ")
		f := strings.Fields(rest)
		if len(f) > 2 && f[2] == strconv.Itoa(group) && f[0] != "Z" && f[0] != "X" {
			return true
		}
	}
	return false
}

// A command that waits for nothing is ended with its children.
func TestRunStandsStill(t *testing.T) {
	r, err := run(Cmd{Args: []string{"bash", "-c", "sleep 1000 & echo $!; wait"},
		Timeout: time.Second})
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

// A process that has ended, and that nobody has waited for, is not said to stand still.
func TestStuckAtEnd(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w, why := watch(cmd.Process.Pid, 100*time.Millisecond), ""
	for ; why == ""; why = w.stuck() {
		time.Sleep(time.Millisecond)
	}
	if why != "has ended" {
		t.Error(why)
	}
	_ = cmd.Wait()
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
