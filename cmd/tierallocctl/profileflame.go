package main

import (
	"cmp"
	"slices"

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
