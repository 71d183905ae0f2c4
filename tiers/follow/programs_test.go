package follow

import (
	"cmp"
	"math"
	"slices"
	"testing"
)

// hotCount is a hot region's touches that are counted, by page and period: 200 in 1 MiB.
const hotCount = 200.0 / 256

// hotSet is regions of about half of the memory, by one of three orders of allocation.
func (s *simulation) hotSet(order string) []bool {
	hot := make([]bool, len(s.regions))
	half := s.bytes(uint32(len(s.tiers)-1)) / 2
	var hotBytes, sum uint64
	for i := range s.regions {
		size := s.regions[i].size()
		switch order {
		case "hot first":
			hot[i] = sum < half
		case "cold first":
			hot[i] = sum >= half
		case "alternating":
			hot[i] = hotBytes <= sum/2
		}
		sum += size
		if hot[i] {
			hotBytes += size
		}
	}
	return hot
}

// halves uses the regions that are true, and the others hardly ever.
func halves(hot []bool) program {
	return func(_, i int) float64 {
		if hot[i] {
			return hotCount
		}
		return hotCount / 1000
	}
}

// not is the other regions.
func not(hot []bool) []bool {
	other := make([]bool, len(hot))
	for i, h := range hot {
		other[i] = !h
	}
	return other
}

// fastCaps are the caps of the fast tier under which the programs run: of so many bytes.
var fastCaps = map[string]func(uint64) Tier{
	"soft": func(n uint64) Tier { return capped(n, noCap) },
	"hard": func(n uint64) Tier { return capped(noCap, n) },
	"both": func(n uint64) Tier { return capped(n, n+n/16) },
}

// eachSetting runs a test for sizes of regions, caps, and two or three tiers.
func eachSetting(t *testing.T, fast uint64, test func(*testing.T, *simulation)) {
	for size, sizeOf := range sizes {
		for caps, tier := range fastCaps {
			t.Run(size+", "+caps, func(t *testing.T) {
				test(t, newSimulation(t, sizeOf, tier(fast), Tier{}, capped(noCap, noCap)))
			})
		}
		t.Run(size+", three tiers", func(t *testing.T) {
			test(t, newSimulation(t, sizeOf, capped(fast, fast), capped(noCap, simMemory/4),
				capped(noCap, noCap)))
		})
	}
}

// TestHalves: a hot half is in fast memory within 20 periods, whichever half came first. Then
// nothing moves, until another half is hot, which is followed as fast.
func TestHalves(t *testing.T) {
	for _, order := range []string{"hot first", "cold first", "alternating"} {
		t.Run(order, func(t *testing.T) {
			eachSetting(t, simMemory/2*11/10, func(t *testing.T, s *simulation) {
				hot := s.hotSet(order)
				s.allocate(s.inOrder())
				for n, set := range [][]bool{hot, not(hot), hot} {
					use := halves(set)
					s.run(20, use)
					if got := s.served(0, use); got < 0.97 {
						t.Errorf("fast memory serves %.3f of set %d after 20 periods", got, n)
					}
					if n == 0 {
						s.run(10, use) // it changes soon
						continue
					}
					s.run(20, use)
					if moved := s.run(20, use); moved > simMemory/100 {
						t.Errorf("%d KiB moved in the last of 60 periods", moved>>10)
					}
				}
			})
		})
	}
}

// TestUniform: nothing moves where all memory is used alike, much or hardly.
func TestUniform(t *testing.T) {
	for _, mean := range []float64{0, 0.0002, 0.005, 0.1, 1, 10} {
		eachSetting(t, simMemory/2, func(t *testing.T, s *simulation) {
			s.allocate(s.inOrder())
			use := func(int, int) float64 { return mean }
			if moved := s.run(100, use); moved > simMemory/100 {
				t.Errorf("%v in the mean: %d KiB moved", mean, moved>>10)
			}
		})
	}
}

// TestNearlyAlike: what is hotter by less than the ratio stays where it is.
func TestNearlyAlike(t *testing.T) {
	eachSetting(t, simMemory/2, func(t *testing.T, s *simulation) {
		hot := s.hotSet("cold first")
		s.allocate(s.inOrder())
		moved := s.run(100, func(_, i int) float64 {
			if hot[i] {
				return 100
			}
			return 75
		})
		if moved > simMemory/100 {
			t.Errorf("%d KiB moved", moved>>10)
		}
	})
}

