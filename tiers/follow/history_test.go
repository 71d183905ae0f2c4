package follow

import (
	"slices"
	"testing"
	"time"
)

// TestHints: memory with the hint hot stays though it is cold, and what has the hint cold goes
// first when more memory is put to use.
func TestHints(t *testing.T) {
	for name, size := range sizes {
		s := newSimulation(t, size, capped(simMemory/2, noCap), capped(noCap, noCap))
		hot := s.hotSet("alternating")
		s.allocate(s.inOrder())
		use := halves(hot)
		// Of the cold ones some have the hint hot, of the hot ones some the hint cold.
		var hotHint, coldHint uint64
		for i := range s.regions {
			r := &s.regions[i]
			switch {
			case !hot[i] && hotHint+r.size() <= simMemory/8:
				r.Rank = RankHot
				hotHint += r.size()
			case hot[i] && coldHint+r.size() <= simMemory/8:
				r.Rank = RankCold
				coldHint += r.size()
			}
		}
		s.run(30, use)
		for i := range s.regions {
			if r := &s.regions[i]; r.Rank == RankHot && r.Tier != 0 {
				t.Errorf("%s: %+v is not in fast memory", name, *r)
			}
		}
		s.tiers[0].Soft -= simMemory / 16
		s.step(use)
		for i := range s.regions {
			if r := &s.regions[i]; r.Rank == RankHot && r.Tier != 0 {
				t.Errorf("%s: %+v went down", name, *r)
			}
		}
		cold := func(r Region) bool { return r.Rank == RankCold && r.Tier == 0 }
		middle := func(r Region) bool { return r.Rank == RankMiddle && r.Tier == 0 }
		s.tiers[0].Soft = hotHint + 32*mib
		s.step(use)
		if slices.ContainsFunc(s.regions, cold) {
			t.Errorf("%s: memory with the hint cold is still in fast memory", name)
		}
		if !slices.ContainsFunc(s.regions, middle) {
			t.Errorf("%s: memory without a hint went too", name)
		}
	}
}

// TestGrowth: a tier that grew over its soft cap is within it after one plan.
func TestGrowth(t *testing.T) {
	eachSetting(t, simMemory/2, func(t *testing.T, s *simulation) {
		if s.tiers[0].Soft == noCap {
			t.Skip("there is no soft cap")
		}
		s.tiers[0].Hard = noCap
		s.allocate(s.inOrder())
		use := halves(s.hotSet("hot first"))
		s.run(20, use)
		for range 10 {
			// A part of the rest is new memory in the fast tier.
			grown := uint64(0)
			for i := range s.regions {
				if r := &s.regions[i]; r.Tier != 0 && grown < 20*mib {
					r.Tier = 0
					grown += r.size()
				}
			}
			s.charge()
			s.step(use)
			if s.tiers[0].Bytes > s.tiers[0].Soft {
				t.Fatalf("%d KiB over the soft cap", (s.tiers[0].Bytes-s.tiers[0].Soft)>>10)
			}
		}
	})
}

// TestChurn: where the program frees and allocates all the time, and new memory goes to the fast
// tier, this is within its soft cap after each plan, serves most touches, and less moves than is
// allocated.
func TestChurn(t *testing.T) {
	for name, size := range sizes {
		s := newSimulation(t, size, capped(simMemory/2*11/10, noCap), capped(noCap, noCap))
		use := halves(s.hotSet("alternating"))
		s.allocate(s.inOrder())
		next := s.regions[len(s.regions)-1].End
		var fresh, moved uint64
		var served float64
		const periods = 200
		for range periods {
			for sum := uint64(0); sum < simMemory/200; {
				i := s.rng.IntN(len(s.regions))
				r := &s.regions[i]
				n := uintptr(r.size())
				*r = Region{Start: next, End: next + n, Rank: RankMiddle}
				next += n
				s.born[i], s.counts[i], s.share[i] = s.period, 0, 0
				sum += uint64(n)
				fresh += uint64(n)
			}
			s.charge()
			s.step(use)
			if s.tiers[0].Bytes > s.tiers[0].Soft {
				t.Fatalf("%s: fast memory is over its soft cap", name)
			}
			moved += s.moved
			served += s.served(0, use) / periods
		}
		if served < 0.97 {
			t.Errorf("%s: fast memory serves %.3f", name, served)
		}
		if moved > fresh {
			t.Errorf("%s: %d MiB moved, %d were allocated", name, moved>>20, fresh>>20)
		}
	}
}

