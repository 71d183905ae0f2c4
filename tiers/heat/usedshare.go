package heat

import "time"

// usedShare learns which share of the pages of the hottest tenth is used at all. A program may read
// the first page of each block only, and then no window finds more than those.
//
// If touches come at random, a window finds the share used*(1-q) of the pages, and one that is k
// times as long used*(1-q^k). For k = 2 the second is 1+q times the first, and so much tells q. The
// zero value takes all pages to be used.
type usedShare struct {
	share  float64       // 0 before the first window
	found  float64       // by the last window
	window time.Duration // how long that took
}

// longerBy is how many times as long as the one before a window is that tells something new.
const longerBy = 1.5

// of is the share of the used pages that a window has found. tenth is the share of all pages in the
// hottest tenth that it found, and all that in all memory. It is 1 if too much of all memory was
// touched: other pages are taken to be used as those of the tenth are.
func (u *usedShare) of(tenth, all float64, window time.Duration) float64 {
	before := u.found
	k := window.Seconds() / max(u.window, 1).Seconds()
	switch {
	case u.window == 0:
		u.share = 1
	case k < longerBy:
	case before == 0 || tenth >= k*before:
		u.share = 1
	default:
		q := max(0, (tenth/before-1)/(k-1))
		u.share = min(1, max(tenth, before/(1-q)))
	}
	u.share = max(u.share, tenth)
	u.found, u.window = tenth, window
	if all > mostOfAll*u.share {
		return 1
	}
	return tenth / u.share
}
