package profile

import (
	"math/rand/v2"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// newTable makes the table of the package an empty one, in which every block of the tests counts
// as one.
func newTable(tb testing.TB) {
	was, rate := t, Rate
	size := raw.RoundUp(unsafe.Sizeof(table{}), raw.Page)
	at := raw.Map(size)
	if at == 0 {
		tb.Fatal("no memory")
	}
	t, Rate = (*table)(raw.Ptr(at)), 1
	tb.Cleanup(func() {
		raw.Unmap(at, size)
		t, Rate = was, rate
	})
}

// TestPeakIsOneMoment allocates and frees blocks of several sites at random. The sites' peaks are
// what they had in use at one and the same moment of the past, at which all of them together had at
// most a hundredth less in use than ever.
func TestPeakIsOneMoment(tt *testing.T) {
	const sites = 5
	type moment [sites]float64
	for seed := range uint64(20) {
		newTable(tt)
		rnd := rand.New(rand.NewPCG(seed, 1))
		t.siteN = sites
		var now, none moment
		past := map[moment]bool{none: true}
		most, checks := 0.0, 0
		type block struct {
			addr uintptr
			size uint64
			site int
		}
		var blocks []block
		for step := range 4000 {
			// The heap grows and shrinks in turns, and its sites have their turns, too.
			grows := step/400%2 == 0
			if len(blocks) == 0 || rnd.IntN(100) < 25 || grows && rnd.IntN(100) < 50 {
				b := block{uintptr(step+1) << 12, 64 + rnd.Uint64N(4096),
					(step/400 + rnd.IntN(2)) % sites}
				if !t.keep(&Block{Addr: b.addr, Size: b.size}, &t.sites[b.site]) {
					tt.Fatal("no room")
				}
				blocks = append(blocks, b)
				now[b.site] += float64(b.size)
			} else {
				i := rnd.IntN(len(blocks))
				b := blocks[i]
				blocks[i] = blocks[len(blocks)-1]
				blocks = blocks[:len(blocks)-1]
				t.drop(b.addr, 0)
				now[b.site] -= float64(b.size)
			}
			past[now] = true
			sum := 0.0
			for _, v := range now {
				sum += v
			}
			most = max(most, sum)
			if step%37 != 0 && step != 3999 {
				continue
			}
			Settle(0)
			var peak moment
			total := 0.0
			for i := range peak {
				peak[i] = t.sites[i].Peak
				total += peak[i]
			}
			if !past[peak] {
				tt.Fatalf("seed %d, step %d: the sites never had %v at once", seed, step, peak)
			}
			if total != t.peak[0] || total < most/1.01 || total > most {
				tt.Fatalf("seed %d, step %d: the peaks are %.0f bytes, the table's %.0f, of %.0f",
					seed, step, total, t.peak[0], most)
			}
			if total < sum {
				tt.Fatalf("seed %d, step %d: %.0f bytes in use are more than the peak, %.0f",
					seed, step, sum, total)
			}
			checks++
		}
		if checks < 100 {
			tt.Fatalf("only %d checks", checks)
		}
	}
}

// TestPeakAtWriting: a profile that is written while the heap is larger than at its last peak by
// less than a hundredth has no more in use than at its peak.
func TestPeakAtWriting(tt *testing.T) {
	newTable(tt)
	t.siteN = 1
	s := &t.sites[0]
	t.keep(&Block{Addr: 1 << 12, Size: 100_000}, s)
	Settle(0)
	t.keep(&Block{Addr: 2 << 12, Size: 100}, s)
	Settle(0)
	if s.Peak != 100_100 || s.liveBytes() != 100_100 {
		tt.Errorf("in use are %.0f bytes, at the peak %.0f", s.liveBytes(), s.Peak)
	}
}

// TestWrittenTwice: both times that a profile is written, first for its length, it is the same,
// also if signal handlers miss samples in between.
func TestWrittenTwice(tt *testing.T) {
	newTable(tt)
	Settle(1)
	first := Write(0, 0, &About{})
	Missed += 1e6
	if second := Write(0, 0, &About{}); second != first {
		tt.Errorf("the profile has %d bytes, and then %d", first, second)
	}
}
