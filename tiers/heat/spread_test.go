package heat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// judged is what n samples make of two regions: by how much the first seems hotter.
func judged(rng *rand.Rand, pages [2]int, heats [2]float64, samples int) float64 {
	const window = 100 * time.Millisecond
	e := NewEstimate([]Range{{1 << 30, uintptr(1<<30 + pages[0]*pageBytes)},
		{1 << 31, uintptr(1<<31 + pages[1]*pageBytes)}})
	for range samples {
		var rates [2]Rate
		for i, n := range pages {
			rates[i] = rate(touchedOf(rng, n, heats[i], window), float64(n), float64(n), window)
		}
		e.Add(rates[:])
	}
	e.relative = 0 // two regions do not say how much a program differs from itself
	return Apart(e.Heat(0), e.Spread(0), e.Heat(1), e.Spread(1))
}

// TestApart: regions that are alike differ by chance as the normal distribution says, however many
// of their pages are touched, and those that are not are soon told apart.
func TestApart(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, pages := range [][2]int{{16, 16}, {16, 512}, {512, 16}, {512, 512}} {
		for _, heat := range []float64{0.1, 1, 5, 16, 30, 100} {
			const tries = 1000
			far := 0
			for range tries {
				if judged(rng, pages, [2]float64{heat, heat}, 4) > 3 {
					far++
				}
			}
			if far > tries/100 {
				t.Errorf("%d and %d pages, both with %v touches a second: %d of %d are 3 apart",
					pages[0], pages[1], heat, far, tries)
			}
		}
		for _, hot := range []float64{16, 30, 100} {
			for range 100 {
				if z := judged(rng, pages, [2]float64{hot, hot / 20}, 4); !(z > 5) {
					t.Errorf("%d pages of %v and %d of %v touches a second: %.1f apart", pages[0],
						hot, pages[1], hot/20, z)
				}
			}
		}
	}
	exact := Spread{Look: 1}
	if z := Apart(2, exact, 1, exact); !math.IsInf(z, 1) {
		t.Errorf("exact heats: %v", z)
	}
	if z := Apart(1, exact, 1, exact); z > 0 {
		t.Errorf("the same: %v", z)
	}
}
