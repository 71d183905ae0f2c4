package tool

import (
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestTopOnce: plain text, also where the output is no terminal, with a line for each tier.
func TestTopOnce(t *testing.T) {
	testlib.Need(t, "perl")
	place := "TA_STATS_LIVE=" + t.TempDir() + "/%p"
	cmd := start(t, preloaded(t, place, "TA_NORMAL_HARD=512M", "TA_NORMAL_SOFT=1M",
		"TA_ON_SOFTCAP=warn"), "perl", "-e", hog)
	pid := strconv.Itoa(cmd.Process.Pid)
	for _, args := range [][]string{{"top", "--once", "--interval", "300ms"},
		{"top", "--interval", "300ms"}} {
		var r testlib.Result
		testlib.Wait(t, "top sees the load", cmd.Process, func() bool {
			r = ctl(t, []string{"TERM=xterm-256color"}, args...)
			line := lineOf(r.Stdout, pid)
			return strings.Contains(line, "perl running") && !strings.Contains(line, " 0 0 B/s ")
		})
		if r.Status != 0 || strings.ContainsAny(r.Stdout, "\x1b\r") {
			t.Errorf("%q: %+v", args, r)
		}
		says(t, r.Stdout, "tieralloc: ", "allocs/s", "bytes/s", "wait/s", "violations", "NORMAL",
			"of 512 MiB hard")
	}
}

// TestTopDamaged: a page that anybody may have left is told of, and does not make top fail.
func TestTopDamaged(t *testing.T) {
	r := inNamespace(t, "printf 'tierlive\\1\\0\\0' > /dev/shm/tieralloc.77; "+
		"head -c 5000 /dev/zero >> /dev/shm/tieralloc.77; ./ctl top --once --interval 100ms")
	if r.Status != 0 || !strings.Contains(r.Stdout, "No live pages.") {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "/dev/shm/tieralloc.77: damaged live page")
}

// TestTopScreen works the keys on a terminal that answers no questions.
func TestTopScreen(t *testing.T) {
	testlib.Need(t, "perl")
	place := "TA_STATS_LIVE=" + t.TempDir() + "/%p"
	start(t, preloaded(t, place), "perl", "-e", hog)
	term := onTerminal(t, nil, tool(t), "top", "--interval", "200ms")
	term.await("\x1b[?1049h", "perl", "q quit", "sort (memory)")
	term.press("s")
	term.await("allocation")
	term.press("p")
	term.await("paused")
	term.press("p")
	term.press("\x1b[B\x1b[A")
	term.press("\r")
	term.await("policy:", "enter back")
	term.press("q")
	if status := term.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	term.await("\x1b[?1049l")
}

// TestTopInterrupted: the terminal is as before when a signal ends it.
func TestTopInterrupted(t *testing.T) {
	term := onTerminal(t, nil, tool(t), "top")
	term.await("q quit")
	term.press("\x03")
	if status := term.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	term.await("\x1b[?1049l")
}

// TestNoQuestions: commands other than top write nothing to a terminal but their text.
func TestNoQuestions(t *testing.T) {
	term := onTerminal(t, nil, tool(t), "topology")
	if status := term.wait(); status != 0 {
		t.Errorf("status %d", status)
	}
	term.await("tiers:")
	if strings.Contains(term.text(), "\x1b") {
		t.Errorf("%q", term.text())
	}
}
