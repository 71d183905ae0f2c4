package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// Before the heap becomes larger than it ever was, it has what nobody uses go, so that a program's
// peak is made of what it has in use.

const (
	// bytes that are so many that dirty spans go back to the kernel for them
	trimLeast = 1 << 20
	// bytes per second of dirty spans that may go: to fault that in afresh takes a hundredth of the
	// time
	trimRate = 32 << 20
	// bytes per second that classes may take from each other: a hundredth of the time
	trimSliceRate = 40_000 << SliceShift
	trimTailLeast = SliceSize / 4 // bytes that are worth a system call
)

// A trimBudget is what may still be given away for the sake of peaks: as much as the peak is, and
// what a rate allows from then on, so that what it costs to have it again is a small part of the
// time.
//
//	left <= max(peak, 10 ms of the rate)
type trimBudget struct {
	left, peak uintptr // bytes; the peak as it was at
	at         uint64  // this time
}

// spend takes up to n bytes from the budget at now and returns how many; rate is in bytes per
// second. Precondition: poolLock is held.
func (b *trimBudget) spend(n, peak, rate uintptr, now uint64) uintptr {
	if b.at == 0 {
		b.left, b.at = rate/100, now
	}
	ms := (max(now, b.at) - b.at) / 1e6 // another thread may have come with a later time
	b.at += ms * 1e6
	b.left += peak - b.peak + uintptr(min(ms, 1000))*(rate/1000)
	b.left = min(b.left, max(peak, rate/100))
	b.peak = peak
	n = min(n, b.left)
	b.left -= n
	return n
}

// trimHighWater is called before n bytes of fresh memory are put to use. Where that would make the
// heap larger than ever, what nobody uses goes. It reports whether some has become dirty spans of
// one slice, where one is wanted.
func (t *Thread) trimHighWater(n uintptr) (some bool) {
	if beyondHighWater(n) <= 0 {
		return false
	}
	t.trimDirty(n)
	return t.trimCurrent(n == SliceSize)
}

// beyondHighWater is how many bytes n bytes more are beyond the most that the heap ever had, by a
// peek without the lock.
func beyondHighWater(n uintptr) int {
	return int(uintptr(pool.count.committed) + n - uintptr(pool.count.peak))
}

// trimDirty gives dirty spans, none of which fits, back to the kernel, where n bytes are much and
// would make the heap larger than ever: as much as that is. For less it does not pay, as what does
// not fit now will soon fit something.
func (t *Thread) trimDirty(n uintptr) {
	if n < trimLeast || pool.dirtyBytes == 0 || t.Now < pool.quiet || !poolLock.Take(t.token) {
		return
	}
	dirty := pool.dirtyBytes
	floor := dirty - pool.trimSpans.spend(min(uintptr(max(beyondHighWater(n), 0)), dirty),
		uintptr(pool.count.peak), trimRate, t.Now)
	poolLock.Release()
	for range placementSlots {
		placement := oldestPlacement()
		if placement == placementSlots || pool.dirtyBytes <= floor ||
			purgePlacement(t.token, t.Now, placement, floor, false) == 0 {
			return
		}
	}
}

// trimCurrent has the thread's current pages give what they do not need. Where a slice is wanted,
// those of one slice that are empty and of which a quarter was ever in use go to the pool. It
// reports whether there were any. Of the others what is not yet carved goes to the kernel, where it
// has been in use before, once nothing was carved from one such call to the next.
func (t *Thread) trimCurrent(slice bool) (some bool) {
	given := uintptr(0)
	for _, h := range t.Heaps {
		if h == nil {
			continue
		}
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			p := h.cur[c]
			if slice && p.slices == 1 && (p.zero == 0 || p.carved >= SliceSize/4) && p.allFree() {
				some = t.trimAllowed(SliceSize) && h.release(p, t.Now) || some
			} else if p.rests != 0 {
				given += t.trimTail(p)
			} else if p != pageNone {
				p.rests = 1
			}
		}
	}
	countSubreleased(t.token, given)
	return some
}

// trimTail gives the memory of p that is not yet carved back to the kernel, where that is worth it,
// and returns the bytes. What is left reads as zero then, as fresh memory does.
func (t *Thread) trimTail(p *Page) uintptr {
	at := p.Start + uintptr(p.carved)
	from, end := raw.RoundUp(at, raw.Page), p.Start+p.bytes()
	if p.zero != 0 || end < from+trimTailLeast || secure || t.Now < pool.quiet ||
		!p.mayGiveMemory() ||
		!t.trimAllowed(end-from) {
		return 0
	}
	if !raw.Discard(from, end-from) {
		pool.quiet = t.Now + PurgeDelay // without the lock: a hint
		return 0
	}
	for ; at < from; at += 8 {
		raw.Store(at, 0)
	}
	p.zero = 1
	return end - from
}

// trimAllowed reports whether n bytes more may be given back. Else classes that are used in turn
// would take them from each other for good.
func (t *Thread) trimAllowed(n uintptr) bool {
	if !poolLock.Take(t.token) {
		return false
	}
	got := pool.trimSlices.spend(n, uintptr(pool.count.peak), trimSliceRate, t.Now)
	if got < n {
		pool.trimSlices.left += got
	}
	poolLock.Release()
	return got == n
}
