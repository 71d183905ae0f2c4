package heat

import (
	"math"
	"slices"
)

// Estimate keeps the heat of each region: touches per page and second. It is a mean of the rates
// of one source in which a rate weighs half as much after halfLife samples.
//
// It also learns how much rates differ from sample to sample where use does not change, so that
// chance makes no region hotter than another. It takes the variance of a heat to be proportional to
// the heat, and inversely to the region's pages, as that of counted random accesses is. DAMON's
// looks are as many for a small region as for a large one: there it holds for regions of about one
// size.
//
// Regions are known by their addresses: see Follow.
type Estimate struct {
	regions  []Range
	known    []knowledge // of each region
	relative float64     // the variance of a heat of 1 that chance does not explain
	recent   [3]float64  // what the last samples say of relative
	steps    int         // samples that relative was learned from
}

// knowledge is what is known of a region.
type knowledge struct {
	heat       float64
	spread     Spread  // of heat; Relative is for a relative of 1
	seen       float64 // samples; of parts that saw different numbers the mean
	last       float64 // the heat that the last sample gave, NaN if it was of other regions
	lastSpread Spread
	again      repeats // what the samples say of Dilution
}

const (
	// halfLife is in samples. A longer one follows a change later, a shorter one needs more
	// accesses to tell two regions apart.
	halfLife = 4

	// leastSeen is how many samples a region must have been in before its heat says anything.
	leastSeen = 2
)

// weight is that of the newest rate.
var weight = 1 - math.Exp2(-1.0/halfLife)

// NewEstimate begins with regions, which are in order and do not overlap. None is known.
func NewEstimate(regions []Range) *Estimate {
	e := &Estimate{}
	e.Follow(regions)
	return e
}

// Follow replaces the regions by others. A region takes its heat from the old ones that it
// overlaps, by their overlaps: both halves of a region that was split are as hot as it was. A
// region that overlaps none is unknown.
func (e *Estimate) Follow(regions []Range) {
	if slices.Equal(e.regions, regions) {
		return
	}
	known := make([]knowledge, len(regions))
	for i, r := range regions {
		known[i] = e.inherit(r)
	}
	e.regions, e.known = slices.Clone(regions), known
}

// inherit is what is known of a range. Its part that no region covers was seen in no sample.
func (e *Estimate) inherit(r Range) knowledge {
	sum, bytes := knowledge{last: math.NaN()}, 0.0
	for i := from(e.regions, r.Start); i < len(e.regions) && e.regions[i].Start < r.End; i++ {
		k := e.known[i]
		if e.regions[i] == r {
			return k
		}
		if k.seen == 0 {
			continue
		}
		part := float64(overlap(e.regions[i], r))
		sum.heat += part * k.heat
		squared := part * float64(e.regions[i].End-e.regions[i].Start)
		sum.spread.Dilution += squared * k.spread.Dilution
		sum.spread.Relative += squared * k.spread.Relative
		sum.spread.Look += part * k.spread.Look
		sum.seen += part * k.seen
		sum.again.sum += part * k.again.sum
		sum.again.weight += part * k.again.weight
		bytes += part
	}
	if bytes > 0 {
		sum.heat /= bytes
		sum.spread.Dilution /= bytes * bytes
		sum.spread.Relative /= bytes * bytes
		sum.spread.Look /= bytes
		sum.again.sum /= bytes
		sum.again.weight /= bytes
		sum.seen /= float64(r.End - r.Start)
	}
	return sum
}

// pages is how many pages region i has.
func (e *Estimate) pages(i int) float64 {
	return float64(e.regions[i].End-e.regions[i].Start) / pageBytes
}

// Add takes a sample: the rate of each region, as Source.Sample sets it.
func (e *Estimate) Add(rates []Rate) {
	e.learn(rates)
	for i, r := range rates {
		k := &e.known[i]
		k.last, k.lastSpread = e.sampled(i, r)
		w := max(weight, 1/(k.seen+1)) // the first samples weigh alike
		k.heat += w * (k.last - k.heat)
		k.spread.Dilution += w*w*k.lastSpread.Dilution - w*(2-w)*k.spread.Dilution
		k.spread.Relative += w*w - w*(2-w)*k.spread.Relative
		k.spread.Look += w * (k.lastSpread.Look - k.spread.Look)
		k.seen++
	}
}

// sampled is the heat that a sample gives a region.
func (e *Estimate) sampled(i int, r Rate) (heat float64, spread Spread) {
	if r.Looks > 0 {
		spread.Dilution = 1 / r.Looks
	}
	spread.Look = r.Look
	return r.PerSecond / e.pages(i), spread
}

// learn sets relative by how much the heats of a sample differ from those of the one before: the
// median of the last samples, because a program that begins something else differs more.
func (e *Estimate) learn(rates []Rate) {
	scale := e.scale(rates)
	var squares, heats float64
	for i, r := range rates {
		k, pages := &e.known[i], e.pages(i)
		if last := scale * k.last; !math.IsNaN(last) {
			heat, spread := e.sampled(i, r)
			chance := math.Hypot(spread.Deviation(heat), scale*k.lastSpread.Deviation(k.last))
			squares += pages * ((heat-last)*(heat-last) - chance*chance)
			k.again.add(heat-last, chance)
			heats += pages * (heat*heat + last*last)
		}
	}
	if heats == 0 {
		return
	}
	e.recent[e.steps%len(e.recent)] = max(0, squares/heats)
	e.steps++
	sorted := slices.Sorted(slices.Values(e.recent[:min(e.steps, len(e.recent))]))
	e.relative = sorted[(len(sorted)-1)/2]
}

// scale is how many times as much as at the last sample all regions together were touched. A
// program that does more or less than before makes no region hotter than another.
func (e *Estimate) scale(rates []Rate) float64 {
	var now, before float64
	for i, r := range rates {
		if last := e.known[i].last; !math.IsNaN(last) {
			now += r.PerSecond
			before += last * e.pages(i)
		}
	}
	if before == 0 {
		return 1
	}
	return now / before
}

// Heat is a region's, in touches per page and second. It is 0 for an unknown one.
func (e *Estimate) Heat(i int) float64 { return e.known[i].heat }

// Seen is how many samples region i has been in. Of a region made of parts it is the mean over the
// parts.
func (e *Estimate) Seen(i int) int { return int(e.known[i].seen) }

// Known reports whether enough is known to decide something: of the region, and of what chance
// does.
func (e *Estimate) Known(i int) bool { return e.known[i].seen >= leastSeen && e.steps > 0 }

// Spread says how far a region's heat may be from the truth.
func (e *Estimate) Spread(i int) Spread {
	s := e.known[i].spread
	s.Dilution *= e.known[i].again.share()
	s.Relative *= e.relative
	return s
}
