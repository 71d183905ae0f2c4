package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/charmbracelet/colorprofile"
	"github.com/spf13/cobra"

	"tieralloc/stats/live"
)

const heatHelp = `Draw how hot the heap of a process is that moves memory by its use
(TA_ON_SOFTCAP=follow): addresses downwards, time to the right. PID names a process with a live
page, and FILE is a live page.

A cell is the memory of some addresses at one sample. Its colour, or its character, is the heat
as touches per page and second, on a logarithmic scale. Its mark is the tier, or that memory
has moved there. A list of the last moves follows, each with its cause:

  cap exceeded   its tier was over the soft cap
  room           the faster tier had room
  hotter         it took the place of colder memory
  colder         it made room for hotter memory
  paged out      the kernel took it for TA_SLOW_BACKEND=swap

The library keeps the last 64 samples and 256 moves, so the map shows what happened before the
command was started. Addresses that are no heap are left out.

With --once, or if the output is not a terminal, the command prints one map. Without colours it
is plain ASCII.`

// Sizes of a map that is not on a full screen.
const (
	heatLines     = 32 // of addresses
	heatSVGLines  = 160
	heatMostLines = 2000
	heatMoves     = 12
	heatWidth     = 80
)

func heatCommand() *cobra.Command {
	var interval time.Duration
	var once bool
	var svg string
	var lines int
	cmd := &cobra.Command{
		Use:   "heat PID|FILE",
		Short: "Draw how hot the heap of a process is, and what moved between tiers",
		Long:  heatHelp,
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeProcesses,
		RunE: func(cmd *cobra.Command, args []string) error {
			out := cmd.OutOrStdout()
			if interval < shortest {
				return wrongInterval(interval)
			}
			if lines < 0 || lines > heatMostLines {
				return usage("--lines %d: expected a number up to %d", lines, heatMostLines)
			}
			p, err := heatPage(args[0])
			if err != nil {
				return err
			}
			switch {
			case svg != "":
				return writeFile(svg, out, func(w io.Writer) error {
					return heatPicture(w, p, lines)
				})
			case once || !isTerminal(out) || !isTerminal(os.Stdin):
				colour := hasHeatColours(colorprofile.Detect(out, os.Environ()))
				if colour {
					out = colorprofile.NewWriter(out, os.Environ()) // to the colours it has
				}
				return heatOnce(out, p, lines, colour)
			}
			return runScreen(out, &heatScreen{name: args[0], interval: interval, page: p,
				width: heatWidth, height: 24, colour: true})
		},
	}
	cmd.Flags().DurationVar(&interval, "interval", time.Second, "`TIME` between updates")
	cmd.Flags().BoolVar(&once, "once", false, "print one map")
	cmd.Flags().StringVar(&svg, "svg", "", "write an SVG picture to `FILE`, - for the output")
	cmd.Flags().IntVar(&lines, "lines", 0, "about `N` lines of addresses (with --once or --svg)")
	return cmd
}

// hasHeatColours reports whether a terminal has colours enough for the scale.
func hasHeatColours(p colorprofile.Profile) bool { return p >= colorprofile.ANSI256 }

// heatPage reads the live page of a process, by its number, or of a file. There is a sample.
func heatPage(name string) (*page, error) {
	var p *page
	var err error
	if pid, ok := processNumber(name); ok {
		p, err = findPage(pid, heatSnapshot)
	} else {
		p, err = readPage(name, heatSnapshot)
	}
	switch {
	case err != nil:
		return nil, err
	case p.other != nil:
		return nil, p.other
	case errors.Is(p.noHeat, live.ErrNoHistory):
		return nil, fmt.Errorf("process %d does not measure heat: start it with "+
			"TA_ON_SOFTCAP=follow", p.pid)
	case p.noHeat != nil:
		return nil, p.noHeat
	case len(p.heat.Samples) == 0:
		return nil, fmt.Errorf("process %d has no sample of heat yet: the first one comes when a "+
			"tier is half as full as its cap lets it be", p.pid)
	}
	return p, nil
}

// heatSnapshot is snapshot with what the page has kept of heat.
func heatSnapshot(file *live.Page) (*page, error) {
	p, err := snapshot(file)
	if err == nil && p.other == nil {
		p.heat, p.noHeat = file.History()
	}
	return p, err
}

// heatTitle says whose heap a map shows.
func heatTitle(p *page) string {
	samples := p.heat.Samples
	last := samples[len(samples)-1]
	heap := uint64(0)
	for _, r := range last.Rows {
		heap += uint64(r.Pages) << 12
	}
	ago := max(0, time.Since(time.Unix(0, int64(last.UnixNs))))
	return fmt.Sprintf("%s, process %d, %s: %s of heap, %s in %s; the last one %s ago", p.program,
		p.pid, p.state, size(heap), plural(len(samples), "sample"),
		duration(uint64(max(0, secondsAfter(samples[0].UnixNs, last.UnixNs)*1e9))),
		duration(uint64(ago)))
}

func heatOnce(w io.Writer, p *page, lines int, colour bool) error {
	g := newHeatGrid(p.heat, cmp.Or(lines, heatLines), heatColumns(heatWidth, colour))
	_, err := io.WriteString(w, heatTitle(p)+"\n"+g.text(colour, heatMoves))
	return err
}

func heatPicture(w io.Writer, p *page, lines int) error {
	g := newHeatGrid(p.heat, cmp.Or(lines, heatSVGLines), len(p.heat.Samples))
	return g.svg(w, heatTitle(p))
}
