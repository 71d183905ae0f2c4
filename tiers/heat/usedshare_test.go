package heat

import (
	"math/rand/v2"
	"testing"
	"time"
)

// headers is a program that has blocks of 16 pages and touches only the first used ones of each: of
// every fourth block so many times a second, of the others a hundredth as often.
type headers struct {
	rng  *rand.Rand
	w    window
	used int
	hot  float64
}

const headerBlocks = 400

// sample measures once. It returns the rates of a hot and of a cold block in the mean.
func (p *headers) sample() (hot, cold float64) {
	regions := simulated(headerBlocks)
	rates := make([]Rate, len(regions))
	tallies := p.w.empty(len(rates))
	for i := range tallies {
		perPage := p.hot
		if i%4 > 0 {
			perPage /= 100
		}
		tallies[i] = tally{touchedOf(p.rng, p.used, perPage, p.w.length), 16}
	}
	p.w.rates(regions, rates, p.w.length)
	for i, r := range rates {
		if i%4 > 0 {
			cold += r.PerSecond / (headerBlocks * 3 / 4)
		} else {
			hot += r.PerSecond / (headerBlocks / 4)
		}
	}
	return hot, cold
}

// tellsApart runs the program until the window has settled, and reports whether hot blocks seem
// much hotter than cold ones from then on.
func (p *headers) tellsApart(t *testing.T, what string) {
	t.Helper()
	for range 30 {
		p.sample()
	}
	const samples = 20
	var hot, cold float64
	for range samples {
		h, c := p.sample()
		hot += h / samples
		cold += c / samples
	}
	if hot < 10*cold {
		t.Errorf("%s: %.1f and %.1f touches a second, window %v", what, hot, cold, p.w.length)
	}
}

// TestFewPagesUsed: hot and cold blocks are told apart where few pages of each are ever touched,
// from the start, after all pages were written once, and after a pause.
func TestFewPagesUsed(t *testing.T) {
	for _, used := range []int{1, 2, 8, 16} {
		for _, hot := range []float64{2, 30, 300} {
			p := headers{rand.New(rand.NewPCG(1, 2)), window{length: firstWindow}, used, hot}
			p.tellsApart(t, "from the start")
			p.used, p.hot = 16, 1e5
			for range 20 {
				p.sample()
			}
			p.used, p.hot = used, hot
			p.tellsApart(t, "after all was written")
			p.hot = 0
			for range 20 {
				p.sample()
			}
			p.hot = hot
			p.tellsApart(t, "after a pause")
			if p.w.length > longestWindow {
				t.Errorf("window %v", p.w.length)
			}
		}
	}
}

// TestUsedShare: the share of the pages that are used is found from two windows.
func TestUsedShare(t *testing.T) {
	const s = time.Second
	for _, c := range []struct {
		first, second float64
		longer        time.Duration
		want          float64
	}{
		{0.3, 0.51, 2 * s, 0.51},          // all pages are used
		{0.0625, 0.0625, 2 * s, 1},        // a sixteenth is, and was touched
		{0.05, 0.06, 2 * s, 0.96},         // a sixteenth is
		{0.25, 0.375, 2 * s, 0.75},        // half
		{0.3, 0.3, s, 0.3},                // nothing is learned
		{0, 0, 2 * s, 0},                  // nothing was touched
		{0, 0.2, 2 * s, 0.2},              // before it was not
		{0.2, 0.1, 2 * s, 0.5},            // less than before
		{0.1, 0.3, 2 * s, 0.3},            // much more
		{0.0625, 0.0625, s / 2, 1.0 / 16}, // a shorter one
	} {
		var u usedShare
		u.of(c.first, 0, s)
		if got := u.of(c.second, 0, c.longer); !near(got, c.want) {
			t.Errorf("%v, then %v in %v: %.3f, not %.3f", c.first, c.second, c.longer, got, c.want)
		}
		if got := u.of(c.second, 0.7*u.share, c.longer); got != 1 {
			t.Errorf("most of all memory touched: %.3f", got)
		}
	}
}

func near(a, b float64) bool { return a-b < 1e-3 && b-a < 1e-3 }
