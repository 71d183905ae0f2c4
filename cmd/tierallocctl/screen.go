package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/viewport"
	tea "charm.land/bubbletea/v2"
	"github.com/mattn/go-isatty"
)

// screen is the full-screen view: a list of all processes, or the details of one.
type screen struct {
	interval time.Duration
	last     sample // the newest
	frame    frame
	view     viewport.Model
	sorted   int // index in orders
	paused   bool
	details  bool
}

func newScreen(interval time.Duration) *screen {
	return &screen{interval: interval, view: viewport.New(viewport.WithWidth(80),
		viewport.WithHeight(22))}
}

// isTerminal reports whether a file is a terminal.
func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// runScreen shows a full-screen view until it ends.
func runScreen(out io.Writer, model tea.Model) error {
	_, err := tea.NewProgram(model, tea.WithOutput(out)).Run()
	if errors.Is(err, tea.ErrInterrupted) {
		return nil
	}
	return err
}

// due is the message that the next sample is due.
type due struct{}

func sampleNow() tea.Msg { return takeSample() }

// Init begins with a sample.
func (s *screen) Init() tea.Cmd { return sampleNow }

// Update handles a sample, a key or a new size of the window.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var cmd tea.Cmd
	switch msg := msg.(type) {
	case sample:
		if !s.paused {
			s.frame.list = compareSamples(s.last, msg)
			s.last = msg
		}
		cmd = tea.Tick(s.interval, func(time.Time) tea.Msg { return due{} })
	case due:
		cmd = sampleNow
	case tea.WindowSizeMsg:
		s.view.SetWidth(msg.Width)
		s.view.SetHeight(max(1, msg.Height-2)) // the title and the keys
	case tea.KeyPressMsg:
		cmd = s.key(msg)
	}
	s.draw()
	return s, cmd
}

// key handles a key.
func (s *screen) key(msg tea.KeyPressMsg) tea.Cmd {
	switch msg.String() {
	case "q", "ctrl+c":
		return tea.Quit
	case "ctrl+z":
		return tea.Suspend
	case "up", "k":
		s.move(-1)
	case "down", "j":
		s.move(1)
	case "pgup", "pgdown":
		if s.details {
			var cmd tea.Cmd
			s.view, cmd = s.view.Update(msg)
			return cmd
		}
		s.move(map[string]int{"pgup": -10, "pgdown": 10}[msg.String()])
	case "enter":
		s.details = !s.details && s.current() != nil
		s.view.GotoTop()
	case "esc":
		s.details = false
	case "s":
		s.sorted = (s.sorted + 1) % len(orders)
	case "p":
		s.paused = !s.paused
	}
	return nil
}

// move selects another process, or scrolls the details.
func (s *screen) move(by int) {
	if s.details {
		s.view.SetYOffset(s.view.YOffset() + by)
		return
	}
	at := min(max(0, max(0, s.at())+by), len(s.frame.list)-1)
	if at >= 0 {
		s.frame.selected = s.frame.list[at].key()
	}
}

// at returns the index of the selected process, or -1.
func (s *screen) at() int {
	return slices.IndexFunc(s.frame.list,
		func(a activity) bool { return a.key() == s.frame.selected })
}

// current returns the selected process, nil if there is none.
func (s *screen) current() *activity {
	if at := s.at(); at >= 0 {
		return &s.frame.list[at]
	}
	return nil
}

// draw puts the list or the details into the view.
func (s *screen) draw() {
	s.frame.order = orders[s.sorted]
	s.frame.order.sort(s.frame.list)
	a := s.current()
	s.details = s.details && a != nil
	if a == nil && len(s.frame.list) > 0 {
		s.frame.selected = s.frame.list[0].key()
	}
	if s.details {
		s.view.SetContent(detail(a))
		return
	}
	if len(s.frame.list) == 0 {
		if s.last.at.IsZero() {
			s.view.SetContent("The live pages are being read.")
			return
		}
		s.view.SetContent(noPages)
		return
	}
	lines, at := s.frame.lines()
	lines[0] = headerStyle.Render(lines[0])
	if at > 0 {
		lines[at] = selectedStyle.Render(lines[at])
	}
	s.view.SetContent(strings.Join(lines, "\n"))
	if at == 1 {
		at = 0 // with the header
	}
	s.view.EnsureVisible(at, 0, 0)
}

// detail returns all figures of a process.
func detail(a *activity) string {
	if a.report == nil {
		return "no figures yet: they come with the first allocations"
	}
	var text strings.Builder
	text.WriteString(stateWords(a.state) + "; figures from " + duration(uint64(a.age)) + " ago, " +
		printable(a.path) + "\n")
	describe(&text, a.report)
	return text.String()
}

// View returns the contents of the terminal.
func (s *screen) View() tea.View {
	title := s.frame.title()
	switch {
	case s.paused:
		title += " - paused"
	case s.last.err != nil:
		title += " - some pages are not shown: tierallocctl stats"
	}
	help := "q quit  ↑↓ select  enter details  s sort (" + s.frame.order.name + ")  p pause"
	if s.details {
		help = "q quit  ↑↓ scroll  enter back  p pause"
	}
	view := tea.NewView(titleStyle.Render(title) + "\n" + s.view.View() + "\n" +
		helpStyle.Render(help))
	view.AltScreen = true
	return view
}
