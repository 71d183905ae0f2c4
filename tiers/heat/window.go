package heat

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstWindow    = 100 * time.Millisecond
	shortestWindow = 2 * time.Millisecond
	longestWindow  = 4 * time.Second

	// The hottest memory is to be touched almost everywhere in a window: so chance makes little of
	// its rate, and what is used a tenth as much is not touched everywhere. A window in which more
	// is touched than mostTouched says little about how often; by far too long is one with more
	// than allTouched.
	mostTouched  = 0.98
	allTouched   = 0.999
	leastTouched = 0.8

	// A window in which more than mostOfAll of all pages were touched does not tell apart which
	// are used more than others.
	mostOfAll = 0.6
)

// shorterEvery is how many of the longest windows pass before a shorter one.
const shorterEvery = 8

// windowTries is how many windows a sample may take, each shorter than the one before, if too much
// was touched in that.
const windowTries = 4

// window is the time in which a source sees what is touched. It adapts to the program.
type window struct {
	length  time.Duration         // of the next one; 0 before the first
	mean    time.Duration         // how long windows of that length take; 0 before the first
	tallies []tally               // of the last one, by region
	past    map[uintptr]pastShare // by a region's start
	samples int                   // measured so far
	order   []ranked              // scratch
	used    usedShare
	waited  int // windows of the longest length in which little was touched
}

// tally says how many of the pages that a region has in memory were touched.
type tally struct{ touched, pages float64 }

func (t tally) share() float64 {
	if t.pages == 0 {
		return 0
	}
	return t.touched / t.pages
}

// measure begins a window, sleeps for its length, ends it, and sets rates. Begin makes all pages
// untouched, and end adds to the tallies.
func (w *window) measure(regions []Range, rates []Rate, begin func() error,
	end func([]tally) error) error {
	if w.length == 0 {
		w.length = firstWindow
	}
	tallies := w.empty(len(rates))
	before := time.Now()
	if err := begin(); err != nil {
		return err
	}
	begun := time.Now()
	if err := rest(w.length); err != nil {
		return err
	}
	ends := time.Now()
	if err := end(tallies); err != nil {
		return err
	}
	// Begin and end pass over the memory in the same order. The first region
	// had a window of the first of these times, the last region one of the other.
	w.rates(regions, rates, (ends.Sub(before)+time.Since(begun))/2)
	return nil
}

// rates sets rates by the tallies of a window that took so long, and adapts the window.
func (w *window) rates(regions []Range, rates []Rate, elapsed time.Duration) {
	elapsed = w.usual(elapsed)
	for i, t := range w.tallies {
		rates[i] = rate(t.touched, t.pages, t.pages, elapsed)
		rates[i].Looks = float64(regions[i].End-regions[i].Start) / pageBytes
	}
	tenth, all := w.hottest(regions)
	if next := w.next(w.used.of(tenth, all, elapsed)); next != w.length {
		w.length, w.mean = next, 0
	}
}

// next is the length of the next window after one in which that share was touched. Where the
// longest window does not find enough, a shorter one is tried now and then: what it finds tells how
// much there is to find (see usedShare).
func (w *window) next(touched float64) time.Duration {
	next := nextWindow(w.length, touched)
	if next < longestWindow || w.length < longestWindow {
		w.waited = 0
	} else if w.waited++; w.waited%shorterEvery == 0 && touched < leastTouched {
		next /= 2
	}
	return next
}

// usual is how long a window takes in the mean of those of its length, of which the last took so
// long. Where almost all pages were touched the rate would follow each window's own length, and
// touches do not.
func (w *window) usual(elapsed time.Duration) time.Duration {
	if w.mean == 0 {
		w.mean = elapsed
	}
	w.mean += (elapsed - w.mean) / 4
	return w.mean
}

// empty makes n empty tallies.
func (w *window) empty(n int) []tally {
	w.tallies = slices.Grow(w.tallies[:0], n)[:n]
	clear(w.tallies)
	return w.tallies
}

