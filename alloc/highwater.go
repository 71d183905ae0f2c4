package alloc

// Before the heap becomes larger than it ever was, it first releases unused memory, so that a
// program's peak consists of memory in use.

const (
	// for requests from this size on, dirty spans are released
	trimLeast = 1 << 20
	// bytes of dirty spans released per second: faulting them in again takes a hundredth of the
	// time
	trimRate = 32 << 20
	// bytes per second that classes may take from each other, for a hundredth of the time
	trimSliceRate = 40_000 << SliceShift
	trimTailLeast = SliceSize / 4 // bytes that are worth a system call
)

// A trimBudget bounds the memory that is released to keep peaks low: the peak's bytes, and more at
// a fixed rate from then on, so that faulting it in again takes a small part of the time.
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

// beyondHighWater is how many bytes n bytes more are beyond the most that the heap ever had, by a
// peek without the lock.
func beyondHighWater(n uintptr) int {
	return int(uintptr(pool.count.committed) + n - uintptr(pool.count.peak))
}

// trimDirty returns dirty spans to the kernel before n bytes, for which none of them fits, make the
// heap larger than ever. It returns as much as the heap would grow beyond its peak. For small
// requests that does not pay, because a span that does not fit now will soon fit another request.
func trimDirty(token uintptr, now uint64, n uintptr) {
	if n < trimLeast || pool.dirtyBytes == 0 || now < pool.quiet || !poolLock.Take(token) {
		return
	}
	dirty := pool.dirtyBytes
	floor := dirty - pool.trimSpans.spend(min(uintptr(max(beyondHighWater(n), 0)), dirty),
		uintptr(pool.count.peak), trimRate, now)
	poolLock.Release()
	for range placementSlots {
		placement := oldestPlacement()
		if placement == placementSlots || pool.dirtyBytes <= floor ||
			purgePlacement(token, now, placement, floor, false) == 0 {
			return
		}
	}
}

// trimCached is trimDirty for cached huge blocks, none of which fits.
func trimCached(token uintptr, now uint64, n uintptr) {
	c := &pool.cache
	if !poolLock.Take(token) {
		return
	}
	for c.n != 0 && beyondHighWater(n) > 0 {
		i := c.oldest(anyPlacement, 0)
		p := c.slot[i&(hugeCacheSlots-1)]
		got := pool.trimSpans.spend(p.Size, uintptr(pool.count.peak), trimRate, now)
		if got < p.Size {
			pool.trimSpans.left += got
			break
		}
		c.remove(i)
		hugeUnmap(token, p)
	}
	poolLock.Release()
}

// trimAllowed reports whether n bytes more may be given back. Else classes that are used in turn
// would take them from each other for good.
func trimAllowed(token uintptr, now uint64, n uintptr) bool {
	if !poolLock.Take(token) {
		return false
	}
	got := pool.trimSlices.spend(n, uintptr(pool.count.peak), trimSliceRate, now)
	if got < n {
		pool.trimSlices.left += got
	}
	poolLock.Release()
	return got == n
}
