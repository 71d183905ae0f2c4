package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/stats"
)

// Purging gives the memory of free spans back to the kernel; the addresses stay.
// There is no thread for it: each span-level step of any thread first does what
// is due. Two rules make a span due:
//
//	age:     now >= freeSince + PurgeDelay
//	reserve: dirtyBytes > min(max(minReserve, usedBytes/reserveShare), limitMost)
//
// A longer delay than the usual one asks for more to be kept: the reserve is that many times as
// large. Once more than one thread has allocated, the second rule spares up to 24 MiB that have
// been free for less than a sixteenth of the delay. The kernel has to tell each processor of what
// it takes back, and threads that come and go soon want it again. With one thread that made no
// program faster, and some larger.
//
// Feedback: memory that the second rule purged, and that was wanted again within the delay, should
// have stayed. The second rule spares as many bytes from then on, until the first rule finds that
// they are not wanted. So only a program that has gone through such a cycle keeps more when it
// falls silent. A request for more than was purged does not count: what a table leaves that doubles
// never suffices for it.
//
//	feedback.wanted <= peak
//
// That is all the heap for programs that free most of it and allocate as much again, in turn.
//
// Likewise high-water trim spares what it has purged too soon, once there is more than one thread.
//
//	trimFeedback.wanted <= peak/trimWantedShare
//
// By the second rule a program that frees much at once and then falls silent has little left to
// give. It purges down to half the reserve, so that neighbours have joined and the calls are few.
const (
	minReserve   = 4 << 20
	reserveShare = 8
	graceShare   = 16 // of PurgeDelay
	graceBytes   = 24 << 20

	trimWantedShare = 16
)

// purgeFeedback is what purging before the delay has cost. Bytes; guarded by poolLock.
type purgeFeedback struct {
	purged uintptr // early, and not wanted since
	at     uint64  // when that was, the last time
	wanted uintptr // again, within the delay
}

func (f *purgeFeedback) purgedEarly(now uint64, n uintptr) {
	f.purged += n
	f.at = now
}

func (f *purgeFeedback) purgedLate(n uintptr) { f.wanted -= min(f.wanted, n) }

// faulted notes that n bytes of clean memory are about to be used.
func faulted(now uint64, n uintptr) {
	if pool.feedback.purged|pool.trimFeedback.purged != 0 {
		missed(now, n)
	}
}

// missed is faulted where memory was purged early.
//
//go:noinline
func missed(now uint64, n uintptr) {
	if n <= pool.feedback.purged {
		pool.feedback.missed(now, n, uintptr(pool.count.peak))
	}
	pool.trimFeedback.missed(now, n, trimWantedMost())
}

func (f *purgeFeedback) missed(now uint64, n, most uintptr) {
	if now >= f.at+PurgeDelay {
		f.purged = 0
	}
	n = min(n, f.purged)
	f.purged -= n
	f.wanted = min(f.wanted+n, most)
}

// faultedHuge is faulted for a huge block. It takes poolLock.
func faultedHuge(token uintptr, now uint64, n uintptr) {
	if n <= pool.feedback.purged && poolLock.Take(token) {
		pool.feedback.missed(now, n, uintptr(pool.count.peak))
		poolLock.Release()
	}
}

func trimWantedMost() uintptr { return uintptr(pool.count.peak) / trimWantedShare }

// PurgeDelay is how long a free span stays dirty, in nanoseconds.
var PurgeDelay uint64

// purgeDue purges what is due at now.
func purgeDue(token uintptr, now uint64) {
	oldest := oldestPlacement() // a peek without the lock: wrong by chance is harmless
	if oldest == placementSlots || now < pool.quiet {
		return
	}
	p := pool.oldest[oldest&(placementSlots-1)].head
	if p == nil {
		return
	}
	reserve := min(amountReserve(pool.usedBytes), limitMost())
	if pressed() {
		reserve = 0
	}
	if pool.dirtyBytes > reserve && !p.spared(now, reserve) {
		purgeWhile(token, now, reserve/2)
	} else if now >= p.freeSince()+purgeDelay() {
		purgeWhile(token, now, ^uintptr(0))
	}
}

// amountReserve is how many free bytes are kept at least while used bytes are in use.
func amountReserve(used uintptr) uintptr {
	const most = 1 << 46 // bytes: more than there are addresses
	least := max(minReserve, used/reserveShare)
	if PurgeDelay <= config.DefaultPurgeDelay {
		return least
	}
	return min(least*uintptr(PurgeDelay/config.DefaultPurgeDelay), most)
}

// spared reports whether the oldest dirty span stays at now though more than floor bytes are dirty.
func (p *Page) spared(now uint64, floor uintptr) bool {
	age := now - min(now, p.freeSince())
	if age >= purgeDelay() {
		return false
	}
	most := pool.feedback.wanted
	if pool.threadCount > 1 && age < PurgeDelay/graceShare {
		most = max(most, graceBytes)
	}
	return pool.dirtyBytes <= floor || pool.dirtyBytes-floor <= min(most, limitMost())
}

// oldestPlacement is the placement with the span that can be purged and has been free for
// longest, or placementSlots.
func oldestPlacement() (placement uintptr) {
	placement, since := uintptr(placementSlots), ^uint64(0)
	for i := range pool.oldest {
		if p := pool.oldest[i].head; p != nil && p.freeSince() <= since {
			placement, since = uintptr(i), p.freeSince()
		}
	}
	return placement
}

