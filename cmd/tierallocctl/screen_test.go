package main

import (
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"tieralloc/stats/live"
)

// shownBy is the screen's text without colours.
func shownBy(s *screen) string { return ansi.Strip(s.View().Content) }

func press(s *screen, keys ...tea.KeyPressMsg) (cmd tea.Cmd) {
	for _, k := range keys {
		_, cmd = s.Update(k)
	}
	return cmd
}

var (
	down  = tea.KeyPressMsg{Code: tea.KeyDown}
	up    = tea.KeyPressMsg{Code: tea.KeyUp}
	enter = tea.KeyPressMsg{Code: tea.KeyEnter}
	esc   = tea.KeyPressMsg{Code: tea.KeyEscape}
)

func letter(c rune) tea.KeyPressMsg { return tea.KeyPressMsg{Code: c, Text: string(c)} }

// marked is the line of the selected process.
func marked(s *screen) string {
	for line := range strings.Lines(shownBy(s)) {
		if strings.HasPrefix(line, ">") {
			return line
		}
	}
	return ""
}

func threeProcesses(t *testing.T) sample {
	var pages []*page
	for i, name := range []string{"alpha", "beta", "gamma"} {
		p := process(t, 100+i, int64(i), live.Running)
		p.program = name
		p.report.Program = name
		p.report.Heap.BytesCommitted = uint64(3-i) << 30
		pages = append(pages, p)
	}
	return sample{at: time.Now(), pages: pages}
}

func TestScreenEmpty(t *testing.T) {
	s := newScreen(time.Second)
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	if text := shownBy(s); !strings.Contains(text, "are being read") ||
		strings.Contains(text, "No live pages") {
		t.Errorf("before the first sample: %s", text)
	}
	s.Update(sample{at: time.Now()})
	if text := shownBy(s); !strings.Contains(text, "No live pages") {
		t.Errorf("%s", text)
	}
	for _, k := range []tea.KeyPressMsg{down, up, enter, esc, letter('s'), letter('p')} {
		press(s, k)
	}
	if text := shownBy(s); !strings.Contains(text, "0 running") ||
		!strings.Contains(text, "paused") {
		t.Errorf("%s", text)
	}
}

func TestScreenSelects(t *testing.T) {
	s := newScreen(time.Second)
	s.Update(threeProcesses(t))
	for _, c := range []struct {
		key  tea.KeyPressMsg
		want string
	}{
		{up, "alpha"}, {down, "beta"}, {down, "gamma"}, {down, "gamma"}, {letter('k'), "beta"},
		{letter('j'), "gamma"},
		{tea.KeyPressMsg{Code: tea.KeyPgUp}, "alpha"},
		{tea.KeyPressMsg{Code: tea.KeyPgDown}, "gamma"},
	} {
		press(s, c.key)
		if !strings.Contains(marked(s), c.want) {
			t.Errorf("after %s %q is selected, not %s", c.key, marked(s), c.want)
		}
	}
	// The selection stays with the process, not with the line.
	next := threeProcesses(t)
	next.pages[2].report.Heap.BytesCommitted = 9 << 30
	s.Update(next)
	if !strings.Contains(marked(s), "gamma") {
		t.Errorf("%q is selected", marked(s))
	}
	next.pages = next.pages[:2]
	s.Update(next)
	if !strings.Contains(marked(s), "alpha") {
		t.Errorf("when the selected process is gone %q is selected", marked(s))
	}
}

func TestScreenDetails(t *testing.T) {
	s := newScreen(time.Second)
	s.Update(tea.WindowSizeMsg{Width: 100, Height: 60})
	s.Update(threeProcesses(t))
	press(s, down, enter)
	if text := shownBy(s); !strings.Contains(text, "beta (process 4242)") ||
		!strings.Contains(text, "routed slow at hard cap") {
		t.Errorf("details:\n%s", text)
	}
	press(s, esc)
	if text := shownBy(s); strings.Contains(text, "routed slow") ||
		!strings.Contains(marked(s), "beta") {
		t.Errorf("back:\n%s", text)
	}
	press(s, enter, enter)
	if !strings.Contains(marked(s), "beta") {
		t.Error("enter does not lead back")
	}
	press(s, enter)
	s.Update(sample{})
	if text := shownBy(s); strings.Contains(text, "beta") {
		t.Errorf("details of a process that is gone:\n%s", text)
	}
}

func TestScreenPauses(t *testing.T) {
	s := newScreen(time.Second)
	s.Update(threeProcesses(t))
	press(s, letter('p'))
	if _, cmd := s.Update(sample{}); cmd == nil {
		t.Error("the clock stops")
	}
	if !strings.Contains(shownBy(s), "alpha") {
		t.Error("the picture changes while it is paused")
	}
	press(s, letter('p'))
	s.Update(sample{})
	if strings.Contains(shownBy(s), "alpha") {
		t.Error("the picture stays when it is no longer paused")
	}
}

func TestScreenSorts(t *testing.T) {
	s := newScreen(time.Second)
	s.Update(threeProcesses(t))
	for i := range 2 * len(orders) {
		if want := "sort (" + orders[i%len(orders)].name +
			")"; !strings.Contains(shownBy(s), want) {
			t.Errorf("step %d: no %q", i, want)
		}
		press(s, letter('s'))
	}
}

func TestScreenQuits(t *testing.T) {
	for _, k := range []tea.KeyPressMsg{letter('q'), {Code: 'c', Mod: tea.ModCtrl}} {
		cmd := press(newScreen(time.Second), k)
		if cmd == nil {
			t.Fatalf("%s does nothing", k)
		}
		if _, ok := cmd().(tea.QuitMsg); !ok {
			t.Errorf("%s does not quit", k)
		}
	}
}

// TestScreenSmall: the selected process is always to be seen, whatever the size.
func TestScreenSmall(t *testing.T) {
	for _, height := range []int{0, 1, 3, 4, 6, 8, 40} {
		s := newScreen(time.Second)
		s.Update(threeProcesses(t))
		s.Update(tea.WindowSizeMsg{Width: 60, Height: height})
		for _, want := range []string{"beta", "gamma"} {
			press(s, down)
			if !strings.Contains(marked(s), want) {
				t.Errorf("height %d: %s is not to be seen in\n%s", height, want, shownBy(s))
			}
		}
		if lines := strings.Count(shownBy(s), "\n") + 1; lines > max(3, height) {
			t.Errorf("height %d: %d lines", height, lines)
		}
	}
}
