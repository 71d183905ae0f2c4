package follow

import (
	"time"

	"tieralloc/tiers/heat"
)

// Ranks, by the hint of a region.
const (
	RankCold   uint8 = iota // goes down first, and up into free room only
	RankMiddle              // goes by heat
	RankHot                 // goes up whatever its heat, and down last
	ranks
)

// Region is memory that moves as one.
type Region struct {
	Start, End uintptr     // bytes from Start to before End
	Tier       uint32      // where it is now: 0 FAST, 1 NORMAL, 2 SLOW
	Rank       uint8       // RankCold, RankMiddle or RankHot
	Fixed      bool        // it cannot be moved now
	Known      bool        // the heat is known; false again for new memory at an old address
	Heat       float64     // touches per page of 4 KiB and second
	Spread     heat.Spread // of Heat
}

// Tier is the memory of a tier. Tiers of the same memory are given once, as the first of them.
type Tier struct {
	Present bool   // it is other memory than the tiers before it
	Bytes   uint64 // charged now
	Soft    uint64 // soft cap in bytes, ^0 for none
	Hard    uint64 // hard cap in bytes, ^0 for none
}

// Cause is why a region moves.
type Cause uint8

// Causes.
const (
	CapExceeded Cause = iota // its tier is over the soft cap
	Room                     // the tier above has room
	Hotter                   // it takes the place of colder regions
	Colder                   // it makes room for hotter regions
)

// Move is one region's way to another tier.
type Move struct {
	Region int    // index in the list of regions
	To     uint32 // the tier it moves to
	Cause  Cause
}

// Planner decides what moves. It remembers by address when a region moved and how often it turned
// back. The zero value is ready. It is not safe for concurrent use.
type Planner struct {
	period   int     // calls of Plan
	now      float64 // seconds, the sum of what elapsed
	past     map[uintptr]*history
	patience int     // periods for which a region must be hot before it moves up
	patient  int     // the period in which patience changed last
	wentUp   float64 // bytes that went up lately
	cooled   float64 // bytes of them that turned cold soon

	last     *plan     // for Fill
	fillings []filling // of each tier
}

const (
	leastPatience = 4
	mostPatience  = 32

	// forgive is how many periods after its last change patience halves.
	forgive = 128

	// lately is what a period leaves of wentUp and cooled.
	lately = 15.0 / 16
)

// Plan returns the moves of this period in the order in which they are to be made. When they are
// made in that order, and each is charged before it is made, no tier is over its hard cap at any
// moment.
//
// tiers is indexed by tier number. elapsed is the time since the last plan. budget is how many
// bytes may move, both directions together: a region that is larger does not move.
func (p *Planner) Plan(regions []Region, tiers []Tier, elapsed time.Duration,
	budget uint64) []Move {
	p.period++
	p.now += max(0, elapsed.Seconds())
	w := newPlan(p, regions, tiers, budget)
	p.learn(w.total)
	for k := 1; k < len(w.present); k++ {
		w.trim(w.present[k-1], w.present[k:])
	}
	for k := 1; k < len(w.present); k++ {
		w.promote(w.present[k-1], w.present[k:])
	}
	p.beginFill(w)
	return w.moves
}

// Refused says that the memory of a region could not be moved, for a reason of its own: not because
// a cap was in the way. It is left alone for a while.
func (p *Planner) Refused(r Region) {
	if h := p.past[r.Start]; h != nil {
		h.refuse(p.period)
	}
}

// learn changes patience by how much of what went up turned cold soon. total is the bytes of all
// regions.
func (p *Planner) learn(total uint64) {
	switch {
	case p.patience == 0:
		p.patience = leastPatience
	case p.cooled > p.wentUp/4 && p.cooled > float64(total)/64:
		p.patience = min(4*p.patience, mostPatience)
		p.wentUp, p.cooled, p.patient = 0, 0, p.period
	case p.period-p.patient >= forgive:
		p.patience = max(p.patience/2, leastPatience)
		p.patient = p.period
	}
	p.wentUp *= lately
	p.cooled *= lately
}

// remember brings what is known of each region up to date, and drops regions that are gone.
func (p *Planner) remember(regions []Region, tier []uint32) []*history {
	if p.past == nil {
		p.past = map[uintptr]*history{}
	}
	past := make([]*history, len(regions))
	for i := range regions {
		r := &regions[i]
		h := p.past[r.Start]
		if h == nil || h.known && !r.Known {
			h = &history{tier: tier[i], changed: p.period, since: p.now}
			p.past[r.Start] = h
		}
		if h.tier != tier[i] && h.arrive(tier[i], p.period, p.now) {
			p.wentUp += float64(r.size())
		}
		h.look(r, p.period, p.patience)
		// What went up before patience changed says nothing of the new one.
		if r.Known && h.cooled(r, p.period, p.patience) && h.changed > p.patient+1 {
			p.cooled += float64(r.size())
		}
		past[i] = h
	}
	if len(p.past) > len(regions) {
		for start, h := range p.past {
			if h.seen != p.period {
				delete(p.past, start)
			}
		}
	}
	return past
}

// size is in bytes.
func (r *Region) size() uint64 {
	if r.End <= r.Start {
		return 0
	}
	return uint64(r.End - r.Start)
}
