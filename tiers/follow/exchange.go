package follow

import (
	"cmp"
	"slices"
)

// lookAhead is how many candidates are looked at in vain before the search ends. It bounds the time
// of a plan.
const lookAhead = 64

// candidate is a region that could move up.
type candidate struct {
	region int
	heat   float64 // that it can be counted on to keep
}

// pair is two neighbouring tiers between which regions are exchanged.
type pair struct {
	*plan
	upper, lower uint32
	slower       []uint32 // lower and those after it
	target       uint64   // bytes up to which upper is filled
	candidates   []candidate
	// coldest lists by rank the regions that may go down, coldest first; those that were passed
	// are gone.
	coldest [ranks][]int
}

// group is regions that go up together, and those that make room for them.
type group struct {
	up, down []int
	to       []uint32     // where those that go down go
	coldest  [ranks][]int // what is left of the pair's
	moved    uint64       // bytes
}

// promote moves regions of the first of the slower tiers up, into free room or in exchange.
func (w *plan) promote(upper uint32, slower []uint32) {
	if w.ceiling(upper) == ^uint64(0) {
		return // how much memory it has is not known
	}
	p := &pair{plan: w, upper: upper, lower: slower[0], slower: slower}
	p.setTarget()
	p.listColdest()
	p.listCandidates()
	failed, rank := 0, RankHot
	for k, c := range p.candidates {
		r := w.regions[c.region].Rank
		if r != rank {
			failed, rank = 0, r
		}
		if failed >= lookAhead || w.moved[c.region] {
			continue
		}
		if c.size(w) <= p.room() {
			if c.size(w) <= w.budget && w.fills(c.region, c.heat) {
				w.move(c.region, upper, Room)
				continue
			}
		} else if g, ok := p.exchange(k); ok {
			p.carry(g)
			continue
		}
		failed++
	}
}

func (c candidate) size(w *plan) uint64 { return w.regions[c.region].size() }

// setTarget leaves room in upper for new allocations: 1/64 of its cap or a mean region, and not
// more than 1/16 of its cap.
func (p *pair) setTarget() {
	limit := p.ceiling(p.upper)
	p.target = limit
	if limit == ^uint64(0) || len(p.regions) == 0 {
		return
	}
	margin := max(limit/64, p.total/uint64(len(p.regions)))
	p.target = limit - min(margin, limit/16)
}

// room is how many bytes may go up without an exchange.
func (p *pair) room() uint64 { return below(p.bytes[p.upper], p.target) }

func (p *pair) listColdest() {
	for i := range p.regions {
		if p.regions[i].Known && p.movable(i, p.upper) && !p.resting(i, false) {
			rank := p.regions[i].Rank
			p.coldest[rank] = append(p.coldest[rank], i)
		}
	}
	for _, list := range p.coldest {
		slices.SortStableFunc(list, func(a, b int) int {
			return cmp.Compare(p.regions[a].Heat, p.regions[b].Heat)
		})
	}
}

// listCandidates lists what could go up, the highest rank and the hottest first. It leaves out what
// is too large for upper, so that this does not end the search for smaller regions.
func (p *pair) listCandidates() {
	for i := range p.regions {
		if p.tier[i] != p.lower {
			continue
		}
		r, h := &p.regions[i], p.past[i]
		falling := h.falling(r)
		h.score.count(p.wanted(i), falling)
		h.fit.count(p.fills(i, r.Heat), falling)
		heat := h.lasting(r, p.p.patience)
		h.promised = heat
		if p.movable(i, p.lower) && !p.resting(i, true) && (heat > 0 || r.Rank == RankHot) &&
			r.size() <= min(max(p.target, p.bytes[p.upper]), p.budget) {
			p.candidates = append(p.candidates, candidate{i, heat})
		}
	}
	slices.SortStableFunc(p.candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(p.regions[b.region].Rank, p.regions[a.region].Rank),
			cmp.Compare(b.heat, a.heat))
	})
}

// wanted reports that a region of lower is hot enough for upper now.
func (p *pair) wanted(i int) bool {
	r := &p.regions[i]
	if r.size() <= p.room() && p.fills(i, r.Heat) {
		return true
	}
	for _, list := range p.coldest {
		if len(list) > 0 && p.replaces(i, r.Heat, list[0]) {
			return true
		}
	}
	return false
}

// exchange finds the coldest regions that make room for a candidate, and fills what they leave over
// with the candidates after it. It fails where that is not worth what it costs.
func (p *pair) exchange(k int) (g group, ok bool) {
	c := p.candidates[k]
	if p.regions[c.region].Rank == RankCold {
		return g, false
	}
	freed, hottest, ok := p.makeRoom(&g, c)
	if !ok {
		return g, false
	}
	left := p.room() + freed - c.size(p.plan)
	g.up = append(g.up, c.region)
	g.moved = freed + c.size(p.plan)
	saved := c.heat * float64(c.size(p.plan))
	for _, more := range p.candidates[k+1 : min(k+1+lookAhead, len(p.candidates))] {
		if size := more.size(p.plan); size <= left && !p.moved[more.region] &&
			p.replacesAll(more, g.down, hottest) {
			g.up = append(g.up, more.region)
			g.moved += size
			left -= size
			saved += more.heat * float64(size)
		}
	}
	for _, i := range g.down {
		saved -= p.regions[i].Heat * float64(p.regions[i].size())
	}
	if g.moved > p.budget {
		return g, false
	}
	saved *= savedTouch * p.past[c.region].residence(p.p.now) / pageSize
	worth := saved > movedPage*float64(g.moved)/pageSize
	return g, worth || p.regions[c.region].Rank == RankHot
}

// makeRoom takes the coldest regions into the group until a candidate has room. It returns their
// bytes and the hottest of them.
func (p *pair) makeRoom(g *group, c candidate) (freed uint64, hottest int, ok bool) {
	g.coldest = p.coldest
	need := c.size(p.plan) - p.room()
	bytes := slices.Clone(p.bytes)
	hottest = -1
	for rank := range g.coldest {
		list := g.coldest[rank]
		for freed < need && len(list) > 0 && p.replaces(c.region, c.heat, list[0]) {
			i := list[0]
			list = list[1:]
			size := p.regions[i].size()
			to := p.roomy(p.slower, bytes, size)
			if to == none {
				continue // a smaller one may have room
			}
			bytes[to] += size
			g.down, g.to = append(g.down, i), append(g.to, to)
			freed += size
			if hottest < 0 || p.regions[i].Heat > p.regions[hottest].Heat {
				hottest = i
			}
		}
		g.coldest[rank] = list
	}
	return freed, hottest, freed >= need
}

// replacesAll reports that a candidate may take the place of each region that goes down.
func (p *pair) replacesAll(c candidate, down []int, hottest int) bool {
	last := down[len(down)-1] // of the highest rank
	return p.regions[c.region].Rank > RankCold && p.replaces(c.region, c.heat, hottest) &&
		p.replaces(c.region, c.heat, last)
}

// carry appends the moves of a group: down first, so that no cap is in the way of those up.
func (p *pair) carry(g group) {
	p.coldest = g.coldest
	for k, i := range g.down {
		p.move(i, g.to[k], Colder)
	}
	for _, i := range g.up {
		p.move(i, p.upper, Hotter)
	}
}
