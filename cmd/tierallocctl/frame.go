package main

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"charm.land/bubbles/v2/progress"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/jedib0t/go-pretty/v6/table"
)

// frame shows all processes. It has a line for each process, and below it one for each of its tiers
// in use.
type frame struct {
	list     []activity
	order    order
	selected processKey
}

// title returns the line with the sums over all processes.
func (f *frame) title() string {
	running, memory, sum := 0, uint64(0), rates{}
	for i := range f.list {
		a := &f.list[i]
		if a.state.Dead() {
			continue
		}
		running++
		memory += a.memory()
		sum.allocs += a.rates.allocs
		sum.bytes += a.rates.bytes
	}
	return fmt.Sprintf("tieralloc: %d running, %d ended; memory %s, %s allocations/s, %s",
		running, len(f.list)-running, size(memory), rate(sum.allocs), byteRate(sum.bytes))
}

// lines draws the table. at is the number of the selected process's line, or 0, the header's.
func (f *frame) lines() (lines []string, at int) {
	header := table.Row{"", ">pid", "program", "state", ">age", ">memory", "of cap", ">allocs/s",
		">bytes/s", ">wait/s", ">moved/s", ">violations"}
	if f.follows() {
		header = append(header, ">hot", ">cold")
	}
	t := newTable(header...)
	n := 0 // lines below the header
	for i := range f.list {
		a := &f.list[i]
		mark := " "
		n++
		if a.key() == f.selected {
			mark, at = ">", n
		}
		t.AppendRow(table.Row{mark, a.pid, a.program, a.state, duration(uint64(a.age)),
			size(a.memory()), "",
			rate(a.rates.allocs), byteRate(a.rates.bytes), waitRate(a.rates.wait),
			rate(a.rates.moved), count(a.violations())})
		if a.report == nil {
			continue
		}
		for k, tier := range a.report.tiers() {
			if shown(tier) {
				row := tierRow(tierNames[k], tier, a.tiers[k])
				if a.report.Following != nil {
					row = append(row, size(tier.BytesHot), size(tier.BytesCold))
				}
				t.AppendRow(row)
				n++
			}
		}
		for k, d := range a.report.Devices {
			for _, row := range deviceRows(d, a.devices[k]) {
				t.AppendRow(row)
				n++
			}
		}
	}
	return strings.Split(t.Render(), "\n"), at
}

// follows reports whether some process moves memory by its use.
func (f *frame) follows() bool {
	return slices.ContainsFunc(f.list, func(a activity) bool {
		return a.report != nil && a.report.Following != nil
	})
}

// shown reports whether a tier was used or has a cap.
func shown(t *tier) bool {
	return t.BytesPeak|t.CapacitySoft|t.CapacityHard|t.CapacityViolations != 0
}

func tierRow(name string, t *tier, r rates) table.Row {
	return table.Row{"", "", "  " + name, "", "", size(t.BytesCurrent), bar(t),
		rate(r.allocs), byteRate(r.bytes), waitRate(r.wait), rate(r.moved),
		count(t.CapacityViolations)}
}

// deviceRows returns the rows of a device and of its spilled memory.
func deviceRows(d *device, r rates) []table.Row {
	name := fmt.Sprintf("GPU %d", d.Ordinal)
	rows := []table.Row{tierRow(name, d.Tiers.Fast, r)}
	if d.BytesTotalSpilled != 0 {
		rows = append(rows, tierRow(name+" spilled", d.Tiers.Slow, rates{}))
	}
	return rows
}

// waitRate formats a time per second.
func waitRate(v float64) string {
	if v <= 0 {
		return "0"
	}
	return duration(uint64(v))
}

// bar shows how much of its cap a tier uses: of the hard cap, or of the soft cap if it has no hard
// one.
func bar(t *tier) string {
	most, which := t.CapacityHard, "hard"
	if most == 0 {
		most, which = t.CapacitySoft, "soft"
	}
	if most == 0 {
		return ""
	}
	var colour color.Color = lipgloss.Green
	switch {
	case t.CapacityHard != 0 && t.BytesCurrent >= t.CapacityHard/100*95:
		colour = lipgloss.Red
	case t.CapacitySoft != 0 && t.BytesCurrent > t.CapacitySoft:
		colour = lipgloss.Yellow
	}
	drawn := progress.New(progress.WithColors(colour), progress.WithoutPercentage(),
		progress.WithWidth(10),
		progress.WithFillCharacters('█', '░'))
	return drawn.ViewAs(float64(t.BytesCurrent)/float64(most)) + " " +
		percent(t.BytesCurrent, most) + " of " + size(most) + " " + which
}

// String returns the frame as plain text.
func (f *frame) String() string {
	lines, _ := f.lines()
	if len(f.list) == 0 {
		lines = []string{noPages}
	}
	return ansi.Strip(f.title() + "\n" + strings.Join(lines, "\n") + "\n")
}

// Styles of the screen.
var (
	titleStyle    = lipgloss.NewStyle().Bold(true)
	headerStyle   = lipgloss.NewStyle().Underline(true)
	selectedStyle = lipgloss.NewStyle().Bold(true)
	helpStyle     = lipgloss.NewStyle().Faint(true)
)
