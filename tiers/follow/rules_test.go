package follow

import (
	"math/rand/v2"
	"testing"
	"time"

	"tieralloc/tiers/heat"
)

const mib = 1 << 20

// known is a region of n bytes of known heat, at its own address.
func known(at int, n uint64, tier uint32, hot float64) Region {
	start := uintptr(simStart + at<<30)
	return Region{Start: start, End: start + uintptr(n), Tier: tier, Rank: RankMiddle, Known: true,
		Heat: hot, Spread: counted(0)}
}

// plans calls Plan a number of times without making a move, and returns the last plan.
func plans(n int, regions []Region, tiers []Tier, budget uint64) (moves []Move) {
	var p Planner
	for range n {
		moves = p.Plan(regions, tiers, time.Minute, budget)
	}
	return moves
}

// charged gives tiers the bytes of regions.
func charged(regions []Region, tiers ...Tier) []Tier {
	for i := range regions {
		tiers[regions[i].Tier].Bytes += regions[i].size()
	}
	return tiers
}

// holds compares a plan with what it should be.
func holds(t *testing.T, got []Move, want ...Move) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%v, not %v", got, want)
		return
	}
	for i := range got {
		if got[i] != want[i] {
			t.Errorf("%v, not %v", got, want)
		}
	}
}

