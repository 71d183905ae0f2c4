package alloc

// Before the heap becomes larger than it ever was, it has what nobody uses go, so that a program's peak is
// made of what it has in use.

const (
	spareLeast = 1 << 20              // bytes that are so many that dirty spans go back to the kernel for them
	sliceRate  = 40_000 << SliceShift // bytes per second that classes may take from each other: a hundredth of the time
)

// A spareBudget is what may still be given away for the sake of peaks: as much as the peak is, and what a rate
// allows from then on, so that what it costs to have it again is a small part of the time.
//
//	left <= max(peak, 10 ms of the rate)
type spareBudget struct {
	left, peak uintptr // bytes; the peak as it was at
	at         uint64  // this time
}

// spend takes up to n bytes from the budget at now and returns how many; rate is in bytes per
// second. Precondition: poolLock is held.
func (b *spareBudget) spend(n, peak, rate uintptr, now uint64) uintptr {
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

// sparePeak is called before a span of n bytes of fresh memory is put to use. Where it would make the heap larger than
// ever and one slice is wanted, empty pages of one slice that the thread has become dirty spans. It reports whether
// some did.
func (t *Thread) sparePeak(n uintptr) (some bool) {
	if n == SliceSize {
		return beyondPeak(n) > 0 && t.giveSlices()
	}
	t.spareDirty(n)
	return false
}

// beyondPeak is how many bytes n bytes more are beyond the most that the heap ever had, by a peek without the lock.
func beyondPeak(n uintptr) int {
	return int(uintptr(pool.count.committed) + n - uintptr(pool.count.peak))
}

// spareDirty gives dirty spans, none of which fits, back to the kernel, where n bytes are much and would
// make the heap larger than ever: as much as that is. For less it does not pay, as what does not fit now will
// soon fit something. Nothing is learned from it (lesson).
func (t *Thread) spareDirty(n uintptr) {
	over := beyondPeak(n)
	if over <= 0 || n < spareLeast || pool.dirtyBytes == 0 || t.Now < pool.quiet || !poolLock.Take(t.token) {
		return
	}
	dirty := pool.dirtyBytes
	floor := dirty - pool.spareSpans.spend(min(uintptr(over), dirty), uintptr(pool.count.peak), missedRate, t.Now)
	poolLock.Release()
	for range placeSlots {
		place := oldestPlace()
		if place == placeSlots || pool.dirtyBytes <= floor ||
			purgePlace(t.token, t.Now, place, floor, false) == 0 {
			return
		}
	}
}

// giveSlices gives back to the pool the current pages of one slice that are empty and of which
// a quarter was ever in use. It reports whether there were any.
func (t *Thread) giveSlices() (some bool) {
	for _, h := range t.Heaps {
		if h == nil {
			continue
		}
		for c := range h.cur {
			p := h.cur[c]
			if p.slices != 1 || p.zero != 0 && p.carved < SliceSize/4 || !p.allFree() {
				continue
			}
			if !t.mayGive() {
				return some
			}
			some = h.release(p, t.Now) || some
		}
	}
	return some
}

// mayGive reports whether one slice more may be given back. Else classes that are used in turn would take it
// from each other for good.
func (t *Thread) mayGive() bool {
	if !poolLock.Take(t.token) {
		return false
	}
	n := pool.spareSlices.spend(SliceSize, uintptr(pool.count.peak), sliceRate, t.Now)
	poolLock.Release()
	return n == SliceSize
}
