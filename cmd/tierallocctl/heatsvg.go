package main

import (
	"fmt"
	"image/color"
	"io"
	"strings"
)

// Sizes in the picture, in pixels.
const (
	svgLeft   = 120 // of the cells
	svgTop    = 48
	svgCellX  = 12
	svgCellY  = 5
	svgGap    = 18 // where addresses are left out
	svgLine   = 16 // of text
	svgLabel  = 20 // from one address to the next
	svgLegend = 260
	svgWidth  = 780 // at least
	svgMoves  = 16  // listed
)

// svg writes the map as a picture, under a title.
func (g *heatGrid) svg(w io.Writer, title string) error {
	p := svgPicture{g: g}
	bottom := p.body(title)
	width := max(svgWidth, svgLeft+svgCellX*len(g.seconds)+20)
	return p.write(w, width, bottom, `fill="#ffffff"`, `<defs>
<linearGradient id="heat">`+svgStops()+`</linearGradient>
<pattern id="tier0" width="6" height="6" patternUnits="userSpaceOnUse">
<circle cx="3" cy="3" r="1" fill="#2ee6c8"/></pattern>
<pattern id="tier2" width="6" height="6" patternUnits="userSpaceOnUse">
<path d="M-1,1 l2,-2 M0,6 l6,-6 M5,7 l2,-2" stroke="#2ee6c8" stroke-width="1.2"/></pattern>
</defs>
`)
}

// svgStops is the scale of colours.
func svgStops() string {
	var b strings.Builder
	for i := range heatStops {
		position := float64(i) / float64(len(heatStops)-1)
		fmt.Fprintf(&b, `<stop offset="%.2f" stop-color="%s"/>`, position,
			hex(heatColour(position)))
	}
	return b.String()
}

// svgPicture is the elements of a map.
type svgPicture struct {
	svgElements
	g *heatGrid
}

// body draws everything, and returns where it ends.
func (p *svgPicture) body(title string) (bottom int) {
	p.text(10, 22, `font-size="13" font-weight="bold"`, title)
	p.text(10, 40, `fill="#444"`, "addresses")
	y, labelled := svgTop, svgTop-svgLabel
	for i, line := range p.g.lines {
		if line.gap != 0 {
			p.text(svgLeft, y+14, `font-size="10" fill="#666"`,
				"~ "+size(line.gap)+" that are not heap ~")
			y += svgGap
		}
		if y-labelled >= svgLabel || line.gap != 0 {
			labelled = y
			p.text(svgLeft-6, y+svgCellY+3,
				`font-size="10" font-family="monospace" text-anchor="end"`,
				fmt.Sprintf("%x", line.start))
		}
		p.line(i, y)
		y += svgCellY
	}
	y = p.axis(y)
	y = p.legend(y + svgLine)
	return p.moves(y + svgLine)
}

// line draws the cells of a line: those that follow each other and are alike as one.
func (p *svgPicture) line(i, y int) {
	cells := p.g.cells[i]
	first := 0
	for k := range cells {
		c := &cells[k]
		if k+1 < len(cells) && p.alike(c, &cells[k+1]) {
			continue
		}
		if c.used {
			p.cell(svgLeft+first*svgCellX, y, (k+1-first)*svgCellX, svgCellY, p.g.colourOf(c),
				c.tier)
		}
		first = k + 1
	}
	for k := range cells {
		p.arrows(&cells[k], svgLeft+k*svgCellX, y)
	}
}

func (p *svgPicture) alike(a, b *heatCell) bool {
	return a.used == b.used && a.tier == b.tier && p.g.colourOf(a) == p.g.colourOf(b)
}

// cell draws memory of a tier.
func (p *svgPicture) cell(x, y, width, height int, c color.RGBA, tier int) {
	const rect = `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>` + "\n"
	fmt.Fprintf(p, rect, x, y, width, height, hex(c))
	if tier != 1 {
		fmt.Fprintf(p, rect, x, y, width, height, fmt.Sprintf("url(#tier%d)", tier&2))
	}
}

// arrows marks a cell in which memory moved.
func (p *svgPicture) arrows(c *heatCell, x, y int) {
	if c.up {
		fmt.Fprintf(p, `<path d="M%d,%d l4,-7 l4,7 z" fill="#fff" stroke="#000" stroke-width="0.8"/>`+"\n",
			x+2, y+6)
	}
	if c.down {
		fmt.Fprintf(p, `<path d="M%d,%d l4,7 l4,-7 z" fill="#000" stroke="#fff" stroke-width="0.8"/>`+"\n",
			x+2, y-1)
	}
}

// axis labels samples with their times.
func (p *svgPicture) axis(y int) int {
	last := len(p.g.seconds) - 1
	for k, s := range p.g.seconds {
		if k == last || k%5 == 0 && last-k > 3 {
			x := svgLeft + k*svgCellX + svgCellX/2
			fmt.Fprintf(p, `<path d="M%d,%d v5" stroke="#000"/>`+"\n", x, y)
			p.text(x, y+17, `font-size="10" text-anchor="middle"`, timeLabel(s))
		}
	}
	p.text(svgLeft, y+32, `fill="#444"`,
		"time before the last sample, in seconds; one column is one sample")
	return y + 36
}

// legend explains colours and marks.
func (p *svgPicture) legend(y int) int {
	p.text(10, y+12, "", "touches per page and second")
	x := 200
	fmt.Fprintf(p, `<rect x="%d" y="%d" width="%d" height="12" fill="url(#heat)"/>`+"\n", x, y+2,
		svgLegend)
	for i := range heatDecades + 1 {
		position := float64(i) / heatDecades
		label := touches(p.g.at(position))
		if i == 0 {
			label = "≤ " + label
		}
		p.text(x+int(position*svgLegend), y+26, `font-size="10" text-anchor="middle"`, label)
	}
	p.cell(x+svgLegend+40, y+2, 24, 12, heatUnknown, 1)
	p.text(x+svgLegend+70, y+12, "", "not yet known")
	y += 36
	p.text(10, y+12, "", "memory in")
	for t, used := range p.g.tiers[:len(tierNames)] {
		if used {
			p.cell(x, y+2, 36, 12, heatColour(0.2), t)
			p.cell(x+36, y+2, 36, 12, heatColour(0.9), t)
			p.text(x+78, y+12, "", tierNames[t])
			x += 150
		}
	}
	p.arrows(&heatCell{up: true}, x, y+6)
	p.text(x+16, y+12, "", "moved up")
	p.arrows(&heatCell{down: true}, x+90, y+6)
	p.text(x+106, y+12, "", "moved down")
	return y + svgLine
}

// moves lists the last moves.
func (p *svgPicture) moves(y int) int {
	y += svgLine
	if len(p.g.moves) == 0 {
		p.text(10, y, "", "nothing has moved")
		return y + svgLine
	}
	columns := [...]int{10, 90, 330, 430, 510, 590}
	row := func(style string, words ...string) {
		for i, word := range words {
			p.text(columns[i], y, style, word)
		}
		y += svgLine
	}
	row(`font-weight="bold"`, "moved at", "addresses", "bytes", "from", "to", "cause")
	for _, m := range p.g.lastMoves(svgMoves) {
		row(`font-size="11"`, timeLabel(m.seconds), fmt.Sprintf("%x-%x", m.Start, m.End),
			size(m.Bytes), heatTier(m.From), heatTier(m.To), heatCauses[m.Cause])
	}
	return y
}
