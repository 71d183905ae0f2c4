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
	regions []Range
	known   []knowledge // of each region
	noise   float64     // mean over the regions of pages times the variance of a sampled heat
	steps   int         // samples that noise was learned from
}

// knowledge is what is known of a region.
type knowledge struct {
	heat  float64
	share float64 // of a sampled heat's variance that the mean has
	seen  float64 // samples; of parts that saw different numbers the mean
	last  float64 // the heat that the last sample gave, NaN if it was of other regions
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
		sum.share += part * k.share
		sum.seen += part * k.seen
		bytes += part
	}
	if bytes > 0 {
		sum.heat /= bytes
		sum.share /= bytes
		sum.seen /= float64(r.End - r.Start)
	}
	return sum
}

// pages is how many pages region i has.
func (e *Estimate) pages(i int) float64 {
	return float64(e.regions[i].End-e.regions[i].Start) / pageBytes
}

// Add takes a sample: the rate of each region, as Source.Sample sets it.
func (e *Estimate) Add(rates []float64) {
	var squares, steps float64
	for i, rate := range rates {
		pages := e.pages(i)
		heat := rate / pages
		k := &e.known[i]
		w := max(weight, 1/(k.seen+1)) // the first samples weigh alike
		k.share = (1-w)*(1-w)*k.share + w*w
		k.heat += w * (heat - k.heat)
		if step := heat - k.last; !math.IsNaN(step) {
			squares += pages * step * step
			steps++
		}
		k.last = heat
		k.seen++
	}
	if steps > 0 {
		w := max(weight, 1/float64(e.steps+1))
		e.noise += w * (squares/2/steps - e.noise)
		e.steps++
	}
}

// Heat is a region's, in touches per page and second. It is 0 for an unknown one.
func (e *Estimate) Heat(i int) float64 { return e.known[i].heat }

// Seen is how many samples region i has been in. Nothing should be decided about a region before
// it has been in two. Of a region made of parts it is the mean over the parts.
func (e *Estimate) Seen(i int) int { return int(e.known[i].seen) }

// Deviation is the standard deviation of a region's heat. It is infinite if too little is known of
// the region, or of what chance does.
func (e *Estimate) Deviation(i int) float64 {
	return e.deviation(i, e.noisePerHeat())
}

func (e *Estimate) deviation(i int, noisePerHeat float64) float64 {
	k := e.known[i]
	if k.seen < leastSeen || e.steps == 0 {
		return math.Inf(1)
	}
	// The heat is a count of so many units, whose variance is the count. One more makes up for a
	// count that is 0 by chance.
	unit := noisePerHeat * k.share / e.pages(i)
	return math.Sqrt(unit * (k.heat + unit))
}

// noisePerHeat is pages times the variance of a sampled heat, where that is 1 in the mean.
func (e *Estimate) noisePerHeat() float64 {
	var sum, known float64
	for _, k := range e.known {
		if k.seen > 0 {
			sum += k.heat
			known++
		}
	}
	if sum == 0 {
		return 0
	}
	return e.noise * known / sum
}
