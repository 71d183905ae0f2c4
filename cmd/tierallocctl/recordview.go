package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// recordView is the curves of one process, or of all.
type recordView struct {
	Name   string        `json:"name"`
	ID     int           `json:"id"` // of the process; 0: all
	Panels []recordPanel `json:"panels"`
}

// recordPanel is curves that share their axes.
type recordPanel struct {
	Title  string        `json:"title"`
	Curves []recordCurve `json:"curves"`
	Caps   []recordCap   `json:"caps"`
	Rows   [][]float64   `json:"rows"` // of the page
}

// recordCurve is a named curve. A value holds until the next point.
type recordCurve struct {
	Name   string `json:"name"`
	Colour string `json:"colour"`
	points []point
}

// recordCap is a cap that was in force.
type recordCap struct {
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"`
}

const (
	recordSeparate = 12 // processes with curves of their own
	recordCapHue   = "#c62828"
)

// liveOld names what is live by figures that are old (recordOld).
const liveOld = "live, by figures over 1 s old"

// recordColours tell curves apart.
var recordColours = [...]string{"#1f5fbf", "#e07b00", "#2e8b57", "#8e44ad", "#c2185b", "#00838f",
	"#7d6608", "#5d4037", "#3949ab", "#689f38", "#d84315", "#546e7a", "#9e9e9e"}

// curve is the values of a figure of a process. Where the peak of its kind has risen above the
// samples around it, the curve rises to the peak for a millisecond.
func (p *recorded) curve(name string) []point {
	points := p.series[name]
	switch lastWord(name) {
	case "committed":
		points = withPeaks(points, p.series["peak"], p.Start < 0)
	case "charged":
		peak := strings.TrimSuffix(name, "charged") + "peak"
		points = withPeaks(points, p.series[peak], p.Start < 0)
	}
	if len(points) > 0 && p.how != "" {
		points = append(slices.Clip(points), point{p.end + 1, 0}) // its last figures show
	}
	return points
}

// withPeaks adds peaks to points. old says that the first peak may be from before the recording.
func withPeaks(points, peaks []point, old bool) []point {
	if old && len(peaks) > 0 {
		peaks = peaks[1:]
	}
	if len(peaks) == 0 {
		return points
	}
	var out []point
	var last uint64
	for len(points) > 0 || len(peaks) > 0 {
		if len(peaks) == 0 || len(points) > 0 && points[0].t < peaks[0].t {
			last = points[0].v
			out, points = append(out, points[0]), points[1:]
			continue
		}
		peak := peaks[0]
		peaks = peaks[1:]
		if len(points) > 0 && points[0].t == peak.t {
			last, points = points[0].v, points[1:]
		}
		out = append(out, point{peak.t, max(peak.v, last)})
		if peak.v > last {
			out = append(out, point{peak.t + 1, last})
		}
	}
	return out
}

// sum adds curves, less one that is to be subtracted. The sum is never below 0.
func sum(list [][]point, minus []point) []point {
	type change struct {
		t int64
		d int64
	}
	var changes []change
	add := func(points []point, sign int64) {
		var last int64
		for _, p := range points {
			changes = append(changes, change{p.t, sign * (int64(p.v) - last)})
			last = int64(p.v)
		}
	}
	for _, points := range list {
		add(points, 1)
	}
	add(minus, -1)
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.t, b.t) })
	var out []point
	var total int64
	for i, c := range changes {
		total += c.d
		if i+1 == len(changes) || changes[i+1].t != c.t {
			out = append(out, point{c.t, uint64(max(0, total))})
		}
	}
	return out
}

// total is the sum of a figure over processes.
func total(list []*recorded, name string) []point {
	var curves [][]point
	for _, p := range list {
		curves = append(curves, p.curve(name))
	}
	return sum(curves, nil)
}

// highest is the largest value of a curve, and when it was reached first.
func highest(points []point) (top point) {
	for _, p := range points {
		if p.v > top.v {
			top = p
		}
	}
	return top
}

// largest sorts processes by their peaks, the largest first.
func (r *recording) largest() []*recorded {
	list := slices.Clone(r.processes)
	peak := func(p *recorded) uint64 {
		return cmp.Or(highest(p.curve("committed")).v, highest(p.curve("resident")).v)
	}
	slices.SortStableFunc(list, func(a, b *recorded) int { return cmp.Compare(peak(b), peak(a)) })
	return list
}

// views are the curves of all processes together, and of each of the largest ones.
func (r *recording) views() []recordView {
	all := recordView{Name: fmt.Sprintf("all (%s)", plural(len(r.processes), "process")),
		Panels: panelsOf(r.processes)}
	largest := r.largest()
	if len(largest) > 1 {
		all.Panels = slices.Insert(all.Panels, 1, byProcess(largest))
	}
	views := []recordView{all}
	if len(largest) > 1 {
		for _, p := range largest[:min(len(largest), recordSeparate)] {
			views = append(views, recordView{p.name(), p.id, panelsOf([]*recorded{p})})
		}
	}
	return views
}

