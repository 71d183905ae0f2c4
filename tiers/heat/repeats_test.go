package heat

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestRepeats: a region that uses the same pages in each window differs less from sample to sample
// than independent looks do, and one of which other pages are found each time does not. A change of
// use ends that.
func TestRepeats(t *testing.T) {
	const window, pages = 50 * time.Millisecond, 16
	rng := rand.New(rand.NewPCG(1, 2))
	var regions []Range
	for i := range uintptr(200) {
		regions = append(regions, kib64(16+i, 1))
	}
	same := func(i int) bool { return i%2 == 0 }
	e := NewEstimate(regions)
	add := func(samples int, first float64) {
		for range samples {
			rates := make([]Rate, len(regions))
			for i := range rates {
				n := 3.0
				switch {
				case i == 0:
					n = first
				case !same(i):
					n = touchedOf(rng, pages, 4, window)
				}
				rates[i] = rate(n, pages, pages, window)
			}
			e.Add(rates)
		}
	}
	add(30, 3)
	for i := range regions {
		share := e.known[i].again.share()
		if same(i) && share > 0.2 || !same(i) && share < 0.7 {
			t.Errorf("region %d, the same pages: %v: %.2f of the variance", i, same(i), share)
		}
	}
	add(1, 12)
	if share := e.known[0].again.share(); share < 0.4 {
		t.Errorf("after a change: %.2f of the variance", share)
	}
}
