package heat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// touchedOf is how many of n pages random touches find in a window, where each page has so many per
// second.
func touchedOf(rng *rand.Rand, pages int, perPage float64, window time.Duration) float64 {
	n, share := 0.0, -math.Expm1(-perPage*window.Seconds())
	for range pages {
		if rng.Float64() < share {
			n++
		}
	}
	return n
}

// TestRate: the estimate is right in the mean, and finite where all pages were touched.
func TestRate(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	const pages, window = 512, 50 * time.Millisecond
	for _, perPage := range []float64{0, 0.1, 2, 20, 50} {
		var sum float64
		for range 400 {
			sum += rate(touchedOf(rng, pages, perPage, window), pages, pages, window).PerSecond
		}
		if got, want := sum/400, perPage*pages; math.Abs(got-want) > 0.05*want {
			t.Errorf("%f touches per second in the mean, not %f", got, want)
		}
	}
	got, want := rate(16, 16, 16, time.Second).PerSecond, 16*math.Log(32)
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("all of 16 pages touched: %f, not %f", got, want)
	}
	for _, got := range []Rate{rate(0, 0, 0, window), rate(3, 3, 3, 0), rate(0, 9, 9, window)} {
		if got.PerSecond != 0 {
			t.Errorf("rate %v of nothing", got)
		}
	}
	if got := rate(0.25, 0.25, 0.25, window).PerSecond; math.IsNaN(got) || math.IsInf(got, 0) {
		t.Errorf("part of a page: %f", got)
	}
}

func TestNextWindow(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		length  time.Duration
		touched float64
		want    time.Duration
	}{
		{100 * ms, 0.985, 50 * ms}, {100 * ms, 0.97, 100 * ms}, {100 * ms, 0.81, 100 * ms},
		{100 * ms, 0.79, 200 * ms}, {100 * ms, 1, 25 * ms},
		{3 * ms, 1, 2 * ms}, {2 * ms, 1, 2 * ms},
		{3200 * ms, 0, 4000 * ms}, {4000 * ms, 0, 4000 * ms}, {9000 * ms, 0, 9000 * ms},
	} {
		if got := nextWindow(c.length, c.touched); got != c.want {
			t.Errorf("%v with %.2f touched becomes %v, not %v", c.length, c.touched, got, c.want)
		}
	}
}

// TestHottest: the tenth is of the memory, not of the regions, and takes a part of a region if need
// be.
func TestHottest(t *testing.T) {
	for _, c := range []struct {
		tallies []tally
		want    float64
	}{
		{nil, 0},
		{[]tally{{0, 0}, {0, 100}}, 0},
		{[]tally{{30, 100}}, 0.3},
		{[]tally{{0, 900}, {80, 100}}, 0.8},
		{[]tally{{90, 900}, {0, 0}, {50, 50}, {0, 50}}, 0.55},
	} {
		w := window{tallies: c.tallies}
		if got, _ := w.hottest(simulated(len(c.tallies))); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%v: %f, not %f", c.tallies, got, c.want)
		}
	}
}

// TestWindowSettles: whatever the program does, the window comes to where hot and cold differ, and
// stays.
func TestWindowSettles(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, hot := range []float64{0.2, 1, 10, 100, 300} {
		w, changes := window{length: firstWindow}, 0
		for i := range 40 {
			tallies := w.empty(100)
			for r := range tallies {
				perPage := hot
				if r%5 > 0 {
					perPage /= 100
				}
				tallies[r] = tally{touchedOf(rng, 64, perPage, w.length), 64}
			}
			length := w.length
			w.rates(simulated(100), make([]Rate, 100), length)
			tried := min(length, w.length) >= longestWindow/2 // a shorter one, see next
			if w.length != length && !tried && i > 20 {
				changes++
			}
		}
		mean := -math.Expm1(-hot * w.length.Seconds())
		if mean > mostTouched || mean < leastTouched/2 || changes > 2 {
			t.Errorf("%v touches per page and second: window %v in which %.2f are touched, "+
				"%d changes", hot, w.length, mean, changes)
		}
	}
}

// TestMeasure: a window is at least as long as it should be, and rates are by its true length.
func TestMeasure(t *testing.T) {
	w := window{length: 20 * time.Millisecond}
	rates := make([]Rate, 2)
	begun := false
	before := time.Now()
	begin := func() error { begun = true; return nil }
	err := w.measure(simulated(2), rates, begin, func(tallies []tally) error {
		if !begun || time.Since(before) < w.length {
			t.Errorf("ended after %v, begun %v", time.Since(before), begun)
		}
		tallies[1] = tally{50, 100}
		return nil
	})
	elapsed := time.Since(before)
	most := 100 * math.Ln2 / 0.020
	least := 100 * math.Ln2 / elapsed.Seconds()
	if err != nil || rates[0].PerSecond != 0 || rates[1].PerSecond < least ||
		rates[1].PerSecond > most {
		t.Errorf("rates %v, not from %f to %f, %v", rates, least, most, err)
	}
}
