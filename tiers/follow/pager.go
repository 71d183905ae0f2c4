package follow

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Pages is a region of memory that may be paged out.
type Pages struct {
	Start, End uintptr // bytes from Start to before End
	Resident   uint64  // bytes of it in memory
	Rank       uint8   // RankCold, RankMiddle or RankHot
	Fixed      bool    // it must not be paged out
	Known      bool    // Heat is known
	Heat       float64 // touches per page of 4 KiB and second, over all of the region
}

// OutCause is why a region is paged out.
type OutCause uint8

// Causes, in the order in which regions of one rank go.
const (
	Coldest OutCause = iota // the others are hotter
	Unknown                 // its heat is not known yet, it is the oldest
	Again                   // it came back lately, but nothing else is left of its rank
)

// Out is a region to be paged out.
type Out struct {
	Region int // index in the list of regions
	Cause  OutCause
}

// Pager decides what is paged out, so that the resident memory stays within a cap. It remembers by
// address what went out and came back. The zero value is ready. It is not safe for concurrent use.
type Pager struct {
	past  map[uintptr]*paged
	began int    // regions met so far
	back  uint64 // see Back
}

// paged is what is known of a region.
type paged struct {
	age      int           // its number among all regions met
	out      uint64        // bytes that went out and have not come back
	left     uint64        // bytes in memory when it went out, or when last looked at
	outAt    time.Duration // when it went out last
	backAt   time.Duration // when bytes of it came back last
	rest     time.Duration // how long it stays after that; 0: nothing has come back
	refused  time.Duration // it is left alone until then
	patience time.Duration // how long it was left alone the last time
}

const (
	// grace is how long a region that came back stays, whatever the cap.
	grace = time.Second

	// A region that came back rests, twice as long each time that it comes back within farAway.
	leastRest = 8 * time.Second
	mostRest  = 10 * time.Minute
	farAway   = time.Minute

	// A region that was refused is left alone, twice as long each time.
	leastRefused = 10 * time.Second
)

// Plan returns what to page out at the time now, the coldest first: as much as brings the resident
// memory from above limit to limit less a margin of 1/64, and at most budget bytes. A hint ranks
// before heat. The caller reports what became of each to Done.
func (p *Pager) Plan(regions []Pages, limit, budget uint64, now time.Duration) []Out {
	resident := p.learn(regions, now)
	if resident <= limit {
		return nil
	}
	excess := min(resident-(limit-limit/64), budget)
	var outs []Out
	for i := range regions {
		r := &regions[i]
		k := p.past[r.Start]
		if r.Fixed || r.Resident == 0 || now < k.refused || k.rest != 0 && now < k.backAt+grace {
			continue
		}
		cause := Unknown
		switch {
		case k.rest != 0 && now < k.backAt+k.rest:
			cause = Again
		case r.Known:
			cause = Coldest
		}
		outs = append(outs, Out{i, cause})
	}
	slices.SortStableFunc(outs, func(a, b Out) int { return p.compare(regions, a, b) })
	sum := uint64(0)
	for i, o := range outs {
		if sum >= excess {
			return outs[:i]
		}
		sum += regions[o.Region].Resident
	}
	return outs
}

// compare orders what goes first before what goes later.
func (p *Pager) compare(regions []Pages, a, b Out) int {
	r, s := &regions[a.Region], &regions[b.Region]
	heats := cmp.Compare(r.density(), s.density())
	if a.Cause == Unknown {
		heats = 0
	}
	return cmp.Or(cmp.Compare(r.Rank, s.Rank), cmp.Compare(a.Cause, b.Cause), heats,
		cmp.Compare(p.past[r.Start].age, p.past[s.Start].age))
}

// density is the heat of the pages in memory: the others are not touched, or they would be there.
func (r *Pages) density() float64 {
	if !r.Known {
		return math.Inf(1)
	}
	return r.Heat * float64(r.End-r.Start) / float64(max(r.Resident, 1))
}

// learn notes what came back and forgets regions that are gone. It returns how much is resident.
func (p *Pager) learn(regions []Pages, now time.Duration) (resident uint64) {
	past := make(map[uintptr]*paged, len(regions))
	for i := range regions {
		r := &regions[i]
		resident += r.Resident
		k := p.past[r.Start]
		if k == nil {
			p.began++
			k = &paged{age: p.began}
		}
		// More than went out is memory that was never used before.
		if back := min(r.Resident-min(k.left, r.Resident), k.out); back > 0 {
			k.cameBack(now)
			k.out -= back
			p.back += back
		}
		k.left = r.Resident
		past[r.Start] = k
	}
	p.past = past
	return resident
}

// cameBack notes that bytes of a region are in memory again.
func (k *paged) cameBack(now time.Duration) {
	switch {
	case k.backAt > k.outAt: // more of it
	case k.rest != 0 && now-k.outAt < farAway:
		k.rest = min(2*k.rest, mostRest)
	default:
		k.rest = leastRest
	}
	k.backAt = now
}

// Done notes that a region was paged out, and how many bytes of it are in memory now. It reports
// whether the kernel refused that: most of it stayed. Then it is left alone for some time.
func (p *Pager) Done(r Pages, left uint64, now time.Duration) (refused bool) {
	k := p.past[r.Start]
	if k == nil {
		return false
	}
	k.out += r.Resident - min(left, r.Resident)
	k.left, k.outAt = left, now
	if refused = left > r.Resident/2; refused {
		k.patience = min(max(2*k.patience, leastRefused), mostRest)
		k.refused = now + k.patience
	} else {
		k.patience = 0
	}
	return refused
}

// Back is how many bytes came back since the last call.
func (p *Pager) Back() (bytes uint64) {
	bytes, p.back = p.back, 0
	return bytes
}
