package heat

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstWindow    = 100 * time.Millisecond
	shortestWindow = 2 * time.Millisecond
	longestWindow  = 4 * time.Second

	// A window in which more pages are touched than mostTouched says little about how often they
	// are. One in which fewer are than leastTouched sees few pages twice.
	mostTouched  = 0.7
	leastTouched = 0.1
)

// window is the time in which a source sees what is touched. It adapts to the program.
type window struct {
	length  time.Duration // of the next one; 0 before the first
	tallies []tally       // of the last one, by region
	byShare []tally       // scratch
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
func (w *window) measure(rates []float64, begin func() error, end func([]tally) error) error {
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
	// Begin and end pass over the memory in the same order. What lies first in it had the first of
	// these times for its window, what lies last the other.
	elapsed := (ends.Sub(before) + time.Since(begun)) / 2
	for i, t := range tallies {
		rates[i] = rate(t.touched, t.pages, t.pages, elapsed)
	}
	w.length = nextWindow(w.length, w.hottest())
	return nil
}

// empty makes n empty tallies.
func (w *window) empty(n int) []tally {
	w.tallies = slices.Grow(w.tallies[:0], n)[:n]
	clear(w.tallies)
	return w.tallies
}

// rate estimates how often pages are touched, per second and for all of them together, from how
// many of so many looks found a touch within a window. If touches come at random (a Poisson
// process), the share of pages without any in a window w is exp(-rate*w/pages). With f, the share
// that was touched, the rate is -ln(1-f)*pages/w. Whang, Vander-Zanden and Taylor, "A Linear-Time
// Probabilistic Counting Algorithm" (1990), estimate a count from a bitmap in the same way.
// Where all looks found a touch, f is taken to be half a look less.
func rate(found, looks, pages float64, window time.Duration) float64 {
	if looks <= 0 || window <= 0 {
		return 0
	}
	f := min(found/looks, 1-1/(2*max(looks, 1)))
	return -math.Log1p(-f) * pages / window.Seconds()
}

// hottest is the share of touched pages in the most touched tenth of the memory.
func (w *window) hottest() float64 {
	w.byShare = append(w.byShare[:0], w.tallies...)
	slices.SortFunc(w.byShare, func(a, b tally) int { return cmp.Compare(b.share(), a.share()) })
	var all float64
	for _, t := range w.byShare {
		all += t.pages
	}
	var tenth tally
	for _, t := range w.byShare {
		pages := min(t.pages, all/10-tenth.pages)
		if pages <= 0 {
			break
		}
		tenth.touched += t.share() * pages
		tenth.pages += pages
	}
	return tenth.share()
}

// nextWindow is the length of the window after one in which that share of the most touched tenth of
// the memory was touched.
func nextWindow(length time.Duration, touched float64) time.Duration {
	switch {
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
