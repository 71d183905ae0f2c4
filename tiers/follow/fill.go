package follow

import (
	"cmp"
	"slices"
)

// filling is what Fill knows of a tier that regions go up into.
type filling struct {
	// Since the last plan:
	looked bool
	bytes  uint64 // charged at the last look
	listed bool
	list   []candidate // that may still go up, the highest rank and the hottest first
	least  uint64      // the size of the smallest

	filled bool // something went up since a plan found the tier over its soft cap
	turns  int  // how often that came after something went up, less what was forgiven
	until  int  // the period from which something goes up again
}

// beginFill prepares Fill for what a plan leaves. What a soft cap takes back was no room: after
// that the tier rests, for twice as many periods each time, as a region does.
func (p *Planner) beginFill(w *plan) {
	p.last = w
	if len(p.fillings) != len(w.tiers) {
		p.fillings = make([]filling, len(w.tiers))
	}
	for t := range p.fillings {
		was := &p.fillings[t]
		f := filling{filled: was.filled, turns: was.turns, until: was.until}
		if f.filled && w.tiers[t].Bytes > w.ceiling(uint32(t)) {
			f.turns = max(0, f.turns-max(0, p.period-f.until)/forgiven)
			f.filled, f.until = false, p.period+rest<<f.turns
			f.turns = min(f.turns+1, mostTurns)
		}
		p.fillings[t] = f
	}
}

// Fill returns moves up into room that has come since the last plan, by the heat that it knew. The
// caller looks some times a second until it plans again. Room counts that is there at two looks in
// a row, so that memory which a program frees and allocates by turns moves nothing.
//
// A region goes up by the rules for room, and once between two plans at most. Nothing goes down.
// Its region is an index in the list of the last plan. tiers and budget are those of Plan.
func (p *Planner) Fill(tiers []Tier, budget uint64) []Move {
	w := p.last
	if w == nil || len(tiers) != len(w.tiers) {
		return nil
	}
	w.tiers, w.budget, w.moves = tiers, budget, nil
	for t := range tiers {
		f := &p.fillings[t]
		w.bytes[t] = ^uint64(0)
		if f.looked {
			w.bytes[t] = max(tiers[t].Bytes, f.bytes)
		}
		f.looked, f.bytes = true, tiers[t].Bytes
	}
	for k := 1; k < len(w.present); k++ {
		w.fill(w.present[k-1], w.present[k])
	}
	return w.moves
}

// fill moves regions of lower up into the room of upper.
func (w *plan) fill(upper, lower uint32) {
	p := &pair{plan: w, upper: upper, lower: lower}
	p.setTarget()
	f := &w.p.fillings[upper]
	if w.ceiling(upper) == ^uint64(0) || p.room() == 0 || w.p.period < f.until {
		return
	}
	if !f.listed {
		f.listed, f.list = true, p.fitting()
		f.shrink(w)
	}
	if len(f.list) == 0 || f.least > min(p.room(), w.budget) {
		return
	}
	for _, c := range f.list {
		if w.movable(c.region, lower) && c.size(w) <= min(p.room(), w.budget) {
			w.past[c.region].promised = c.heat
			w.move(c.region, upper, Room)
			f.filled = true
		}
	}
	f.shrink(w)
}

// fitting lists the regions of lower that are worth moving into room.
func (p *pair) fitting() (list []candidate) {
	for i := range p.regions {
		if !p.movable(i, p.lower) || p.resting(i, true) {
			continue
		}
		heat := p.past[i].lastingInRoom(&p.regions[i], p.p.patience)
		if (heat > 0 || p.regions[i].Rank == RankHot) && p.fills(i, heat) {
			list = append(list, candidate{i, heat})
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(p.regions[b.region].Rank, p.regions[a.region].Rank),
			cmp.Compare(b.heat, a.heat))
	})
	return list
}

// shrink drops what has moved from the list.
func (f *filling) shrink(w *plan) {
	f.list = slices.DeleteFunc(f.list, func(c candidate) bool { return w.moved[c.region] })
	f.least = ^uint64(0)
	for _, c := range f.list {
		f.least = min(f.least, c.size(w))
	}
}
