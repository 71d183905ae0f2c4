package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// Fork: the forking thread takes both locks, so that what they guard is whole in
// the child. A lock that it holds already, because it forks from a signal handler
// that interrupted it, is left to the interrupted code.
//
// The heaps of the parent's other threads are frozen in the child: their owners
// may have been anywhere, and memory is copied page by page while they ran.

// Bits of the value that ForkPrepare returns and the others take.
const (
	forkHeaps = 1
	forkPool  = 2
)

// ForkPrepare takes the locks for the calling thread.
func ForkPrepare(token uintptr) (taken uintptr) {
	if heapsLock.Take(token) {
		taken |= forkHeaps
	}
	if poolLock.Take(token) {
		taken |= forkPool
	}
	return taken
}

// ForkParent lets the locks go in the parent.
func ForkParent(taken uintptr) {
	release(taken)
	stats.Put1(logInfo, stats.EventFork, 0, 0)
}

func release(taken uintptr) {
	if taken&forkPool != 0 {
		poolLock.Release()
	}
	if taken&forkHeaps != 0 {
		heapsLock.Release()
	}
}

// ForkChild makes the heap whole in a child process: mine, the calling thread's heap or nil, and
// the abandoned heaps live on, all others are frozen. It reports whether summaries may be torn.
func ForkChild(token, taken uintptr, mine *Heap) bool {
	freeze(mine)
	limit.busy = 0
	whole := mine == nil || mine.Thread.Busy == 0
	if taken&forkPool != 0 {
		unpinOthers(token)
	}
	if whole { // else the interrupted code has its part of it still to subtract
		pool.leaving = 0
	}
	release(taken)
	suspend(token)
	rebase(token, whole && taken&forkPool != 0)
	return summariesTorn
}

// rebase makes the present counts the zero of a forked child. With whole set, what the tiers are
// charged with, and what is committed, becomes what the child has: the parent's other threads may
// have been between a charge and its memory. The calling thread was in no slow path then.
func rebase(token uintptr, whole bool) {
	if !poolLock.Take(token) {
		return
	}
	base.collectCounts(&ranges{})
	if whole {
		recharge(&base.charged)
	}
	poolLock.Release()
}

// recharge has the tiers charged with so many bytes. Precondition: poolLock is held.
func recharge(charged *[placementSlots]uintptr) {
	total := uintptr(0)
	for tier, n := range charged {
		total += n
		tiers.Recharge(uintptr(tier), n+aloneCharge(uintptr(tier)))
	}
	pool.purging = 0
	pool.count.committed = uint64(total)
}

// aloneCharge is what a tier is charged with for what was made without the pool (emergency.go),
// which is not among what is committed.
func aloneCharge(tier uintptr) (n uintptr) {
	for p := (*Page)(raw.Ptr(atomic.LoadUintptr(&alone.pages))); p != nil; p = p.ageNext {
		if tierOf(p.placement) == tier {
			n += p.bytes() + SliceSize
		}
	}
	return n
}

// suspend keeps the child from waiting for code that the handler, which it was
// forked in, has interrupted: the pool is passed by until that code goes on
// (emergency.go).
func suspend(token uintptr) {
	if heapsLock.HeldBy(token) {
		heapsLock.Suspend()
	}
	if poolLock.HeldBy(token) {
		poolLock.Suspend()
	}
}

// ForkUnprepared is ForkChild for a child that no handler prepared (a raw clone).
// What a lock guards is lost when another thread of the parent held it: the heap
// starts afresh beside what is there.
func ForkUnprepared(token uintptr, mine *Heap) {
	if heapsLock.Held() && !heapsLock.HeldBy(token) {
		abandoned = abandonedThreads{}
		heapsLock.Reset()
	}
	if poolLock.Held() && !poolLock.HeldBy(token) {
		pool.epoch++
		for i := range pool.freeSpans {
			pool.freeSpans[i] = freeSpanSet{}
		}
		pool.segments, pool.segSlices = nil, 0
		pool.freePages, pool.freeSegs, pool.freeGranuleTables = nil, nil, nil
		pool.meta.left, pool.crowd.left, pool.dirtyBytes, pool.purging, pool.leaving = 0, 0, 0, 0, 0
		pool.cache.n, pool.cache.bytes = 0, 0
		pool.parked = parkedSet{}
		pool.zero.room, pool.zero.next, pool.zero.end = [hintSlots]ageList{}, 0, 0
		poolLock.Reset()
	}
	freeze(mine)
	limit.busy = 0
	if poolLock.Take(token) {
		dropSummaries()
		unpinOthers(token)
		poolLock.Release()
	}
	suspend(token)
	rebase(token, false)
}

// freeze is for all threads but that of the heap mine, which may be nil.
func freeze(mine *Heap) {
	me := (*Thread)(nil)
	if mine != nil {
		me = mine.Thread
	}
	freezeList(everyThread, me)
	freezeList(aloneThreads(), me)
}

func freezeList(t, me *Thread) {
	for ; t != nil; t = t.all {
		if t != me && atomic.LoadUint32(&t.state) == heapOwned {
			atomic.StoreUint32(&t.state, heapFrozen)
			summariesTorn = true
		}
	}
}
