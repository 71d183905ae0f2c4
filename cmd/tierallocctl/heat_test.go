package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"tieralloc/stats"
	"tieralloc/stats/history"
	"tieralloc/stats/live"
)

const mibPages = 1 << 20 >> 12

// someHistory is a heap of 8 MiB in SLOW and, behind a gap, 8 MiB in NORMAL, a sample a second.
// From the third sample on the first MiB is hot, and after the fourth it goes up.
func someHistory() *live.History {
	h := &live.History{}
	for k := range uint64(6) {
		s := live.Sample{UnixNs: 1e18 + k*1e9}
		for i := range uint64(16) {
			r := stats.HeatRow{Start: 1<<40 + i<<20, Pages: mibPages, Heat: history.Level(0.5),
				Tier: 2}
			switch {
			case i >= 8:
				r.Start, r.Tier, r.Heat = r.Start+1<<30, 1, history.Untouched
			case i == 0 && k >= 2:
				r.Heat = history.Level(100)
			}
			if i == 0 && k >= 4 {
				r.Tier = 1
			}
			if k == 0 {
				r.Heat = history.Unknown
			}
			s.Rows = append(s.Rows, r)
		}
		h.Samples = append(h.Samples, s)
	}
	const at = 1e18 + 3.5e9
	h.Moves = []stats.HeatMove{
		{UnixNs: at, Start: 1<<40 + 1<<30 + 15<<20, End: 1<<40 + 1<<30 + 16<<20, Bytes: 1 << 20,
			From: 1, To: 2, Cause: stats.HeatColder},
		{UnixNs: at + 1, Start: 1 << 40, End: 1<<40 + 1<<20, Bytes: 1 << 20, From: 2, To: 1,
			Cause: stats.HeatHotter}}
	return h
}

const heatGolden = `  10000000000 |?_=_@_@_@^@ 
  10000100000 |?_=_=_=_=_=_
  10000200000 |?_=_=_=_=_=_
  10000300000 |?_=_=_=_=_=_
  10000400000 |?_=_=_=_=_=_
  10000500000 |?_=_=_=_=_=_
  10000600000 |?_=_=_=_=_=_
  10000700000 |?_=_=_=_=_=_
               ~ 1.0 GiB that are not heap ~
  10040800000 |? . . . . . 
  10040900000 |? . . . . . 
  10040a00000 |? . . . . . 
  10040b00000 |? . . . . . 
  10040c00000 |? . . . . . 
  10040d00000 |? . . . . . 
  10040e00000 |? . . . . . 
  10040f00000 |? . . . .v. 
              +|---------|-
               -5.0s     0s
touches per page and second: 0.0097 or less .:-=+*#%@ 97; not yet known ?
memory in NORMAL [ ] SLOW [_]; moved up [^], down [v], both [x]; one column is one sample
moved at  addresses                  bytes  from    to      cause
   -1.5s  10000000000-10000100000  1.0 MiB  SLOW    NORMAL  hotter
   -1.5s  10040f00000-10041000000  1.0 MiB  NORMAL  SLOW    colder
`

func TestHeatText(t *testing.T) {
	g := newHeatGrid(someHistory(), 16, 40)
	if got := g.text(false, 12); got != heatGolden {
		t.Errorf("\n%s", got)
	}
	coloured := g.text(true, 12)
	if !strings.Contains(coloured, "\x1b[") || strings.Contains(ansi.Strip(coloured), "\x1b") {
		t.Errorf("%q", coloured)
	}
	if n := strings.Count(coloured, "48;2;252;255;164m"); n < 4 {
		t.Errorf("%d cells are hot", n)
	}
}

var svgNumber = regexp.MustCompile(`NaN|Inf|="-[0-9]+"`)

// checkSVG tests that a picture is well-formed and has no number that is none.
func checkSVG(t *testing.T, picture string) (elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	d := xml.NewDecoder(strings.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in %s", err, picture)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	if bad := svgNumber.FindString(picture); bad != "" || !utf8.ValidString(picture) {
		t.Errorf("%q in %s", bad, picture)
	}
	return elements
}

