package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// recordEvent is a marker on the curves.
type recordEvent struct {
	T      int64  `json:"t"`
	ID     int    `json:"id"` // of the process
	Kind   string `json:"kind"`
	Text   string `json:"text"`
	amount uint64
	owner  string // the tier or device
	rank   int    // of its kind in recordKinds
}

// recordKind is a kind of events.
type recordKind struct {
	name   string // of the figure, or what happened
	Text   string `json:"text"`
	Colour string `json:"colour"`
	Line   bool   `json:"line"`  // across the curves of the page
	Moved  bool   `json:"moved"` // bytes that moved; the marker is below the curves
	life   bool   // of a process
}

// recordKinds are the kinds of events and their colours. Of events at one time the later kind is
// drawn over the others.
var recordKinds = []recordKind{
	{name: "begin", Text: "process begins", Colour: "#2e8b57", life: true},
	{name: "end", Text: "process ends", Colour: "#777777", life: true},
	{name: "moved", Text: "moved out of the tier", Colour: "#1f5fbf", Moved: true},
	{name: "soft_met", Text: "soft cap met", Colour: "#f9a825"},
	{name: "hard_met", Text: "hard cap met", Colour: "#e65100"},
	{name: "failed", Text: "calls failed", Colour: "#ad1457"},
	{name: "refused", Text: "requests refused", Colour: "#c62828"},
}

// isLine reports whether events of the kind are lines across the curves.
func (k *recordKind) isLine(r *recording) bool { return !k.life || len(r.processes) <= recordCrowd }

// recordTogether is the part of the time within which events of a kind are one.
const recordTogether = 200

// recordCrowd is the number of processes above which their beginnings and ends are no lines across
// the curves.
const recordCrowd = 50

// events are what happened, in order of time.
func (r *recording) events() (list []recordEvent) {
	together := r.end / recordTogether
	for _, p := range r.processes {
		if p.Start >= 0 {
			list = append(list, recordEvent{T: p.begin, ID: p.id, Kind: "begin",
				Text: p.name() + " begins"})
		}
		if p.how != "" {
			list = append(list, recordEvent{T: p.end, ID: p.id, Kind: "end", rank: 1,
				Text: p.name() + " ends: " + p.how})
		}
		for name, points := range p.series {
			list = append(list, p.counted(name, points, together)...)
		}
	}
	slices.SortStableFunc(list, func(a, b recordEvent) int {
		return cmp.Or(cmp.Compare(a.T, b.T), a.rank-b.rank, a.ID-b.ID,
			strings.Compare(a.owner, b.owner))
	})
	return list
}

// rises are the times at which a figure that is counted has risen, and by how much. What was
// counted before the recording is left out.
func (p *recorded) rises(points []point) (list []point) {
	var last uint64
	if p.Start < 0 && len(points) > 0 && points[0].t == p.first() {
		last, points = points[0].v, points[1:]
	}
	for _, at := range points {
		if at.v > last {
			list = append(list, point{at.t, at.v - last})
		}
		last = at.v
	}
	return list
}

// first is the time of the first sample.
func (p *recorded) first() int64 {
	t := p.end
	for _, points := range p.series {
		t = min(t, points[0].t)
	}
	return t
}

// counted are the events of a figure that is counted.
func (p *recorded) counted(name string, points []point, together int64) (list []recordEvent) {
	for rank, kind := range recordKinds {
		if lastWord(name) != kind.name {
			continue
		}
		owner, _, _ := strings.Cut(name, ".")
		for _, rise := range p.rises(points) {
			if n := len(list); n > 0 && rise.t-list[n-1].T <= together {
				list[n-1].amount += rise.v
				continue
			}
			list = append(list, recordEvent{T: rise.t, ID: p.id, Kind: kind.name, amount: rise.v,
				owner: owner, rank: rank})
		}
		for i := range list {
			e := &list[i]
			tier := ownerTitle(e.owner)
			switch {
			case kind.Moved:
				e.Text = fmt.Sprintf("%s: %s moved out of %s", p.name(), size(e.amount), tier)
			case kind.name == "failed":
				e.Text = fmt.Sprintf("%s: %s", p.name(), plural(e.amount, "failed call"))
			case kind.name == "refused":
				e.Text = fmt.Sprintf("%s: %s refused in %s", p.name(),
					plural(e.amount, "request"), tier)
			default:
				limit, _, _ := strings.Cut(kind.name, "_")
				e.Text = fmt.Sprintf("%s: %s cap of %s met by %s", p.name(), limit, tier,
					plural(e.amount, "request"))
			}
		}
	}
	return list
}

// countedIn is how much a figure has risen in all processes while they were recorded.
func (r *recording) countedIn(name string) (n uint64) {
	for _, p := range r.processes {
		for _, rise := range p.rises(p.series[name]) {
			n += rise.v
		}
	}
	return n
}