// zipf gives regions of a random order the popularity of 1/rank, by page.
func (s *simulation) zipf() program {
	heat := make([]float64, len(s.regions))
	var sum float64
	for rank, i := range s.rng.Perm(len(heat)) {
		heat[i] = 1 / float64(rank+1)
		sum += heat[i]
	}
	return func(_, i int) float64 { return heat[i] / sum * hotCount / 2 * float64(len(heat)) }
}

// best is the share of the touches that the best placement of some bytes serves.
func (s *simulation) best(use program, bytes uint64) float64 {
	order := s.inOrder()
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(use(0, b), use(0, a)) })
	var all, here float64
	for _, i := range order {
		size := s.regions[i].size()
		touches := use(0, i) * float64(size)
		all += touches
		here += touches * min(1, float64(bytes)/float64(size))
		bytes -= min(bytes, size)
	}
	return here / all
}

// TestZipf: where few regions are hot and many lukewarm, fast memory serves nearly what the best
// placement does, and memory comes to rest.
func TestZipf(t *testing.T) {
	for _, part := range []uint64{8, 4, 2} {
		eachSetting(t, simMemory/part, func(t *testing.T, s *simulation) {
			use := s.zipf()
			s.allocate(s.inOrder())
			s.run(40, use)
			got, want := s.served(0, use), s.best(use, simMemory/part)
			if got < 0.97*want {
				t.Errorf("1/%d is fast: it serves %.3f, the best placement %.3f", part, got, want)
			}
			s.run(80, use)
			if moved := s.run(60, use); moved > simMemory/50 {
				t.Errorf("1/%d is fast: %d KiB moved in the last of 180 periods", part, moved>>10)
			}
		})
	}
}

// sweep uses a window of the memory that comes round once in cycle periods. Each region is in it
// for some periods.
func (s *simulation) sweep(cycle, dwell int) program {
	at := make([]float64, len(s.regions))
	sum := 0.0
	for i := range s.regions {
		at[i] = sum
		sum += float64(s.regions[i].size())
	}
	return func(period, i int) float64 {
		since := math.Mod(float64(period)-at[i]/sum*float64(cycle), float64(cycle))
		if since < 0 {
			since += float64(cycle)
		}
		if since < float64(dwell) {
			return 10 * hotCount
		}
		return 0
	}
}

// TestScan: a scan that sweeps the memory again and again does not move it back and forth.
func TestScan(t *testing.T) {
	const fast = simMemory / 2
	for _, scan := range [][2]int{{2, 1}, {4, 1}, {8, 1}, {8, 3}, {12, 3}, {20, 1}, {20, 8},
		{30, 5}, {60, 2}, {100, 1}, {100, 12}, {200, 5}} {
		eachSetting(t, fast, func(t *testing.T, s *simulation) {
			s.allocate(s.inOrder())
			if moved := s.run(300, s.sweep(scan[0], scan[1])); moved > 3*fast {
				t.Errorf("in cycles of %d, for %d: %.1f times the fast tier moved", scan[0],
					scan[1], float64(moved)/fast)
			}
		})
	}
}

// TestHotScan: a set that is swept again and again is hot beside memory that is not used.
func TestHotScan(t *testing.T) {
	for _, cycle := range []int{2, 4, 8} {
		eachSetting(t, simMemory/2*11/10, func(t *testing.T, s *simulation) {
			hot := s.hotSet("cold first")
			s.allocate(s.inOrder())
			use := func(period, i int) float64 {
				if hot[i] && (period+i)%cycle == 0 {
					return 10 * hotCount
				}
				return 0
			}
			s.run(60, use)
			if got := s.served(0, use); got < 0.97 {
				t.Errorf("in cycles of %d: fast memory serves %.3f", cycle, got)
			}
		})
	}
}

// TestTurns: two halves that are hot in turn move less and less often.
func TestTurns(t *testing.T) {
	for name, size := range sizes {
		s := newSimulation(t, size, capped(simMemory/2, noCap), capped(noCap, noCap))
		hot := s.hotSet("alternating")
		s.allocate(s.inOrder())
		use := [2]program{halves(hot), halves(not(hot))}
		turns := func(n int) (moved uint64) {
			for k := range n {
				moved += s.run(40, use[k%2])
			}
			return moved
		}
		if first, last := turns(8), turns(8); last > first/2 || first < simMemory {
			t.Errorf("%s: %d MiB moved in 320 periods, then %d", name, first>>20, last>>20)
		}
	}
}
