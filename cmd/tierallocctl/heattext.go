package main

import (
	"fmt"
	"image/color"
	"strings"

	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/jedib0t/go-pretty/v6/table"
)

// heatPlain are the characters of a cell without colour, from cold to hot, and of unknown heat.
const (
	heatPlain        = ".:-=+*#%@"
	heatPlainUnknown = "?"
)

// Marks of a cell: its tier, or that something moved.
var heatMarks = [...]string{"'", " ", "_"}

const (
	heatUp, heatDown, heatBoth = "^", "v", "x"
)

// mark is what a cell has beside its heat.
func (c *heatCell) mark() string {
	switch {
	case c.up && c.down:
		return heatBoth
	case c.up:
		return heatUp
	case c.down:
		return heatDown
	}
	return heatMarks[min(c.tier, len(heatMarks)-1)]
}

// plain is the character of a position of the scale.
func plain(position float64) string {
	i := int(position * float64(len(heatPlain)))
	return heatPlain[min(i, len(heatPlain)-1):][:1]
}

// heatLabel is the width of what is left of the cells.
const heatLabel = 15

func heatCellWidth(colour bool) int {
	if colour {
		return 1
	}
	return 2
}

// heatColumns is how many samples a terminal of a width shows.
func heatColumns(width int, colour bool) int {
	return max(1, (width-heatLabel)/heatCellWidth(colour))
}

// text draws the map for a terminal, with so many moves.
func (g *heatGrid) text(colour bool, moves int) string {
	var b strings.Builder
	for i, line := range g.lines {
		if line.gap != 0 {
			fmt.Fprintf(&b, "%*s  ~ %s that are not heap ~\n", heatLabel-2, "", size(line.gap))
		}
		fmt.Fprintf(&b, "%*x |", heatLabel-2, line.start)
		for k := range g.cells[i] {
			b.WriteString(g.cellText(&g.cells[i][k], colour))
		}
		b.WriteByte('\n')
	}
	g.axis(&b, heatCellWidth(colour))
	g.legend(&b, colour)
	b.WriteString(g.movesTable(moves))
	return b.String()
}

// cellText draws a cell.
func (g *heatGrid) cellText(c *heatCell, colour bool) string {
	switch {
	case !c.used && colour:
		return " "
	case !c.used:
		return "  "
	case colour:
		return painted(g.colourOf(c), c.mark())
	case !c.known:
		return heatPlainUnknown + c.mark()
	}
	return plain(g.position(c.heat)) + c.mark()
}

// painted writes text on a colour, dark or light as it can be read.
func painted(back color.RGBA, text string) string {
	front := lipgloss.Color("#ffffff")
	if 3*int(back.R)+6*int(back.G)+int(back.B) > 1270 {
		front = lipgloss.Color("#000000")
	}
	return lipgloss.NewStyle().Background(back).Foreground(front).Render(text)
}

// axis labels some samples with their time.
func (g *heatGrid) axis(b *strings.Builder, width int) {
	ticks := strings.Repeat(" ", heatLabel-1) + "+"
	labels := strings.Repeat(" ", heatLabel)
	for k, s := range g.seconds {
		at := heatLabel + k*width
		label := timeLabel(s)
		mark := "-"
		if room := k == 0 || len(g.seconds)-k > 8; len(labels) <= at && k*width%10 == 0 && room ||
			k == len(g.seconds)-1 {
			labels += strings.Repeat(" ", max(0, at-len(labels))) + label + " "
			mark = "|"
		}
		ticks += mark + strings.Repeat("-", width-1)
	}
	fmt.Fprintf(b, "%s\n%s\n", ticks, strings.TrimRight(labels, " "))
}

// legend explains colours and marks.
func (g *heatGrid) legend(b *strings.Builder, colour bool) {
	b.WriteString("touches per page and second: " + touches(g.at(0)) + " or less ")
	const steps = 18
	for i := range steps {
		switch position := float64(i) / (steps - 1); {
		case colour:
			b.WriteString(painted(heatColour(position), " "))
		case i%2 == 0:
			b.WriteString(plain(position))
		}
	}
	unknown := heatPlainUnknown
	if colour {
		unknown = painted(heatUnknown, " ")
	}
	b.WriteString(" " + touches(g.hottest) + "; not yet known " + unknown + "\nmemory in")
	for t, mark := range heatMarks {
		if g.tiers[t] {
			fmt.Fprintf(b, " %s [%s]", tierNames[t], mark)
		}
	}
	b.WriteString("; moved up [" + heatUp + "], down [" + heatDown + "], both [" + heatBoth +
		"]; one column is one sample\n")
}

// movesTable lists the last moves.
func (g *heatGrid) movesTable(most int) string {
	if len(g.moves) == 0 {
		return "nothing has moved\n"
	}
	if most == 0 {
		return ""
	}
	t := newTable(">moved at", "addresses", ">bytes", "from", "to", "cause")
	for _, m := range g.lastMoves(most) {
		t.AppendRow(table.Row{timeLabel(m.seconds), fmt.Sprintf("%x-%x", m.Start, m.End),
			size(m.Bytes), heatTier(m.From), heatTier(m.To), heatCauses[m.Cause]})
	}
	return ansi.Strip(t.Render()) + "\n"
}
