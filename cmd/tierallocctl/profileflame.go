package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"image/color"
	"io"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/google/pprof/profile"
)

// A flameNode is a function called along one path. width is its share of the picture.
type flameNode struct {
	name     string
	now, old int64 // with the functions that it called
	ownNow   int64
	ownOld   int64
	width    uint64
	children []*flameNode
	byName   map[string]*flameNode
}

// A flame is the tree of all stacks of a profile, and of an earlier one to compare it with.
type flame struct {
	title, kind, unit string
	diff              bool
	root              *flameNode
}

func newFlame(f, old *profileFile, kind int) *flame {
	fl := &flame{title: f.title(), kind: f.typeNames()[kind],
		unit: f.profile.SampleType[kind].Unit, diff: old != nil,
		root: &flameNode{name: "all"}}
	for _, s := range f.profile.Sample {
		fl.root.add(flameStack(s), s.Value[kind], 0)
	}
	if old != nil {
		for _, s := range old.profile.Sample {
			fl.root.add(flameStack(s), 0, s.Value[kind])
		}
	}
	fl.root.measure()
	return fl
}

// flameStack is the stack of a sample. Below it is the device whose memory it is, if it is one's.
func flameStack(s *profile.Sample) []profileFrame {
	if m := memoryOf(s); m != "" {
		return append(frames(s), profileFrame{name: m})
	}
	return frames(s)
}

// add adds a stack below the root.
func (n *flameNode) add(stack []profileFrame, now, old int64) {
	n.now, n.old = n.now+now, n.old+old
	for _, frame := range slices.Backward(stack) {
		n = n.child(frame.name)
		n.now, n.old = n.now+now, n.old+old
	}
	n.ownNow, n.ownOld = n.ownNow+now, n.ownOld+old
}

func (n *flameNode) child(name string) *flameNode {
	c := n.byName[name]
	if c == nil {
		c = &flameNode{name: name}
		if n.byName == nil {
			n.byName = map[string]*flameNode{}
		}
		n.byName[name] = c
		n.children = append(n.children, c)
	}
	return c
}

// measure computes widths. A function's own width is the larger one of both profiles, so that what
// is gone shows as well. The tree may be as deep as the longest stack.
func (n *flameNode) measure() {
	n.width = uint64(max(n.ownNow, n.ownOld, 0))
	for _, c := range n.children {
		c.measure()
		n.width += c.width
	}
	slices.SortFunc(n.children, func(a, b *flameNode) int { return cmp.Compare(a.name, b.name) })
}

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