func TestHeatSVG(t *testing.T) {
	var b bytes.Buffer
	if err := newHeatGrid(someHistory(), 16, 40).svg(&b, "a <b> & \x1b\xff"); err != nil {
		t.Fatal(err)
	}
	picture := b.String()
	n := checkSVG(t, picture)
	if n["linearGradient"] != 1 || n["rect"] < 40 {
		t.Errorf("%v", n)
	}
	for _, words := range []string{"a &lt;b&gt; &amp;", ">10000000000<", ">-5.0s<", ">hotter<",
		">colder<", ">moved up<", ">SLOW<", "1.0 GiB that are not heap", "url(#tier2)",
		hex(heatColour(1))} {
		if !strings.Contains(picture, words) {
			t.Errorf("%q is missing in %s", words, picture)
		}
	}
	// Each move has an arrow, and the legend has one of each.
	if strings.Count(picture, `fill="#fff" stroke="#000" stroke-width="0.8"`) != 2 ||
		strings.Count(picture, `fill="#000" stroke="#fff" stroke-width="0.8"`) != 2 {
		t.Error(picture)
	}
}

// TestHeatAnything: whatever a page keeps is drawn, with the lines that were asked for or a few
// more, and the lines are in order.
func TestHeatAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		h := &live.History{}
		for range 1 + rng.IntN(8) {
			s := live.Sample{UnixNs: rng.Uint64()}
			starts := make([]uint64, rng.IntN(60))
			for i := range starts {
				starts[i] = rng.Uint64() >> rng.IntN(50) &^ 4095
			}
			slices.Sort(starts)
			starts = slices.Compact(starts)
			for i, start := range starts {
				pages := uint64(1<<32 - 1)
				if i+1 < len(starts) {
					pages = min(pages, (starts[i+1]-start)>>12)
				}
				pages = min(pages, -start>>12-1)
				if pages > 0 {
					s.Rows = append(s.Rows, stats.HeatRow{Start: start, Pages: uint32(pages),
						Heat: uint8(rng.Uint32()), Tier: uint8(rng.IntN(3))})
				}
			}
			h.Samples = append(h.Samples, s)
			start := rng.Uint64()
			h.Moves = append(h.Moves, stats.HeatMove{UnixNs: rng.Uint64(), Start: start,
				End: start + 1, Bytes: rng.Uint64(), From: uint8(rng.IntN(4)),
				To: uint8(rng.IntN(4)), Cause: uint8(rng.IntN(int(stats.HeatCauses)))})
		}
		lines := 1 + rng.IntN(50)
		g := newHeatGrid(h, lines, rng.IntN(20))
		if len(g.lines) > lines+max(lines/6, 1) {
			t.Errorf("%d lines, not %d", len(g.lines), lines)
		}
		for i, l := range g.lines {
			if l.start >= l.end || i > 0 && l.start < g.lines[i-1].end {
				t.Fatalf("line %d of %+v", i, g.lines)
			}
		}
		tame(t, g.text(false, 12))
		g.text(true, 0)
		var b bytes.Buffer
		if err := g.svg(&b, "title"); err != nil {
			t.Fatal(err)
		}
		checkSVG(t, b.String())
	}
}

// TestHeatScale: colours become lighter from cold to hot.
func TestHeatScale(t *testing.T) {
	last := -1
	for i := range 101 {
		c := heatColour(float64(i) / 100)
		light := 3*int(c.R) + 6*int(c.G) + int(c.B)
		if light < last {
			t.Errorf("%d%%: %d after %d", i, light, last)
		}
		last = light
	}
	g := heatGrid{hottest: 10}
	for heat, want := range map[float64]float64{10: 1, 0.001: 0, 0: 0, 0.1: 0.5, 99: 1} {
		if got := g.position(heat); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%g is at %g", heat, got)
		}
	}
}
