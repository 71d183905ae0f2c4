package main

import (
	"fmt"
	"hash/fnv"
	"image/color"
	"io"
	"math"
	"unicode/utf8"
)

// Sizes in the flame graph, in pixels.
const (
	flameWidth   = 1200
	flameMargin  = 10
	flameTop     = 64
	flameHeight  = 18  // of a function
	flameChar    = 6.7 // of the font
	flameNarrow  = 0.5 // functions below this are left out
	flameShallow = 512 // functions of a path that are shown
)

// flamePicture is the elements of a flame graph.
type flamePicture struct {
	svgElements
	flame   *flame
	scale   float64 // pixels by width
	deepest int
}

// svg writes the flame graph. Colours of text and background follow the reader's scheme; the
// functions' colours are light enough for black text in both.
func (f *flame) svg(w io.Writer) error {
	p := &flamePicture{flame: f}
	p.head()
	if f.root.width > 0 {
		p.scale = (flameWidth - 2*flameMargin) / float64(f.root.width)
		p.node(f.root, flameMargin, 0)
	}
	return p.write(w, flameWidth, flameTop+(p.deepest+1)*flameHeight+flameMargin, `class="page"`,
		`<style>
.page { fill: #ffffff } text { fill: #202020 }
@media (prefers-color-scheme: dark) { .page { fill: #1e1e22 } text { fill: #e4e4e4 } }
g rect { rx: 2px } g text { fill: #000000; font-family: monospace; font-size: 11px }
g:hover rect { stroke: #000000 }
</style>
`)
}

// head writes what the picture shows.
func (p *flamePicture) head() {
	f := p.flame
	p.text(flameMargin, 22, `font-size="14" font-weight="bold"`, f.title)
	if !f.diff {
		p.text(flameMargin, 44, "", f.kind+" "+amount(f.root.now, f.unit)+
			"; callers above, width by value")
		return
	}
	p.text(flameMargin, 44, "", fmt.Sprintf("%s %s, from %s to %s; red grew, blue shrank; "+
		"width by the larger value", f.kind, change(f.root.now-f.root.old, f.unit),
		amount(f.root.old, f.unit), amount(f.root.now, f.unit)))
}

// node draws a function and below it those that it called.
func (p *flamePicture) node(n *flameNode, x float64, depth int) {
	width := float64(n.width) * p.scale
	if width < flameNarrow || depth >= flameShallow {
		return
	}
	p.deepest = max(p.deepest, depth)
	y := flameTop + depth*flameHeight
	p.WriteString("<g><title>")
	p.escape(p.flame.tip(n))
	fmt.Fprintf(p, `</title><rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s"/>`, x, y,
		max(width-0.5, flameNarrow), flameHeight-1, hex(p.flame.colour(n)))
	if label := fit(shortName(n.name), int((width-6)/flameChar)); label != "" {
		fmt.Fprintf(p, `<text x="%.2f" y="%d">`, x+3, y+flameHeight-5)
		p.escape(label)
		p.WriteString("</text>")
	}
	p.WriteString("</g>\n")
	for _, c := range n.children {
		p.node(c, x, depth+1)
		x += float64(c.width) * p.scale
	}
}

// tip is what a reader sees who points at a function.
func (f *flame) tip(n *flameNode) string {
	if f.diff {
		return fmt.Sprintf("%s: %s, from %s to %s", n.name, change(n.now-n.old, f.unit),
			amount(n.old, f.unit), amount(n.now, f.unit))
	}
	return fmt.Sprintf("%s: %s, %s of all; itself %s", n.name, amount(n.now, f.unit),
		share(n.now, f.root.now), amount(n.ownNow, f.unit))
}

// colour tells functions apart, or shows by how much of its width one has changed. The square root
// makes a tenth visible.
func (f *flame) colour(n *flameNode) color.RGBA {
	if !f.diff {
		h := fnv.New32a()
		h.Write([]byte(n.name))
		v := h.Sum32()
		return color.RGBA{235 + uint8(v%20), 140 + uint8(v>>8%90), 70 + uint8(v>>16%50), 255}
	}
	part := math.Sqrt(min(1, float64(magnitude(n.now-n.old))/max(1, float64(n.width))))
	other := uint8(225 - 115*part)
	if n.now >= n.old {
		return color.RGBA{uint8(225 + 30*part), other, other, 255}
	}
	return color.RGBA{other, uint8(225 - 60*part), uint8(225 + 30*part), 255}
}

// fit shortens text to a number of characters, or to nothing if too little would be left.
func fit(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	const least = 4
	if most < least {
		return ""
	}
	return string([]rune(text)[:most-1]) + "…"
}