// TestRefused: memory that cannot move does not keep other memory from moving, and is tried less
// and less often.
func TestRefused(t *testing.T) {
	eachSetting(t, simMemory/2*11/10, func(t *testing.T, s *simulation) {
		hot := s.hotSet("cold first")
		s.allocate(s.inOrder())
		s.refuses = func(i int) bool { return i%10 == 3 }
		use := halves(hot)
		s.run(60, use)
		var movable, fast uint64
		for i := range s.regions {
			if hot[i] && !s.refuses(i) {
				movable += s.regions[i].size()
				if s.regions[i].Tier == 0 {
					fast += s.regions[i].size()
				}
			}
		}
		held := uint64(0) // by what is cold and cannot go
		for i := range s.regions {
			if r := &s.regions[i]; !hot[i] && s.refuses(i) && r.Tier == 0 {
				held += r.size()
			}
		}
		room := min(movable, s.tiers[0].Bytes-held)
		if fast < room*95/100 {
			t.Errorf("%d MiB of %d are in fast memory, that has room for %d", fast>>20,
				movable>>20, room>>20)
		}
		tries := 0
		for range 100 {
			s.step(use)
			tries += s.refused
		}
		if tries > len(s.regions)/10*3 {
			t.Errorf("%d tries in 100 periods, of %d regions that cannot move", tries,
				len(s.regions)/10)
		}
	})
}

// TestRest: a region that moved does not turn back for some periods, and for longer each time.
func TestRest(t *testing.T) {
	var p Planner
	regions := []Region{known(0, mib, 0, 10), known(1, mib, 1, 10)}
	tiers := charged(regions, capped(noCap, mib), capped(noCap, noCap))
	var waits []int
	for range 7 {
		// The two change places, as soon as the planner lets them.
		for i := range regions {
			regions[i].Heat = 100 * float64(regions[i].Tier)
		}
		for wait := 1; ; wait++ {
			p.cooled = 0 // patience has a test of its own
			moves := p.Plan(regions, tiers, 10*time.Second, noCap)
			if len(moves) == 2 {
				waits = append(waits, wait)
				for _, m := range moves {
					regions[m.Region].Tier = m.To
				}
				break
			}
			if wait > 1000 {
				t.Fatalf("after %v they change places no more", waits)
			}
		}
	}
	if waits[1] < rest || waits[len(waits)-1] < 4*rest || !slices.IsSorted(waits) {
		t.Errorf("they changed places after %v periods", waits)
	}
}

// TestCapEndsRest: over its soft cap a tier gives up what rests too, when nothing else is left.
func TestCapEndsRest(t *testing.T) {
	var p Planner
	regions := []Region{known(0, mib, 1, 50), known(1, mib, 0, 100)}
	tiers := charged(regions, capped(64*mib, noCap), capped(noCap, noCap))
	for range 9 {
		for _, m := range p.Plan(regions, tiers, 10*time.Second, noCap) {
			regions[m.Region].Tier = m.To
		}
	}
	if regions[0].Tier != 0 {
		t.Fatal("the first did not go up")
	}
	tiers[0].Bytes, tiers[1].Bytes = 2*mib, 0
	tiers[0].Soft = mib
	holds(t, p.Plan(regions, tiers, 10*time.Second, noCap), Move{1, 1, CapExceeded})
	tiers[0].Soft = 0
	holds(t, p.Plan(regions, tiers, 10*time.Second, noCap), Move{1, 1, CapExceeded},
		Move{0, 1, CapExceeded})
}

