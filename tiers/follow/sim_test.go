package follow

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tieralloc/tiers/heat"
)

// A simulation: a program that touches regions, an estimator that counts some of the touches, and
// a mover that holds each move to the caps.

const (
	simPeriod = 5 * time.Second
	simScale  = 10 // touches for each that is counted
	simShare  = 1.0 / 16
	simMemory = 512 << 20
	simStart  = 1 << 40
	noCap     = ^uint64(0)
)

// simWeight is that of the newest count: the half-life is 4 samples.
var simWeight = 1 - math.Exp2(-1.0/4)

// program is how many touches of a page of a region are counted in a period, in the mean.
type program func(period, region int) float64

type simulation struct {
	t       *testing.T
	rng     *rand.Rand
	planner Planner
	regions []Region
	tiers   []Tier
	budget  uint64
	refuses func(region int) bool
	gone    func(region int) bool // its memory was freed since the sample

	period  int
	born    []int     // the period in which a region was put to use
	counts  []float64 // the mean of what was counted
	share   []float64 // of a count's variance that the mean has
	moved   uint64    // bytes, in the last period
	refused int       // moves, in the last period
	tried   map[int]bool
}

// equal and mixed are the sizes of regions.
func equal(int) uintptr { return 1 << 20 }
func mixed(i int) uintptr {
	return []uintptr{64 << 10, 16 << 20, 1 << 20, 128 << 10, 4 << 20, 256 << 10, 64 << 10,
		2 << 20, 512 << 10}[i*7%9]
}

var sizes = map[string]func(int) uintptr{"equal": equal, "mixed": mixed}

// newSimulation makes regions of simMemory in all, in the slowest tier.
func newSimulation(t *testing.T, size func(int) uintptr, tiers ...Tier) *simulation {
	s := &simulation{t: t, rng: rand.New(rand.NewPCG(1, 2)), tiers: tiers, budget: simMemory,
		refuses: never, gone: never}
	for sum, at := uintptr(0), uintptr(simStart); sum < simMemory; {
		n := size(len(s.regions))
		s.regions = append(s.regions, Region{Start: at, End: at + n, Rank: RankMiddle,
			Tier: uint32(len(tiers) - 1)})
		sum, at = sum+n, at+n
	}
	s.counts, s.share = make([]float64, len(s.regions)), make([]float64, len(s.regions))
	s.born = make([]int, len(s.regions))
	s.charge()
	return s
}

func never(int) bool { return false }

// capped is a tier with caps.
func capped(soft, hard uint64) Tier { return Tier{Present: true, Soft: soft, Hard: hard} }

// charge makes the tiers' bytes those of the regions.
func (s *simulation) charge() {
	for t := range s.tiers {
		s.tiers[t].Bytes = s.bytes(uint32(t))
	}
}

func (s *simulation) bytes(tier uint32) (sum uint64) {
	for i := range s.regions {
		if s.regions[i].Tier == tier {
			sum += s.regions[i].size()
		}
	}
	return sum
}

// allocate places the regions in an order, each in the fastest tier whose caps let it in.
func (s *simulation) allocate(order []int) {
	for t := range s.tiers {
		s.tiers[t].Bytes = 0
	}
	for _, i := range order {
		t := slices.IndexFunc(s.tiers, func(t Tier) bool {
			return t.Bytes+s.regions[i].size() <= min(t.Soft, t.Hard)
		})
		s.tiers[t].Bytes += s.regions[i].size()
		s.regions[i].Tier = uint32(t)
	}
}

// inOrder is the order of addresses.
func (s *simulation) inOrder() []int {
	order := make([]int, len(s.regions))
	for i := range order {
		order[i] = i
	}
	return order
}

// counted is the spread of a count: its variance is so many times its mean.
func counted(variance float64) heat.Spread {
	const short = 1e-9
	return heat.Spread{Dilution: variance * short, Look: short}
}

func (s *simulation) poisson(mean float64) float64 {
	if mean > 30 {
		return max(0, math.Round(mean+math.Sqrt(mean)*s.rng.NormFloat64()))
	}
	n, p := 0.0, s.rng.Float64()
	for limit := math.Exp(-mean); p > limit; n++ {
		p *= s.rng.Float64()
	}
	return n
}

// estimate counts a period of the program.
func (s *simulation) estimate(use program) {
	for i := range s.regions {
		w := max(simWeight, 1/float64(s.period-s.born[i]+1))
		s.share[i] = (1-w)*(1-w)*s.share[i] + w*w
		r := &s.regions[i]
		pages := float64(r.size() / pageSize)
		s.counts[i] += w * (s.poisson(use(s.period, i)*pages) - s.counts[i])
		unit := simScale / pages / simPeriod.Seconds()
		r.Known = s.period > s.born[i]
		r.Heat = s.counts[i] * unit
		r.Spread = counted(s.share[i] * unit)
	}
	s.period++
}

// step lets the program run for a period, and moves what is planned, at first and between.
func (s *simulation) step(use program) {
	s.t.Helper()
	s.estimate(use)
	s.carryOut(s.planner.Plan(s.regions, s.tiers, simPeriod, s.budget))
	for range 3 {
		s.look()
	}
}

// look moves what goes into room that has come since.
func (s *simulation) look() {
	s.t.Helper()
	moves := s.planner.Fill(s.tiers, s.budget-s.moved)
	for _, m := range moves {
		if m.Cause != Room {
			s.t.Fatalf("period %d: %+v between two plans", s.period, m)
		}
	}
	s.carryOn(moves)
}

// carryOut makes the moves of a period.
func (s *simulation) carryOut(moves []Move) {
	s.t.Helper()
	s.moved, s.refused, s.tried = 0, 0, map[int]bool{}
	s.carryOn(moves)
}

// carryOn makes moves, and holds each of them to the rules.
func (s *simulation) carryOn(moves []Move) {
	s.t.Helper()
	for _, m := range moves {
		r := &s.regions[m.Region]
		to := &s.tiers[m.To]
		size := r.size()
		down := m.Cause == CapExceeded || m.Cause == Colder
		if s.tried[m.Region] || r.Fixed || !to.Present || m.To == r.Tier ||
			down != (m.To > r.Tier) {
			s.t.Fatalf("period %d: %+v of %+v", s.period, m, *r)
		}
		s.tried[m.Region] = true
		if s.gone(m.Region) {
			continue
		}
		if s.refuses(m.Region) {
			s.planner.Refused(*r)
			s.refused++
			continue
		}
		if to.Bytes+size > to.Hard {
			if s.refused == 0 {
				s.t.Fatalf("period %d: %+v passes the hard cap: %d + %d > %d", s.period, m,
					to.Bytes, size, to.Hard)
			}
			continue // what should have made room was refused
		}
		to.Bytes += size
		s.tiers[r.Tier].Bytes -= size
		r.Tier = m.To
		s.moved += size
	}
	if s.moved > s.budget {
		s.t.Fatalf("period %d: %d bytes moved, %d allowed", s.period, s.moved, s.budget)
	}
}

// run lets the program run for some periods. It returns the bytes that moved.
func (s *simulation) run(periods int, use program) (moved uint64) {
	s.t.Helper()
	for range periods {
		s.step(use)
		moved += s.moved
	}
	return moved
}

// served is the share of the touches that a tier serves in the coming period.
func (s *simulation) served(tier uint32, use program) float64 {
	var all, here float64
	for i := range s.regions {
		touches := use(s.period, i) * float64(s.regions[i].size())
		all += touches
		if s.regions[i].Tier == tier {
			here += touches
		}
	}
	return here / all
}
