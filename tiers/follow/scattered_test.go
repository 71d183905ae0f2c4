package follow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tieralloc/tiers/heat"
)

// scattered is a program that uses some pages of each region, the same ones all the time. A source
// sees which were touched in a window.
type scattered struct {
	rng       *rand.Rand
	pages     [][]float64 // by region: how likely a window finds a page touched
	estimate  *heat.Estimate
	planner   Planner
	tier      []uint32
	fastBytes uint64
}

const (
	scatteredRegion = 16 * pageSize
	scatteredWindow = 100 * time.Millisecond
)

func newScattered(rng *rand.Rand, regions int, percent uint64,
	page func(region int) float64) *scattered {
	s := &scattered{rng: rng, fastBytes: uint64(regions) * scatteredRegion * percent / 100,
		estimate: heat.NewEstimate(nil)}
	ranges := make([]heat.Range, regions)
	for i := range ranges {
		start := uintptr(simStart + i*scatteredRegion)
		ranges[i] = heat.Range{Start: start, End: start + scatteredRegion}
		pages := make([]float64, scatteredRegion/pageSize)
		for k := range pages {
			pages[k] = page(i)
		}
		s.pages = append(s.pages, pages)
		tier := uint32(1)
		if uint64(i+1)*scatteredRegion <= s.fastBytes {
			tier = 0
		}
		s.tier = append(s.tier, tier)
	}
	s.estimate.Follow(ranges)
	return s
}

// run takes samples, and returns how many bytes moved.
func (s *scattered) run(samples int) (moved uint64) {
	for range samples {
		rates := make([]heat.Rate, len(s.pages))
		for i, pages := range s.pages {
			found, n := 0.0, float64(len(pages))
			for _, likely := range pages {
				if s.rng.Float64() < likely {
					found++
				}
			}
			share, seconds := min(found/n, 1-1/(2*n)), scatteredWindow.Seconds()
			rates[i] = heat.Rate{PerSecond: -math.Log1p(-share) * n / seconds, Looks: n,
				Look: seconds}
		}
		s.estimate.Add(rates)
		regions, fast := make([]Region, len(s.pages)), uint64(0)
		for i := range regions {
			start := uintptr(simStart + i*scatteredRegion)
			regions[i] = Region{Start: start, End: start + scatteredRegion, Tier: s.tier[i],
				Rank: RankMiddle, Known: s.estimate.Known(i), Heat: s.estimate.Heat(i),
				Spread: s.estimate.Spread(i)}
			if s.tier[i] == 0 {
				fast += scatteredRegion
			}
		}
		all := []Tier{capped(noCap, s.fastBytes), capped(noCap, noCap)}
		all[0].Bytes = fast
		for _, m := range s.planner.Plan(regions, all, 10*time.Second, noCap) {
			s.tier[m.Region] = m.To
			moved += scatteredRegion
		}
	}
	return moved
}

// served is the share of the touches of used pages that fast memory serves, and best what it serves
// at best.
func (s *scattered) served() (served, best float64) {
	var sums []float64
	var all, here float64
	for i, pages := range s.pages {
		sum := 0.0
		for _, likely := range pages {
			sum -= math.Log1p(-likely)
		}
		sums = append(sums, sum)
		all += sum
		if s.tier[i] == 0 {
			here += sum
		}
	}
	slices.Sort(sums)
	slices.Reverse(sums)
	for _, sum := range sums[:s.fastBytes/scatteredRegion] {
		best += sum
	}
	return here / all, best / all
}

// scatteredRegions is how many regions the programs of TestScattered and TestScatteredAlike have:
// of 240 MiB together.
const scatteredRegions = 3840

// TestScattered: hot pages are scattered among cold ones, and regions differ by how many they have,
// mostly by one or two of sixteen. Fast memory serves nearly as much as it can at best.
func TestScattered(t *testing.T) {
	for _, percent := range []uint64{25, 50, 75} {
		for _, likely := range []float64{0.9, 0.98} {
			rng := rand.New(rand.NewPCG(1, 2))
			s := newScattered(rng, scatteredRegions, percent, func(int) float64 {
				if rng.IntN(10) == 0 {
					return likely
				}
				return 0.0005
			})
			s.run(80)
			if served, best := s.served(); served < best-0.09 {
				t.Errorf("fast memory has %d%%, a window finds %.2f of the hot pages: it serves "+
					"%.3f, at best %.3f", percent, likely, served, best)
			}
		}
	}
}

// TestScatteredAlike: nothing moves where all regions are used alike, though a window finds other
// pages each time: in the whole heap, or in half of it beside a half that uses the same pages again
// and again.
func TestScatteredAlike(t *testing.T) {
	for _, likely := range []float64{0.01, 0.1, 0.5, 0.9} {
		for _, half := range []bool{false, true} {
			rng := rand.New(rand.NewPCG(1, 2))
			n := 0 // pages so far
			s := newScattered(rng, scatteredRegions, 50, func(region int) float64 {
				n++
				switch {
				case !half || region%2 == 0:
					return likely
				case n%16 < int(16*likely): // as many as are found by chance
					return 1
				}
				return 0
			})
			if moved := s.run(100); moved > scatteredRegions*scatteredRegion/100 {
				t.Errorf("a window finds %.2f of the pages, half of them the same: %v: "+
					"%d KiB moved", likely, half, moved>>10)
			}
		}
	}
}