// TestForgets: what is known of memory ends with it.
func TestForgets(t *testing.T) {
	var p Planner
	regions := []Region{known(0, mib, 1, 50), known(1, mib, 1, 50)}
	tiers := charged(regions, capped(0, 0), capped(noCap, noCap))
	p.Plan(regions, tiers, time.Second, noCap)
	p.Refused(regions[0])
	p.Refused(known(7, mib, 1, 0)) // it is not known
	if h := p.past[regions[0].Start]; h.wait == 0 {
		t.Error("a refusal is not noted")
	}
	regions[0].Known = false
	p.Plan(regions, tiers, time.Second, noCap)
	if h := p.past[regions[0].Start]; h.wait != 0 {
		t.Error("new memory has the history of the old")
	}
	p.Plan(regions[1:], tiers, time.Second, noCap)
	if len(p.past) != 1 {
		t.Errorf("%d histories of 1 region", len(p.past))
	}
}

// TestForgiven: a long stay makes up for a turn.
func TestForgiven(t *testing.T) {
	h := history{tier: 1}
	h.arrive(0, 10, 50)
	h.arrive(1, 20, 100)
	h.arrive(0, 40, 200)
	h.arrive(1, 60, 300)
	if h.turns != 2 || !h.resting(true, 60+4*rest-1) || h.resting(true, 60+4*rest) {
		t.Errorf("%d turns, not 2", h.turns)
	}
	if h.resting(false, 61) {
		t.Error("a region that went down rests from going on down")
	}
	h.arrive(0, 60+forgiven, 700)
	if h.turns != 1 {
		t.Errorf("%d turns after a long stay, not 1", h.turns)
	}
}

// TestResidence: a region is expected to stay as long as it did last time, else as long as it has
// been seen where it is.
func TestResidence(t *testing.T) {
	h := history{tier: 1, since: 100}
	for now, want := range map[float64]float64{101: 15, 140: 40, 5000: 600} {
		if got := h.residence(now); got != want {
			t.Errorf("%v s, not %v", got, want)
		}
	}
	h.arrive(0, 1, 200)
	h.arrive(1, 2, 230)
	if got := h.residence(5000); got != 30 {
		t.Errorf("%v s, not 30", got)
	}
}

// TestPatience: patience grows when what went up turns cold, and shrinks when that happens no more.
func TestPatience(t *testing.T) {
	var p Planner
	regions := []Region{known(0, mib, 1, 50), known(1, mib, 1, 50)}
	tiers := charged(regions, capped(64*mib, noCap), capped(noCap, noCap))
	plan := func() (moves []Move) {
		moves = p.Plan(regions, tiers, 10*time.Second, noCap)
		for _, m := range moves {
			regions[m.Region].Tier = m.To
		}
		return moves
	}
	for n := 1; len(plan()) == 0; n++ {
		if n == leastPatience {
			t.Fatalf("nothing moved in %d periods", n)
		}
	}
	plan()
	regions[0].Heat = 1
	plan()
	plan()
	grown := p.patience
	if grown <= leastPatience {
		t.Error("patience did not grow")
	}
	regions[1].Heat = 1
	plan()
	plan()
	if p.patience != grown {
		t.Error("patience grew for what went up before it grew")
	}
	for range 3 * forgive {
		plan()
	}
	if p.patience != leastPatience {
		t.Errorf("patience is %d after a long time", p.patience)
	}
}

// BenchmarkPlan plans for 100,000 regions.
func BenchmarkPlan(b *testing.B) {
	var p Planner
	regions := make([]Region, 100_000)
	for i := range regions {
		regions[i] = known(i, mib, uint32(i%2), float64(i*7919%1000))
		regions[i].Start = uintptr(simStart + i*mib)
		regions[i].End = regions[i].Start + mib
	}
	tiers := charged(regions, capped(50_000*mib, noCap), capped(noCap, noCap))
	for b.Loop() {
		p.Plan(regions, tiers, time.Second, noCap)
	}
}
