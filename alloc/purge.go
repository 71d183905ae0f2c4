package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Purging gives the memory of free spans back to the kernel; the addresses stay.
// There is no thread for it: each span-level step of any thread first does what
// is due. Two rules make a span due:
//
//	age:     now >= stamp + PurgeDelay
//	reserve: dirtyBytes > max(minReserve, usedBytes/reserveShare)
//
// By the second a program that frees much at once and then falls silent has
// little left to give; it purges down to half the reserve, so that neighbours
// have joined and the calls are few.
const (
	minReserve   = 24 << 20
	reserveShare = 8
)

// PurgeDelay is how long a free span stays dirty, in nanoseconds.
var PurgeDelay uint64

// purgeDue purges what is due at now.
func purgeDue(token uintptr, now uint64) {
	oldest := pool.lruHead // a peek without the lock: wrong by chance is harmless
	if oldest == nil || now < pool.quiet {
		return
	}
	reserve := max(minReserve, pool.usedBytes/reserveShare)
	if pool.dirtyBytes > reserve {
		purgeWhile(token, now, reserve/2)
	} else if now >= oldest.stamp+PurgeDelay {
		purgeWhile(token, now, ^uintptr(0))
	}
}

// purgeWhile purges the oldest dirty spans for as long as more than floor bytes
// are dirty or the oldest is past its delay. It returns the bytes purged. The
// kernel is called without the lock; at most the spans that were dirty at the
// start are visited.
func purgeWhile(token uintptr, now uint64, floor uintptr) (done uintptr) {
	if !poolLock.Take(token) {
		return 0
	}
	for budget := pool.dirtyBytes >> SliceShift; budget > 0; budget-- {
		p := pool.lruHead
		if p == nil || pool.dirtyBytes <= floor && now < p.stamp+PurgeDelay {
			break
		}
		removeFree(p, spanDirty)
		p.state = spanPurging
		n := p.bytes()
		pool.purging += n
		poolLock.Release()

		ok := raw.Discard(p.Start, n)

		poolLock.Take(token)
		pool.purging -= n
		if !ok { // locked in memory, say: keep it dirty, as the youngest, and wait
			p.stamp = now
			pool.quiet = now + PurgeDelay
			pool.dirtyBytes += n
			lruAdd(p)
			insertFree(p, spanDirty)
			break
		}
		done += n
		uncommit(n)
		pool.count.purges++
		pool.count.purgedBytes += uint64(n)
		purged(token, p)
	}
	poolLock.Release()
	if done != 0 {
		stats.Put1(logDebug, stats.EventPurge, done, 0)
	}
	return done
}

// purged makes a purged span clean, and unmaps its segment when nothing else is
// in it and the pool has others. poolLock is held, and let go for the unmapping.
func purged(token uintptr, p *Page) {
	p = coalesce(p, spanClean)
	insertFree(p, spanClean)
	seg := p.segment
	if uintptr(p.slices) != seg.slices || seg.epoch != pool.epoch || pool.segSlices < 2*seg.slices {
		return
	}
	addr, size := segmentDetach(p)
	poolLock.Release()
	if raw.Unmap(addr, size) {
		unmapped(size)
		stats.Put1(logDebug, stats.EventSegmentEnd, addr, size)
	}
	poolLock.Take(token)
}