// purgeWhile purges the oldest dirty spans for as long as more than floor bytes
// are dirty or the oldest is past its delay. It returns the bytes purged.
func purgeWhile(token uintptr, now uint64, floor uintptr) (done uintptr) {
	for range placementSlots {
		placement := oldestPlacement()
		if placement == placementSlots {
			break
		}
		n := purgePlacement(token, now, placement, floor, purgeByRules)
		done += n
		if n == 0 {
			break
		}
	}
	return done
}

// A purgeReason is why dirty spans are purged.
type purgeReason uint8

const (
	purgeByRules purgeReason = iota // the two above
	purgeForRoom                    // under a cap or a limit
	purgeForPeak                    // high-water trim
)

// purgePlacement purges the oldest dirty spans of one placement for as long as more than floor
// bytes are dirty in all. By the rules it goes on while the oldest is past its delay, and stops
// where that is to be spared. At most the spans that were dirty at the start are visited.
func purgePlacement(token uintptr, now uint64, placement, floor uintptr,
	why purgeReason) (done uintptr) {
	due := why == purgeByRules
	oldest := &pool.oldest[placement&(placementSlots-1)]
	if oldest.head == nil || !poolLock.Take(token) {
		return 0
	}
	s := &pool.freeSpans[placement&(placementSlots-1)]
	for budget := s.dirtyBytes >> SliceShift; budget > 0; budget-- {
		p := oldest.head
		if p == nil {
			break
		}
		early := now < p.freeSince()+purgeDelay()
		if pool.dirtyBytes <= floor && (!due || early) || due && p.spared(now, floor) {
			break
		}
		removeFree(p, spanDirty)
		p = purgeablePart(p)
		n := p.bytes()
		if !purgeSpan(token, p) { // locked in memory, say: keep it dirty, as the youngest, and wait
			p.setFreeSince(now)
			pool.quiet = now + PurgeDelay
			addDirty(p)
			break
		}
		done += n
		switch {
		case !early:
			pool.feedback.purgedLate(n)
			pool.trimFeedback.purgedLate(n)
		case due:
			pool.feedback.purgedEarly(now, n)
		case why == purgeForPeak && pool.threadCount > 1:
			pool.trimFeedback.purgedEarly(now, n)
		}
	}
	poolLock.Release()
	if done != 0 {
		countPressed(done)
		stats.Put1(config.LogDebug, stats.EventPurge, done, 0)
	}
	return done
}

// purgeSpan gives the memory of a span that is in no list and no sum back to the
// kernel, without the lock, and makes it clean. It reports false when the kernel
// refuses. Precondition: poolLock is held.
func purgeSpan(token uintptr, p *Page) bool {
	if p.segment.reserved() {
		return purgeHugetlb(token, p)
	}
	p.state = spanPurging
	n := p.bytes()
	pool.purging += n
	pool.leaving += n
	poolLock.Release()

	ok := p.discard(p.Start, n)
	if ok {
		uncharge(p, n)
	}
	poolLock.Take(token)
	pool.purging -= n
	pool.leaving -= n
	if !ok {
		return false
	}
	uncommit(n)
	pool.count.purges++
	pool.count.purgedBytes += uint64(n)
	purged(token, p)
	return true
}

// purged makes a purged span clean, and unmaps its segment when nothing else is
// in it and the pool has others. poolLock is held, and let go for the unmapping.
func purged(token uintptr, p *Page) {
	p = coalesce(p, spanClean)
	seg := p.segment
	whole := uintptr(p.slices) == seg.slices
	if whole && seg.epoch == pool.epoch && pool.segSlices >= 2*seg.slices {
		unmapSegment(token, p)
		return
	}
	if whole {
		seg.dropLeft()
	}
	insertFree(p, spanClean)
}

// unmapSegment unmaps the segment that p, clean and in no list, is all of. poolLock is held,
// and let go meanwhile.
func unmapSegment(token uintptr, p *Page) (ok bool) {
	start, n, placement, hugetlb := p.Start, p.bytes(), p.placement, p.segment.reserved()
	addr, size := segmentDetach(p)
	poolLock.Release()
	ok = unmap(addr, size, hugetlb)
	if ok {
		stats.Put1(config.LogDebug, stats.EventSegmentEnd, addr, size)
	}
	poolLock.Take(token)
	if !ok && !hugetlb {
		retain(start, n, placement)
	}
	return ok
}

// countSubreleased counts what subreleased parts have given back.
func countSubreleased(token, bytes uintptr) {
	if bytes != 0 && poolLock.Take(token) {
		pool.count.purges++
		pool.count.purgedBytes += uint64(bytes)
		poolLock.Release()
		stats.Put1(config.LogDebug, stats.EventPurge, bytes, 0)
	}
}

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
// heap larger than ever. It returns as much as the heap would grow beyond its peak, and leaves what
// was wanted again after it was returned so. For small requests that does not pay, because a span
// that does not fit now will soon fit another request.
func trimDirty(token uintptr, now uint64, n uintptr) {
	if n < trimLeast || pool.dirtyBytes == 0 || now < pool.quiet || !poolLock.Take(token) {
		return
	}
	dirty := pool.dirtyBytes
	give := dirty - min(dirty, pool.trimFeedback.wanted, limitMost())
	floor := dirty - pool.trimSpans.spend(min(uintptr(max(beyondHighWater(n), 0)), give),
		uintptr(pool.count.peak), trimRate, now)
	poolLock.Release()
	for range placementSlots {
		placement := oldestPlacement()
		if placement == placementSlots || pool.dirtyBytes <= floor ||
			purgePlacement(token, now, placement, floor, purgeForPeak) == 0 {
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
