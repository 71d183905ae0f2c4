package follow

import "testing"

// looks is how many looks for room there are in a second.
const looks = 2

// settled is a simulation of a hot set of which a half lies in a full upper tier. A quarter of the
// other half is hot too.
func settled(t *testing.T, size func(int) uintptr, fast Tier) (*simulation, program) {
	t.Helper()
	s := newSimulation(t, size, fast, capped(noCap, noCap))
	s.allocate(s.inOrder())
	hot := make([]bool, len(s.regions))
	for i := range hot {
		hot[i] = s.regions[i].Tier == 0 || s.bytes(0) > simMemory/2 || i%2 == 0
	}
	use := halves(hot)
	s.run(12, use)
	return s, use
}

// free has the program free some bytes of hot memory of a tier. Their regions stay in the list.
func (s *simulation) free(tier uint32, bytes uint64, freed map[int]bool) {
	for i := range s.regions {
		if r := &s.regions[i]; r.Tier == tier && bytes >= r.size() && !freed[i] && r.Heat > 0.1 {
			bytes -= r.size()
			s.tiers[tier].Bytes -= r.size()
			freed[i] = true
		}
	}
}

// fastShare is the share of the touches of what is not freed that the upper tier serves.
func (s *simulation) fastShare(use program, freed map[int]bool) float64 {
	return s.served(0, func(period, i int) float64 {
		if freed[i] {
			return 0
		}
		return use(period, i)
	})
}

// TestRoomBetweenSamples: memory of the upper tier is freed 10 s after a sample, and so is some of
// the lower one. At 12 s the hot memory that is left lies in the upper tier, though the next sample
// is at 60 s.
func TestRoomBetweenSamples(t *testing.T) {
	for size, sizeOf := range sizes {
		for caps, tier := range fastCaps {
			t.Run(size+", "+caps, func(t *testing.T) {
				s, use := settled(t, sizeOf, tier(simMemory/2))
				s.estimate(use)
				s.carryOut(s.planner.Plan(s.regions, s.tiers, simPeriod, s.budget))
				freed := map[int]bool{}
				s.gone = func(i int) bool { return freed[i] }
				for look := range 12 * looks {
					if look == 10*looks {
						s.free(0, simMemory/4, freed)
						s.free(1, simMemory/16, freed)
					}
					s.look()
				}
				if got := s.fastShare(use, freed); got < 0.97 {
					t.Errorf("at 12 s the upper tier serves %.3f", got)
				}
				for range 48 * looks {
					s.moved = 0
					if s.look(); s.moved > 0 {
						t.Fatalf("%d KiB move later", s.moved>>10)
					}
				}
			})
		}
	}
}

// TestRoomComesAndGoes: a program frees and allocates memory of the upper tier by turns, for a
// thousand seconds. However long its turns are and however often samples are taken, no more moves
// between them than some times what is freed.
func TestRoomComesAndGoes(t *testing.T) {
	const part, most = simMemory / 16, 4 * simMemory / 16
	for caps, tier := range fastCaps {
		for _, turn := range []int{1, 2, 3, 7, 20, 45, 119, 120, 121, 400} {
			for _, sample := range []int{2, 20, 120} {
				s, use := settled(t, equal, tier(simMemory/2-part))
				s.tiers[0].Soft, s.tiers[0].Hard = tier(simMemory/2).Soft, tier(simMemory/2).Hard
				s.tiers[0].Bytes += part
				moved := s.turns(use, part, turn, sample, 1000*looks)
				if moved > most || turn == 1 && moved > 0 {
					t.Errorf("%s, turns of %d, samples of %d: %d MiB moved", caps, turn, sample,
						moved>>20)
				}
			}
		}
	}
}

// turns has the program free and allocate a part of the upper tier after so many looks each, and
// samples it after so many. It returns the bytes that moved between samples.
func (s *simulation) turns(use program, part uint64, turn, sample, n int) (moved uint64) {
	s.t.Helper()
	taken := true
	for look := range n {
		if upper := &s.tiers[0]; look%turn == turn-1 {
			if taken {
				upper.Bytes -= part
			}
			taken = !taken && upper.Bytes+part <= upper.Hard
			if taken {
				upper.Bytes += part
			}
		}
		if look%sample == 0 {
			s.estimate(use)
			s.carryOut(s.planner.Plan(s.regions, s.tiers, simPeriod, s.budget))
		}
		s.moved = 0
		s.look()
		moved += s.moved
	}
	return moved
}