// Rate is an estimate of how often the pages of a region are touched.
type Rate struct {
	PerSecond float64 // of all pages together
	Looks     float64 // at one page each. A page that is not in memory is never touched
	Look      float64 // how long each lasted, in seconds
}

// rate estimates how often pages are touched from how many of so many looks found a touch within a
// window. If touches come at random (a Poisson process), the share of pages without any in a window
// w is exp(-rate*w/pages). With f, the share that was touched, the rate is -ln(1-f)*pages/w. Whang,
// Vander-Zanden and Taylor, "A Linear-Time Probabilistic Counting Algorithm" (1990), estimate a
// count from a bitmap in the same way. The variance of f is f(1-f)/looks, and so to first order
// that of the rate (pages/w)^2*(exp(rate*w/pages)-1)/looks.
//
// Where all looks found a touch, f is taken to be half a look less.
func rate(found, looks, pages float64, window time.Duration) Rate {
	if looks <= 0 || window <= 0 {
		return Rate{Look: window.Seconds()}
	}
	f := min(found/looks, 1-1/(2*max(looks, 1)))
	unit := pages / window.Seconds()
	return Rate{-math.Log1p(-f) * unit, looks, window.Seconds()}
}

// hottest is the share of touched pages in the tenth of the memory that was touched most in windows
// before, or in the first one in this. The tenth that was touched most in this one would be touched
// by chance: pages of a region are often touched together. all is the share of touched pages in all
// of the memory.
func (w *window) hottest(regions []Range) (share, all float64) {
	if w.past == nil {
		w.past = map[uintptr]pastShare{}
	}
	first := !slices.ContainsFunc(regions, func(r Range) bool {
		_, ok := w.past[r.Start]
		return ok
	})
	w.order = w.order[:0]
	w.samples++
	var sum tally
	for i, r := range regions {
		t := w.tallies[i]
		p := w.past[r.Start]
		if first {
			p.share = t.share()
		}
		w.order = append(w.order, ranked{p.share, t})
		w.past[r.Start] = pastShare{(p.share + t.share()) / 2, w.samples}
		sum.touched += t.touched
		sum.pages += t.pages
	}
	if w.samples%forgetEvery == 0 {
		maps.DeleteFunc(w.past, func(_ uintptr, p pastShare) bool {
			return p.sample <= w.samples-forgetEvery
		})
	}
	slices.SortStableFunc(w.order, func(a, b ranked) int { return cmp.Compare(b.before, a.before) })
	var tenth tally
	for _, r := range w.order {
		pages := min(r.pages, sum.pages/10-tenth.pages)
		if pages <= 0 {
			break
		}
		tenth.touched += r.share() * pages
		tenth.pages += pages
	}
	return tenth.share(), sum.share()
}

// pastShare is the share of a region that was touched, in the mean over windows, of which the last
// was in that sample. Large heaps are measured a part after the other.
type pastShare struct {
	share  float64
	sample int
}

// forgetEvery is after how many samples a region that was not among them is forgotten.
const forgetEvery = 64

// ranked is a region by the share of its pages that windows before this one found touched.
type ranked struct {
	before float64
	tally
}

// nextWindow is the length of the window after one in which that share of the most touched tenth of
// the memory was touched.
func nextWindow(length time.Duration, touched float64) time.Duration {
	switch {
	case touched > allTouched && length > shortestWindow:
		return max(length/4, shortestWindow)
	case touched > mostTouched && length > shortestWindow:
		return max(length/2, shortestWindow)
	case touched < leastTouched && length < longestWindow:
		return min(length*2, longestWindow)
	}
	return length
}

// rest sleeps in the kernel. It does not use time.Sleep: timers need the runtime's poller, which
// does not survive a program that closes all descriptors.
func rest(d time.Duration) error {
	left := unix.NsecToTimespec(int64(d))
	for {
		asked := left
		err := unix.Nanosleep(&asked, &left)
		if err == nil || !errors.Is(err, unix.EINTR) {
			if err != nil {
				return fmt.Errorf("nanosleep: %w: no filter of it is needed", err)
			}
			return nil
		}
	}
}
