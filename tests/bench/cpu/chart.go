package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"math"
	"os"
	"text/template"
)

//go:embed chart.svg.tmpl
var chartText string

var chartTemplate = template.Must(template.New("chart").Parse(chartText))

// Places in the chart, in its own units.
const (
	chartLeft  = 110 // room for names
	chartPanel = 380
	chartGap   = 30
	chartTop   = 78
	chartRow   = 19
	// ratios from 1/4 to 4; what is beyond stands at the edge, and is told in numbers
	chartMost = 4.0
)

// Colours that people with any kind of colour vision tell apart (Okabe and Ito's).
var colours = []string{"#000000", "#d55e00", "#0072b2", "#009e73", "#cc79a7", "#e69f00", "#56b4e9",
	"#999999"}

// chart is what the template draws.
type chart struct {
	Width, Height, Left, Bottom int
	About                       string
	Legend                      []mark
	Panels                      []panel
	Rows                        []chartLine
}

type panel struct {
	Title    string
	X, Width int
	Ticks    []tick
}

type tick struct {
	X    float64
	Text string
}

type chartLine struct {
	Name  string
	Y     int
	Bold  bool
	Marks []mark
}

// mark is a contender's figure.
type mark struct {
	X, Y          float64
	Colour, Title string
	Ours          bool
	Edge          string // the ratio, where it is beyond
	EdgeX         float64
	Anchor        string
}

// across is where a ratio stands in a panel, from 0 to 1.
func across(ratio float64) float64 {
	x := math.Log(ratio)/math.Log(chartMost)/2 + 0.5
	return min(max(x, 0), 1)
}

// mark places a contender's ratio.
func (r *results) mark(k int, f figure, left int, y int, ratio float64) mark {
	m := mark{X: float64(left) + across(ratio)*chartPanel, Y: float64(y),
		Colour: colours[k%len(colours)], Ours: k == ours,
		Title: fmt.Sprintf("%s, %s: %.2f", r.all[k].name, f.name, ratio)}
	switch {
	case ratio > chartMost:
		m.Edge, m.EdgeX, m.Anchor = fmt.Sprintf("%.1f", ratio), m.X-8, "end"
	case ratio < 1/chartMost:
		m.Edge, m.EdgeX, m.Anchor = fmt.Sprintf("%.2f", ratio), m.X+8, "start"
	}
	return m
}

// chart lays the results out: the means first, then the workloads.
func (r *results) chart() chart {
	figures := []figure{elapsed, peak}
	c := chart{Left: chartLeft - 8, Width: chartLeft + len(figures)*(chartPanel+chartGap),
		About: fmt.Sprintf("Medians of %d interleaved rounds, %d threads. Less is better.",
			r.rounds, r.thread)}
	for i := range r.rows {
		c.Rows = append(c.Rows, chartLine{Name: r.rows[i].name, Y: chartTop + chartRow*(i+2)})
	}
	c.Rows = append([]chartLine{{Name: "mean", Y: chartTop + chartRow/2, Bold: true}}, c.Rows...)
	c.Bottom = chartTop + chartRow*(len(r.rows)+2)
	c.Height = c.Bottom + 22
	for i, f := range figures {
		left := chartLeft + i*(chartPanel+chartGap)
		p := panel{Title: f.title + ", relative to glibc", X: left, Width: chartPanel}
		for _, t := range []float64{0.25, 0.5, 1, 2, 4} {
			p.Ticks = append(p.Ticks, tick{float64(left) + across(t)*chartPanel, fmt.Sprint(t)})
		}
		c.Panels = append(c.Panels, p)
		// This library's last: what is drawn last is on top.
		for n := range r.all[1:] {
			k := (n+1)%(len(r.all)-1) + 1
			if mean := r.mean(f, k); !math.IsNaN(mean) {
				c.Rows[0].Marks = append(c.Rows[0].Marks, r.mark(k, f, left, c.Rows[0].Y, mean))
			}
			for w := range r.rows {
				line := &c.Rows[w+1]
				if x := r.rows[w].ratios(f, k, 0); x != nil {
					line.Marks = append(line.Marks, r.mark(k, f, left, line.Y, median(x)))
				}
			}
		}
	}
	for k, a := range r.all[1:] {
		c.Legend = append(c.Legend, mark{X: float64(chartLeft + k*120), Y: 24,
			Colour: colours[(k+1)%len(colours)], Title: a.name, Ours: k+1 == ours})
	}
	return c
}

// draw writes the chart to a file.
func (r *results) draw(path string) error {
	var text bytes.Buffer
	if err := chartTemplate.Execute(&text, r.chart()); err != nil {
		return err
	}
	return os.WriteFile(path, text.Bytes(), 0o644)
}