// TestNothing: there is nothing to plan without regions, tiers, a lower tier, or a budget.
func TestNothing(t *testing.T) {
	slow := []Region{known(0, mib, 1, 100)}
	fast := []Region{known(0, mib, 0, 100)}
	with := func(of []Region, soft, hard uint64) []Tier {
		return charged(of, capped(soft, hard), capped(noCap, noCap))
	}
	two := func(of []Region) []Tier { return with(of, 64*mib, noCap) }
	for name, got := range map[string][]Move{
		"no region":     plans(9, nil, two(nil), noCap),
		"no tier":       plans(9, slow, nil, noCap),
		"one tier":      plans(9, slow, []Tier{capped(1, 1), {}, {}}, noCap),
		"nothing lower": plans(9, fast, two(fast), noCap),
		"no budget":     plans(9, slow, two(slow), 0),
		"no room":       plans(9, slow, with(slow, 0, 0), noCap),
		"cap of 0":      plans(9, slow, with(slow, 0, noCap), noCap),
		"empty region":  plans(9, []Region{{Tier: 1, Rank: RankHot}}, two(nil), noCap),
		"another tier":  plans(9, []Region{known(0, mib, 7, 100)}, two(nil), noCap),
	} {
		if len(got) > 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
	holds(t, plans(9, slow, two(slow), mib), Move{0, 0, Room})
}

// TestRoomIsLeft: what moves up leaves room for new allocations.
func TestRoomIsLeft(t *testing.T) {
	var regions []Region
	for i := range 64 {
		regions = append(regions, known(i, mib, 1, 100))
	}
	moves := plans(9, regions, charged(regions, capped(32*mib, noCap), capped(noCap, noCap)), noCap)
	if len(moves) != 31 {
		t.Errorf("%d of 1 MiB went up, where the cap is 32 MiB", len(moves))
	}
}

// TestHard: a tier over its soft cap stays so where the lower one has no room under its hard cap.
func TestHard(t *testing.T) {
	regions := []Region{known(0, 4*mib, 0, 1), known(1, mib, 0, 2), known(2, 2*mib, 1, 0)}
	holds(t, plans(1, regions, charged(regions, capped(mib, noCap), capped(noCap, 3*mib)), noCap),
		Move{1, 1, CapExceeded})
	holds(t, plans(1, regions, charged(regions, capped(mib, noCap), capped(noCap, 2*mib)), noCap))
	// The tier after the next has room.
	three := charged(regions, capped(4*mib, noCap), capped(noCap, 2*mib), capped(noCap, noCap))
	holds(t, plans(1, regions, three, noCap), Move{0, 2, CapExceeded})
}

// TestOrder: over a soft cap the lower rank goes first, then the colder, and what is not known goes
// after what is.
func TestOrder(t *testing.T) {
	regions := []Region{known(0, mib, 0, 0), known(1, mib, 0, 5), known(2, mib, 0, 9),
		known(3, mib, 0, 0), known(4, mib, 0, 900)}
	regions[0].Rank, regions[4].Rank = RankHot, RankCold
	regions[3].Known = false
	order := []int{4, 1, 2, 3, 0}
	for n := range 6 {
		var want []Move
		for _, i := range order[:n] {
			want = append(want, Move{i, 1, CapExceeded})
		}
		tiers := charged(regions, capped(uint64(5-n)*mib, noCap), capped(noCap, noCap))
		holds(t, plans(1, regions, tiers, noCap), want...)
	}
	regions[4].Fixed = true
	tiers := charged(regions, capped(4*mib, noCap), capped(noCap, noCap))
	holds(t, plans(1, regions, tiers, noCap), Move{1, 1, CapExceeded})
}

// TestNoMoreThanNeeded: small regions stay where a large one that must go makes enough room.
func TestNoMoreThanNeeded(t *testing.T) {
	regions := []Region{known(0, mib, 0, 1), known(1, mib, 0, 2), known(2, 16*mib, 0, 3)}
	tiers := charged(regions, capped(10*mib, noCap), capped(noCap, noCap))
	holds(t, plans(1, regions, tiers, noCap), Move{2, 1, CapExceeded})
}

// TestExchange: the coldest make room, as many as are needed, and before what takes their place.
func TestExchange(t *testing.T) {
	regions := []Region{known(0, 8*mib, 0, 3), known(1, 2*mib, 0, 1), known(2, 2*mib, 0, 2),
		known(3, 4*mib, 1, 100)}
	full := charged(regions, capped(noCap, 12*mib), capped(noCap, 8*mib))
	holds(t, plans(9, regions, full, noCap),
		Move{1, 1, Colder}, Move{2, 1, Colder}, Move{3, 0, Hotter})
	// One large region makes room for several.
	regions = []Region{known(0, 8*mib, 0, 1), known(1, 4*mib, 1, 100), known(2, 4*mib, 1, 90),
		known(3, 4*mib, 1, 80)}
	full = charged(regions, capped(noCap, 8*mib), capped(noCap, noCap))
	holds(t, plans(9, regions, full, noCap),
		Move{0, 1, Colder}, Move{1, 0, Hotter}, Move{2, 0, Hotter})
	// It does not go down for one small region that is little hotter.
	regions = []Region{known(0, 8*mib, 0, 10), known(1, mib, 1, 20)}
	full = charged(regions, capped(noCap, 8*mib), capped(noCap, noCap))
	holds(t, plans(9, regions, full, noCap))
	// Others that are not hotter do not make up for that.
	for i := range 7 {
		regions = append(regions, known(2+i, mib, 1, 9.9))
	}
	full = charged(regions, capped(noCap, 8*mib), capped(noCap, noCap))
	holds(t, plans(40, regions, full, noCap))
	// What would save less than it costs does not move.
	regions = []Region{known(0, mib, 0, 0), known(1, mib, 1, 0.005)}
	full = charged(regions, capped(noCap, mib), capped(noCap, noCap))
	holds(t, plans(9, regions, full, noCap))
	regions[1].Heat = 0.05
	holds(t, plans(9, regions, full, noCap), Move{0, 1, Colder}, Move{1, 0, Hotter})
}

// TestTooLarge: many regions that are too large do not keep a small one from moving.
func TestTooLarge(t *testing.T) {
	regions := []Region{known(0, mib, 1, 50), known(1, 4*mib, 0, 1)}
	for i := range 2 * lookAhead {
		regions = append(regions, known(2+i, 8*mib, 1, 100))
	}
	full := charged(regions, capped(noCap, 4*mib), capped(noCap, noCap))
	holds(t, plans(9, regions, full, noCap), Move{1, 1, Colder}, Move{0, 0, Hotter})
}

// TestRanks: hints come before heat.
func TestRanks(t *testing.T) {
	for _, c := range []struct {
		up, down           uint8
		upHeat, downHeat   float64
		exchange, fillsToo bool
	}{
		{RankHot, RankMiddle, 0, 50, true, true},
		{RankHot, RankCold, 0, 50, true, true},
		{RankHot, RankHot, 60, 50, false, true},
		{RankHot, RankHot, 90, 50, true, true},
		{RankMiddle, RankHot, 900, 0, false, true},
		{RankMiddle, RankMiddle, 60, 50, false, true},
		{RankMiddle, RankMiddle, 90, 50, true, true},
		{RankMiddle, RankMiddle, 0, 0, false, false},
		{RankMiddle, RankCold, 90, 50, true, true},
		{RankCold, RankCold, 900, 0, false, true},
		{RankCold, RankMiddle, 900, 0, false, true},
		{RankCold, RankMiddle, 0, 0, false, false},
	} {
		regions := []Region{known(0, mib, 0, c.downHeat), known(1, mib, 1, c.upHeat)}
		regions[0].Rank, regions[1].Rank = c.down, c.up
		full := charged(regions, capped(noCap, mib), capped(noCap, noCap))
		if got := len(plans(9, regions, full, noCap)) == 2; got != c.exchange {
			t.Errorf("%+v: exchanged %v", c, got)
		}
		room := charged(regions, capped(noCap, 64*mib), capped(noCap, noCap))
		if got := len(plans(9, regions, room, noCap)) == 1; got != c.fillsToo {
			t.Errorf("%+v: went up into free room %v", c, got)
		}
		// What is not known, or fixed, makes no room.
		regions[0].Known = false
		if got := plans(9, regions, full, noCap); len(got) > 0 {
			t.Errorf("%+v: %v though the heat of the first is not known", c, got)
		}
		regions[0].Known, regions[0].Fixed = true, true
		if got := plans(9, regions, full, noCap); len(got) > 0 {
			t.Errorf("%+v: %v though the first is fixed", c, got)
		}
	}
}

// TestChance: what is hotter by chance only stays where it is.
func TestChance(t *testing.T) {
	regions := []Region{known(0, mib, 0, 10), known(1, mib, 1, 40)}
	full := charged(regions, capped(noCap, mib), capped(noCap, noCap))
	for deviation, moves := range map[float64]int{3: 2, 4: 0} {
		regions[0].Spread = heat.Spread{Look: 1e-9, Relative: deviation * deviation / 25 / 25}
		regions[1].Spread = regions[0].Spread
		if got := plans(9, regions, full, noCap); len(got) != moves {
			t.Errorf("deviation %v: %v", deviation, got)
		}
	}
	regions = regions[1:]
	for deviation, moves := range map[float64]int{13: 1, 14: 0} {
		regions[0].Spread = heat.Spread{Relative: deviation * deviation / 40 / 40}
		room := charged(regions, capped(noCap, 64*mib), capped(noCap, noCap))
		if got := plans(9, regions, room, noCap); len(got) != moves {
			t.Errorf("deviation %v, with room: %v", deviation, got)
		}
	}
}

// TestSameMemory: tiers of the same memory are one, and their regions move as one tier's.
func TestSameMemory(t *testing.T) {
	regions := []Region{known(0, mib, 1, 1), known(1, mib, 2, 100)}
	tiers := []Tier{{Present: true, Bytes: mib, Soft: noCap, Hard: mib}, {},
		{Present: true, Bytes: mib, Soft: noCap, Hard: noCap}}
	holds(t, plans(9, regions, tiers, noCap), Move{0, 2, Colder}, Move{1, 0, Hotter})
}

// TestBudget: the greatest gain per byte comes first, and no more moves than may.
func TestBudget(t *testing.T) {
	regions := []Region{known(0, mib, 0, 1), known(1, mib, 0, 0), known(2, mib, 1, 50),
		known(3, mib, 1, 90)}
	full := charged(regions, capped(noCap, 2*mib), capped(noCap, noCap))
	first := []Move{{1, 1, Colder}, {3, 0, Hotter}}
	holds(t, plans(9, regions, full, 2*mib-1))
	holds(t, plans(9, regions, full, 2*mib), first...)
	holds(t, plans(9, regions, full, 4*mib),
		append(first, Move{0, 1, Colder}, Move{2, 0, Hotter})...)
	over := charged(regions, capped(0, noCap), capped(noCap, noCap))
	holds(t, plans(9, regions, over, mib), Move{1, 1, CapExceeded})
	// What is over the cap comes first.
	over = charged(regions, capped(mib, noCap), capped(noCap, noCap))
	holds(t, plans(9, regions, over, 2*mib), Move{1, 1, CapExceeded})
}

// TestOnce: a region moves once in a plan, though there is room above and no room where it is.
func TestOnce(t *testing.T) {
	regions := []Region{known(0, mib, 1, 100)}
	tiers := charged(regions, capped(64*mib, noCap), capped(0, noCap), capped(noCap, noCap))
	holds(t, plans(9, regions, tiers, noCap), Move{0, 2, CapExceeded})
}

// TestRandom: whatever the regions and caps are, the moves keep to the rules.
func TestRandom(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	moves := 0
	for range 400 {
		s := &simulation{t: t, rng: rng, refuses: never, gone: never,
			budget: rng.Uint64N(256 * mib)}
		s.tiers = make([]Tier, 2+rng.IntN(2))
		for i := range 1 + rng.IntN(60) {
			r := known(i, mib<<rng.IntN(5), uint32(rng.IntN(len(s.tiers))), 100*rng.ExpFloat64())
			r.Rank, r.Fixed, r.Known = uint8(rng.IntN(3)), rng.IntN(9) == 0, rng.IntN(9) > 0
			s.regions = append(s.regions, r)
		}
		s.charge()
		for k := range s.tiers {
			caps := [2]uint64{noCap, noCap}
			for c := range caps {
				if rng.IntN(3) > 0 {
					caps[c] = s.tiers[k].Bytes/2*uint64(c+1) + rng.Uint64N(64*mib)
				}
			}
			s.tiers[k].Present, s.tiers[k].Soft, s.tiers[k].Hard = true, caps[0], caps[1]
		}
		for range 30 {
			for i := range s.regions {
				if rng.IntN(30) == 0 {
					s.regions[i].Heat = 100 * rng.ExpFloat64()
				}
			}
			s.carryOut(s.planner.Plan(s.regions, s.tiers, 5*time.Second, s.budget))
			for range 3 {
				s.tiers[0].Bytes -= min(s.tiers[0].Bytes, rng.Uint64N(2*mib))
				s.look()
			}
			s.charge()
			if s.moved > 0 {
				moves++
			}
		}
	}
	if moves < 400 {
		t.Errorf("only %d plans moved anything", moves)
	}
}
