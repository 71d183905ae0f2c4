package main

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// heatScreen is the heat map on the full screen.
type heatScreen struct {
	name          string // as the command was given it
	interval      time.Duration
	page          *page // the last that could be read
	failed        error // why there is no newer one
	width, height int
	colour        bool
}

// heatRead is a page, or why there is none.
type heatRead struct {
	page *page
	err  error
}

func (s *heatScreen) read() tea.Msg {
	p, err := heatPage(s.name)
	return heatRead{p, err}
}

func (s *heatScreen) wait() tea.Cmd {
	return tea.Tick(s.interval, func(time.Time) tea.Msg { return due{} })
}

// Init waits for the next page: the first one is there.
func (s *heatScreen) Init() tea.Cmd { return s.wait() }

// Update handles a page, a key, a new size of the window or the colours of the terminal.
func (s *heatScreen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case heatRead:
		if s.failed = msg.err; msg.err == nil {
			s.page = msg.page
		}
		return s, s.wait()
	case due:
		return s, s.read
	case tea.WindowSizeMsg:
		s.width, s.height = msg.Width, msg.Height
	case tea.ColorProfileMsg:
		s.colour = hasHeatColours(msg.Profile)
	case tea.KeyPressMsg:
		switch msg.String() {
		case "q", "ctrl+c":
			return s, tea.Quit
		case "ctrl+z":
			return s, tea.Suspend
		}
	}
	return s, nil
}

// View returns the contents of the terminal.
func (s *heatScreen) View() tea.View {
	const around = 7 // title, axis, legend, keys and the header of the moves
	moves := min(heatMoves, max(0, (s.height-around)/4))
	lines := max(1, (s.height-around-moves)*6/7) // a sixth as many gaps
	g := newHeatGrid(s.page.heat, lines, heatColumns(s.width, s.colour))
	help := "q quit"
	if s.failed != nil {
		help += "  " + printable(s.failed.Error())
	}
	view := tea.NewView(titleStyle.Render(heatTitle(s.page)) + "\n" + g.text(s.colour, moves) +
		helpStyle.Render(help))
	view.AltScreen = true
	return view
}
