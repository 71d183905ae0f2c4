package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Sizes in the picture, in pixels.
const (
	curvesWidth  = 960
	curvesLeft   = 80 // of the curves
	curvesRight  = curvesWidth - 20
	curvesTop    = 56
	curvesHeight = 150 // of a panel
	curvesGap    = 64  // from a panel to the next
	curvesLine   = 16  // of text
	curvesEvents = 24  // listed
	curvesPoints = curvesRight - curvesLeft
)

// curvesPicture is the elements of a recording's picture.
type curvesPicture struct {
	svgElements
	r *recording
}

// picture writes the curves of all processes together as SVG.
func (r *recording) picture(w io.Writer) error {
	p := curvesPicture{r: r}
	p.text(10, 22, `font-size="14" font-weight="bold"`, r.title())
	events := r.events()
	y := p.legend(events)
	for _, panel := range r.views()[0].Panels {
		p.panel(panel, events, y)
		y += curvesHeight + curvesGap
	}
	y = p.list(events, y)
	return p.write(w, curvesWidth, y, `fill="#ffffff"`, "")
}

// legend explains the markers that there are, and returns where the panels begin.
func (p *curvesPicture) legend(events []recordEvent) int {
	x := curvesLeft
	for rank, kind := range recordKinds {
		if slices.ContainsFunc(events, func(e recordEvent) bool { return e.rank == rank }) {
			p.marker(x, 34, 8, kind.Colour)
			p.text(x+9, 42, "", kind.Text)
			x += 24 + 7*len(kind.Text)
		}
	}
	return curvesTop + 24
}

// marker draws a triangle on a side at y. It points down if its height is above 0.
func (p *curvesPicture) marker(x, y, height int, colour string) {
	fmt.Fprintf(p, `<path d="M%d,%d h8 l-4,%d z" fill="%s"/>`+"\n", x-4, y, height, colour)
}

// x is where a time is.
func (p *curvesPicture) x(t int64) float64 {
	return curvesLeft + float64(t)/float64(max(1, p.r.end))*(curvesRight-curvesLeft)
}

// panel draws curves below y.
func (p *curvesPicture) panel(panel recordPanel, events []recordEvent, y int) {
	top := uint64(1)
	for _, c := range panel.Curves {
		top = max(top, highest(c.points).v)
	}
	for _, c := range panel.Caps {
		top = max(top, c.Bytes)
	}
	p.text(curvesLeft, y-10, `font-weight="bold"`, panel.Title)
	bottom := y + curvesHeight
	height := func(v uint64) float64 {
		return float64(bottom) - float64(v)/(float64(top)*1.05)*curvesHeight
	}
	for _, v := range byteTicks(top) {
		fmt.Fprintf(p, `<path d="M%d,%.1f H%d" stroke="#e2e2e2"/>`+"\n", curvesLeft, height(v),
			curvesRight)
		p.text(curvesLeft-6, int(height(v))+4, `font-size="10" text-anchor="end"`, size(v))
	}
	p.times(bottom)
	for _, e := range events {
		p.event(e, y, bottom)
	}
	x := curvesLeft + 8*len(panel.Title) + 20
	for _, c := range panel.Curves {
		p.curve(c, height)
		x = p.key(x, y-10, c.Colour, "", c.Name)
	}
	for _, c := range panel.Caps {
		fmt.Fprintf(p, `<path d="M%d,%.1f H%d" stroke="%s" stroke-dasharray="6 3"/>`+"\n",
			curvesLeft, height(c.Bytes), curvesRight, recordCapHue)
		x = p.key(x, y-10, recordCapHue, ` stroke-dasharray="4 2"`, c.Name)
	}
}

// key explains a line, and returns where the next one may be explained.
func (p *curvesPicture) key(x, y int, colour, style, name string) int {
	width := 34 + int(6.2*float64(len(name)))
	if x+width > curvesWidth {
		return x // it has no room; the page shows all
	}
	fmt.Fprintf(p, `<path d="M%d,%d h14" stroke="%s" stroke-width="2"%s/>`+"\n", x, y-4, colour,
		style)
	p.text(x+18, y, `font-size="11"`, name)
	return x + width
}

// times labels the axis of time.
func (p *curvesPicture) times(bottom int) {
	fmt.Fprintf(p, `<path d="M%d,%d H%d" stroke="#000"/>`+"\n", curvesLeft, bottom, curvesRight)
	step := timeStep(p.r.end)
	for t := int64(0); t <= p.r.end; t += step {
		fmt.Fprintf(p, `<path d="M%.1f,%d v4" stroke="#000"/>`+"\n", p.x(t), bottom)
		p.text(int(p.x(t)), bottom+16, `font-size="10" text-anchor="middle"`, seconds(t))
	}
}

// timeStep is a round time, of which eight or less pass until end.
func timeStep(end int64) int64 {
	for _, step := range []int64{100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000,
		120_000, 300_000, 600_000, 1_200_000, 1_800_000} {
		if end/step <= 8 {
			return step
		}
	}
	const hour = 3_600_000
	return (end/8 + hour) / hour * hour
}

// byteTicks are some round numbers of bytes up to top.
func byteTicks(top uint64) (list []uint64) {
	step := uint64(1) << max(0, int(math.Ceil(math.Log2(float64(top)/5))))
	for v := uint64(0); v <= top; v += step {
		list = append(list, v)
	}
	return list
}

// event draws a marker over a panel.
func (p *curvesPicture) event(e recordEvent, y, bottom int) {
	kind, x := &recordKinds[e.rank], p.x(e.T)
	if kind.isLine(p.r) {
		fmt.Fprintf(p, `<path d="M%.1f,%d V%d" stroke="%s" stroke-opacity="0.35"/>`+"\n",
			x, y, bottom, kind.Colour)
	}
	if kind.Moved {
		p.marker(int(x), bottom+1, -8, kind.Colour)
	} else {
		p.marker(int(x), y-6, 8, kind.Colour)
	}
}

// curve draws a line of steps.
func (p *curvesPicture) curve(c recordCurve, height func(uint64) float64) {
	var path strings.Builder
	for i, at := range thinned(c.points, p.r.end, curvesPoints) {
		if i == 0 {
			fmt.Fprintf(&path, "M%.1f,%.1f", p.x(at.t), height(0))
		}
		fmt.Fprintf(&path, "H%.1fV%.1f", p.x(at.t), height(at.v))
	}
	fmt.Fprintf(&path, "H%.1f", p.x(p.r.end))
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="1.5"/>`+"\n", path.String(),
		c.Colour)
}

// thinned are at most two points for each of n parts of the time until end: the largest, and the
// last.
func thinned(points []point, end int64, n int64) (out []point) {
	if int64(len(points)) <= 2*n {
		return points
	}
	part := func(p point) int64 { return p.t * n / max(1, end) }
	for len(points) > 0 {
		k, top := 0, points[0]
		for ; k < len(points) && part(points[k]) == part(points[0]); k++ {
			if points[k].v > top.v {
				top = points[k]
			}
		}
		out = append(out, top)
		if last := points[k-1]; last != top {
			out = append(out, last)
		}
		points = points[k:]
	}
	return out
}

// list lists the first events, and returns where they end.
func (p *curvesPicture) list(events []recordEvent, y int) int {
	y -= curvesGap / 3
	for i, e := range events {
		if i == curvesEvents {
			p.text(10, y, "", plural(len(events)-i, "more event"))
			y += curvesLine
			break
		}
		p.text(10, y, `font-size="11"`, seconds(e.T))
		p.text(curvesLeft, y, `font-size="11"`, e.Text)
		y += curvesLine
	}
	return y + 8
}