// byProcess is the committed memory of each of the largest processes, and of the others together.
func byProcess(list []*recorded) recordPanel {
	panel := recordPanel{Title: "committed, by process"}
	for i, p := range list[:min(len(list), recordSeparate)] {
		panel.add(p.name(), recordColours[i], p.curve("committed"))
	}
	if len(list) > recordSeparate {
		panel.add(plural(len(list)-recordSeparate, "other"), recordColours[recordSeparate],
			total(list[recordSeparate:], "committed"))
	}
	return panel
}

// add adds a curve, unless it is always 0.
func (p *recordPanel) add(name, colour string, points []point) {
	if highest(points).v > 0 {
		p.Curves = append(p.Curves, recordCurve{name, colour, points})
	}
}

// panelsOf are the curves of some processes together.
func panelsOf(list []*recorded) []recordPanel {
	heap := recordPanel{Title: "memory"}
	for i, name := range []string{"resident", "committed", "live", "cached"} {
		heap.add(name, recordColours[i], total(list, name))
	}
	heap.add(liveOld, recordColours[12], total(list, "live_old"))
	panels := []recordPanel{heap}
	nodes := recordPanel{Title: "resident, by tier and node"}
	for _, owner := range owners(list) {
		if panel := ownerPanel(list, owner); len(panel.Curves) > 0 {
			panels = append(panels, panel)
		}
		nodes.addNodes(list, owner)
	}
	if len(nodes.Curves) > 0 {
		panels = append(panels, nodes)
	}
	return panels
}

// owners are the tiers and devices that have figures.
func owners(list []*recorded) []string {
	names := map[string]bool{}
	for _, p := range list {
		for figure := range p.series {
			if owner, _, ok := strings.Cut(figure, "."); ok {
				names[owner] = true
			}
		}
	}
	return slices.SortedFunc(maps.Keys(names), compareOwners)
}

// compareOwners orders tiers and devices: tiers come first, the fastest before the others.
func compareOwners(a, b string) int {
	rank := func(s string) int {
		if i := slices.Index(tierNames[:], strings.ToUpper(s)); i >= 0 {
			return i
		}
		return len(tierNames)
	}
	return cmp.Or(rank(a)-rank(b), len(a)-len(b), strings.Compare(a, b))
}

// ownerTitle names a tier or a device.
func ownerTitle(owner string) string {
	if number, ok := strings.CutPrefix(owner, "device"); ok {
		return "device " + number
	}
	return strings.ToUpper(owner)
}

// ownerPanel is the curves of a tier or a device.
func ownerPanel(list []*recorded, owner string) recordPanel {
	panel := recordPanel{Title: ownerTitle(owner)}
	charged, live := total(list, owner+".charged"), total(list, owner+".live")
	cached := sum([][]point{charged}, live)
	if strings.HasPrefix(owner, "device") {
		cached = total(list, owner+".cached")
	}
	panel.add("charged", recordColours[1], charged)
	panel.add("live", recordColours[2], live)
	panel.add("cached", recordColours[3], cached)
	panel.add("spilled to the host", recordColours[4], total(list, owner+".spilled"))
	if len(panel.Curves) > 0 {
		panel.addCaps(list, owner)
	}
	return panel
}

// addCaps adds the caps that were in force last.
func (p *recordPanel) addCaps(list []*recorded, owner string) {
	for _, kind := range []string{"soft", "hard"} {
		seen := map[uint64]bool{}
		for _, of := range list {
			points := of.series[owner+"."+kind]
			if len(points) == 0 || seen[points[len(points)-1].v] {
				continue
			}
			bytes := points[len(points)-1].v
			seen[bytes] = true
			name := kind + " cap " + size(bytes)
			if len(list) > 1 {
				name += " of a process"
			}
			if bytes > 0 {
				p.Caps = append(p.Caps, recordCap{name, bytes})
			}
		}
	}
}

// addNodes adds the curves of a tier on nodes.
func (p *recordPanel) addNodes(list []*recorded, owner string) {
	nodes := map[int]bool{}
	for _, of := range list {
		for figure := range of.series {
			if text, ok := strings.CutPrefix(figure, owner+".node"); ok {
				if n, err := strconv.Atoi(text); err == nil {
					nodes[n] = true
				}
			}
		}
	}
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		p.add(fmt.Sprintf("%s on node %d", ownerTitle(owner), n),
			recordColours[len(p.Curves)%len(recordColours)],
			total(list, fmt.Sprintf("%s.node%d", owner, n)))
	}
}
