package follow

import (
	"cmp"
	"slices"

	"tieralloc/tiers/heat"
)

const (
	pageSize = 4096

	// savedTouch is how many seconds a touch of slower memory costs more: some ten cache misses.
	savedTouch = 1e-6

	// movedPage is how many seconds it costs to move a page.
	movedPage = 2e-6

	// leastResidence and mostResidence are in seconds.
	leastResidence = 15
	mostResidence  = 600

	// leastRatio is how many times as hot a region must be to take another's place.
	leastRatio = 1.5

	// leastSigmas is by how many standard deviations of their difference it must be hotter. The
	// hottest and the coldest of some thousand equal regions are 5 apart.
	leastSigmas = 6

	// roomSigmas is how many standard deviations its heat must be to go up into free room.
	roomSigmas = 3

	// none is the tier of a region that is in no tier that was given.
	none = ^uint32(0)
)

// plan is a plan that is being made.
type plan struct {
	p       *Planner
	regions []Region
	past    []*history
	tier    []uint32 // of each region: the tier that gives its memory, or none
	tiers   []Tier
	present []uint32 // the tiers of different memory, fastest first
	bytes   []uint64 // charged to each tier after the moves so far
	total   uint64   // bytes of all regions
	moved   []bool
	budget  uint64 // bytes that may still move
	moves   []Move
}

func newPlan(p *Planner, regions []Region, tiers []Tier, budget uint64) *plan {
	w := &plan{p: p, regions: regions, tiers: tiers, budget: budget,
		tier: make([]uint32, len(regions)), moved: make([]bool, len(regions)),
		bytes: make([]uint64, len(tiers))}
	memory := make([]uint32, len(tiers)) // of each tier: the first tier of the same memory
	last := none
	for t := range tiers {
		w.bytes[t] = tiers[t].Bytes
		if tiers[t].Present {
			last = uint32(t)
			w.present = append(w.present, last)
		}
		memory[t] = last
	}
	for i := range regions {
		w.tier[i] = none
		if t := regions[i].Tier; int(t) < len(tiers) {
			w.tier[i] = memory[t]
		}
		w.total += regions[i].size()
	}
	w.past = p.remember(regions, w.tier)
	return w
}

// movable reports that a region is in the tier and may be asked to move in this plan.
func (w *plan) movable(i int, tier uint32) bool {
	r := &w.regions[i]
	return w.tier[i] == tier && !r.Fixed && !w.moved[i] && r.size() > 0 && r.Rank < ranks &&
		w.past[i].wait <= w.p.period
}

// resting reports that a region does not move that way yet.
func (w *plan) resting(i int, up bool) bool { return w.past[i].resting(up, w.p.period) }

// move appends a move.
func (w *plan) move(i int, to uint32, cause Cause) {
	size := w.regions[i].size()
	w.bytes[w.tier[i]] -= min(size, w.bytes[w.tier[i]])
	w.bytes[to] += size
	w.budget -= size
	w.moved[i] = true
	w.moves = append(w.moves, Move{i, to, cause})
}

// ceiling is the smaller cap of a tier in bytes.
func (w *plan) ceiling(tier uint32) uint64 { return min(w.tiers[tier].Soft, w.tiers[tier].Hard) }

// below is how many bytes a tier has below a limit.
func below(bytes, limit uint64) uint64 { return limit - min(bytes, limit) }

// trim takes the coldest regions of a tier that is over its cap down, until it is within. They go
// to the first of the slower tiers that has room.
func (w *plan) trim(upper uint32, slower []uint32) {
	if w.bytes[upper] <= w.ceiling(upper) {
		return
	}
	excess := w.bytes[upper] - w.ceiling(upper)
	bytes, budget := slices.Clone(w.bytes), w.budget
	var chosen []int
	var sum uint64
	for _, i := range w.coldestFirst(upper) {
		if sum >= excess {
			break
		}
		size := w.regions[i].size()
		to := w.roomy(slower, bytes, size)
		if to == none || size > budget {
			continue
		}
		bytes[to] += size
		budget -= size
		sum += size
		chosen = append(chosen, i)
	}
	// A large region that came last may have made others unnecessary.
	for k := len(chosen) - 1; k >= 0; k-- {
		if size := w.regions[chosen[k]].size(); sum >= excess && sum-size >= excess {
			sum -= size
			chosen = slices.Delete(chosen, k, k+1)
		}
	}
	for _, i := range chosen {
		w.move(i, w.roomy(slower, w.bytes, w.regions[i].size()), CapExceeded)
	}
}

// roomy is the first of some tiers that has room for so many bytes under its hard cap, or none.
// bytes is what each tier is charged with.
func (w *plan) roomy(among []uint32, bytes []uint64, size uint64) uint32 {
	for _, t := range among {
		if size <= below(bytes[t], w.tiers[t].Hard) {
			return t
		}
	}
	return none
}

// coldestFirst lists the regions of a tier that may go down: by rank, in a rank those of known heat
// first and resting ones last, and by heat.
func (w *plan) coldestFirst(tier uint32) []int {
	var list []int
	for i := range w.regions {
		if w.movable(i, tier) {
			list = append(list, i)
		}
	}
	class := func(i int) int {
		switch {
		case w.resting(i, false):
			return 2
		case !w.regions[i].Known:
			return 1
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b int) int {
		x, y := &w.regions[a], &w.regions[b]
		return cmp.Or(cmp.Compare(x.Rank, y.Rank), cmp.Compare(class(a), class(b)),
			cmp.Compare(x.Heat, y.Heat))
	})
	return list
}

// replaces reports that a region of that heat may take the place of another.
func (w *plan) replaces(up int, lasting float64, down int) bool {
	a, b := &w.regions[up], &w.regions[down]
	switch {
	case a.Rank < b.Rank:
		return false
	case a.Rank == RankHot && b.Rank < RankHot:
		return true
	}
	return a.Known && lasting > leastRatio*b.Heat &&
		heat.Apart(lasting, a.Spread, b.Heat, b.Spread) > leastSigmas
}

// fills reports that a region of that heat is worth moving up into free room.
func (w *plan) fills(i int, heat float64) bool {
	r := &w.regions[i]
	return r.Rank == RankHot || r.Known && heat > roomSigmas*r.Spread.Deviation(r.Heat) &&
		heat*w.past[i].residence(w.p.now)*savedTouch > movedPage
}
