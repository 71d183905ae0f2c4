package heat

import (
	"math/rand/v2"
	"testing"
	"time"
)

// A simulation: programs that use regions, a source that measures, and a fast tier for half of
// them.

const simRegions = 1000

// simWindow is the window of the simulated sources that have one.
const simWindow = time.Second

// program is the mean of each region's touches per second at a sample.
type program func(sample, region int) float64

// hotHalf uses every other region, and the others hardly ever.
func hotHalf(_, region int) float64 { return 200 * float64(region%2) }

// meter makes rates of what a program does.
type meter func(rng *rand.Rand, mean float64) Rate

// even is a source that saturates, and does not err.
func even(_ *rand.Rand, mean float64) Rate { return Rate{PerSecond: min(mean, 512), Look: 1} }

// pages looks which of 512 pages were touched.
func pages(rng *rand.Rand, mean float64) Rate {
	return rate(touchedOf(rng, 512, mean/512, simWindow), 512, 512, simWindow)
}

// hits counts random accesses: 250 trials.
func hits(rng *rand.Rand, mean float64) Rate {
	n := 0.0
	for range 250 {
		if rng.Float64() < mean/250 {
			n++
		}
	}
	const short = 1e-9 // a count: its variance is its mean
	return Rate{n, 512 / short, short}
}

// looks looks as DAMON does, at one page at a time.
func looks(rng *rand.Rand, mean float64) Rate {
	return rate(touchedOf(rng, damonLooks, mean/512, simWindow), damonLooks, 512, simWindow)
}

var meters = map[string]meter{"even": even, "pages": pages, "hits": hits, "looks": looks}

// simulated are n regions of RegionBytes, side by side.
func simulated(n int) []Range { return Regions(Range{RegionBytes, uintptr(n+1) * RegionBytes}) }

// simulation is a run of a program, whose fast regions begin as the first half.
type simulation struct {
	fast     []bool
	estimate *Estimate
	rng      *rand.Rand
	rates    []Rate
}

func newSimulation() *simulation {
	s := &simulation{fast: make([]bool, simRegions),
		estimate: NewEstimate(simulated(simRegions)),
		rng:      rand.New(rand.NewPCG(1, 2)), rates: make([]Rate, simRegions)}
	for i := range simRegions / 2 {
		s.fast[i] = true
	}
	return s
}

// sample lets the program run for one, moves what should move, and returns how many regions moved.
func (s *simulation) sample(t *testing.T, at int, p program, m meter) int {
	t.Helper()
	for i := range s.rates {
		s.rates[i] = m(s.rng, p(at, i))
	}
	s.estimate.Add(s.rates)
	moved := 0
	for _, x := range s.estimate.Exchanges(s.fast, 0) {
		if s.fast[x.Up] || !s.fast[x.Down] {
			t.Fatalf("%+v: fast %v and %v", x, s.fast[x.Up], s.fast[x.Down])
		}
		s.fast[x.Up], s.fast[x.Down] = true, false
		moved += 2
	}
	return moved
}

// served is the share of the accesses that the fast tier serves.
func (s *simulation) served(at int, p program) float64 {
	var all, fast float64
	for i, f := range s.fast {
		all += p(at, i)
		if f {
			fast += p(at, i)
		}
	}
	return fast / all
}

// TestHotHalf: sets of equal size find their tiers within some samples, move once, and stay.
func TestHotHalf(t *testing.T) {
	for name, m := range meters {
		s := newSimulation()
		moved := 0
		for at := range 12 {
			moved += s.sample(t, at, hotHalf, m)
		}
		if got := s.served(0, hotHalf); got < 0.95 {
			t.Errorf("%s: the fast tier serves %.3f", name, got)
		}
		if moved > simRegions/2+simRegions/20 {
			t.Errorf("%s: %d regions moved, of %d that had to", name, moved, simRegions/2)
		}
		for at := range 100 {
			if n := s.sample(t, at, hotHalf, m); n > 0 && at > 20 {
				t.Errorf("%s: %d regions moved in sample %d of the same", name, n, at)
			}
		}
	}
}

// TestUniform: where all is used alike nothing moves, much used or hardly.
func TestUniform(t *testing.T) {
	for name, m := range meters {
		for _, mean := range []float64{0, 0.05, 1, 20, 200} {
			s := newSimulation()
			moved := 0
			for at := range 80 {
				moved += s.sample(t, at, func(int, int) float64 { return mean }, m)
			}
			if moved > 0 {
				t.Errorf("%s, %v in the mean: %d regions moved", name, mean, moved)
			}
		}
	}
}

// TestNearlyAlike: what is hotter by less than the ratio stays where it is.
func TestNearlyAlike(t *testing.T) {
	s := newSimulation()
	for at := range 100 {
		p := func(_, region int) float64 { return 200 + 80*float64(region%2) }
		if n := s.sample(t, at, p, even); n > 0 {
			t.Fatalf("%d regions moved in sample %d", n, at)
		}
	}
}

// TestHotSetChanges: a new hot set is followed within twenty samples.
func TestHotSetChanges(t *testing.T) {
	other := func(_, region int) float64 { return 200 - hotHalf(0, region) }
	for name, m := range meters {
		s := newSimulation()
		for at := range 30 {
			s.sample(t, at, hotHalf, m)
		}
		moved := 0
		for at := range 20 {
			moved += s.sample(t, at, other, m)
		}
		if got := s.served(0, other); got < 0.95 {
			t.Errorf("%s: the fast tier serves %.3f of the new set", name, got)
		}
		for at := range 20 {
			moved += s.sample(t, at, other, m)
		}
		if moved > simRegions+simRegions/20 {
			t.Errorf("%s: %d regions moved, of %d that had to", name, moved, simRegions)
		}
	}
}

// TestRoom: a fast tier with room takes what is used, without taking anything away.
func TestRoom(t *testing.T) {
	e := NewEstimate(simulated(4))
	for range 3 {
		e.Add([]Rate{{}, {PerSecond: 9, Look: 1}, {}, {PerSecond: 5, Look: 1}})
	}
	got := e.Exchanges([]bool{true, false, false, false}, 1)
	want := []Exchange{{1, -1}, {3, 0}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%v, not %v", got, want)
	}
}
