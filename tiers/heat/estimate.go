package heat

import (
	"cmp"
	"math"
	"slices"
)

// Estimate keeps the heat of each region, from the counts of one source: a mean of the counts in
// which a count weighs half as much after halfLife samples.
//
// It also learns how much counts differ from sample to sample where use does not change, so that
// chance makes no region hotter than another. It takes the variance to be proportional to the
// heat, as that of counted random accesses is.
type Estimate struct {
	heat    []float64
	last    []uint32
	noise   float64 // mean over the regions of the variance of a count
	share   float64 // of a count's variance that the heat has
	samples int
}

const (
	// halfLife is in samples. A longer one follows a change later, a shorter one needs more
	// accesses to tell two regions apart.
	halfLife = 4

	// leastRatio is how many times as hot a region must be to take another's place.
	leastRatio = 1.5

	// leastSigmas is by how many standard deviations of their difference it must be hotter. The
	// hottest and the coldest of some thousand equal regions are 5 apart.
	leastSigmas = 6
)

// weight is that of the newest count.
var weight = 1 - math.Exp2(-1.0/halfLife)

// NewEstimate begins with n regions.
func NewEstimate(n int) *Estimate {
	return &Estimate{heat: make([]float64, n), last: make([]uint32, n)}
}

// Add takes a sample, one count for each region.
func (e *Estimate) Add(counts []uint32) {
	w := max(weight, 1/float64(e.samples+1)) // the first samples weigh alike
	e.share = (1-w)*(1-w)*e.share + w*w
	var squares float64
	for i, n := range counts {
		e.heat[i] += w * (float64(n) - e.heat[i])
		step := float64(n) - float64(e.last[i])
		squares += step * step
	}
	copy(e.last, counts)
	// The first sample has nothing to differ from, and the second decides alone.
	if e.samples > 0 && len(counts) > 0 {
		w := max(weight, 1/float64(e.samples))
		e.noise += w * (squares/2/float64(len(counts)) - e.noise)
	}
	e.samples++
}

// Heat is a region's, in counts a sample.
func (e *Estimate) Heat(i int) float64 { return e.heat[i] }

// Exchange is a region that is to move up, and the one that makes room for it: none if Down is
// negative.
type Exchange struct{ Up, Down int }

// Exchanges says what should move, the greatest gain first, when those of the regions that are true
// in fast are in the fast tier, and it has room for so many more.
func (e *Estimate) Exchanges(fast []bool, room int) []Exchange {
	if e.samples < 2 {
		return nil // what chance does is not known yet
	}
	var up, down []int
	for i, f := range fast {
		if f {
			down = append(down, i)
		} else {
			up = append(up, i)
		}
	}
	byHeat := func(a, b int) int { return cmp.Compare(e.heat[a], e.heat[b]) }
	slices.SortStableFunc(down, byHeat)
	slices.SortStableFunc(up, func(a, b int) int { return byHeat(b, a) })
	perHeat := e.noisePerHeat()
	var all []Exchange
	for _, i := range up {
		x, than := Exchange{i, -1}, 0.0
		if len(all) >= room {
			if len(all)-room >= len(down) {
				break
			}
			x.Down = down[len(all)-room]
			than = e.heat[x.Down]
		}
		if !hotter(e.heat[i], than, perHeat) {
			break
		}
		all = append(all, x)
	}
	return all
}

// noisePerHeat is the variance of a heat of 1.
func (e *Estimate) noisePerHeat() float64 {
	var sum float64
	for _, h := range e.heat {
		sum += h
	}
	if sum == 0 {
		return 0
	}
	return e.noise * e.share * float64(len(e.heat)) / sum
}

// hotter reports that a is hotter than b by more than chance makes it.
func hotter(a, b, noisePerHeat float64) bool {
	deviation := math.Sqrt((a + b) * noisePerHeat) // of the difference, were both equally hot
	return a > leastRatio*b && a-b > leastSigmas*deviation
}
