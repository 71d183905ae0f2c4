package alloc

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/lockrank"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/profile"
	"tieralloc/tiers"
)

// Fork: the forking thread takes both locks, and the profile's, so that the data they guard is
// consistent in the child. If it holds a lock already, because it forks in a signal handler, the
// interrupted code keeps that lock.
//
// The heaps of the parent's other threads are frozen in the child, because the kernel copied their
// memory page by page while their owners ran.

// Bits of the value that ForkPrepare returns and the others take.
const (
	forkHeaps = 1
	forkPool  = 2
	forkTable = 4 // of the profile
)

// ForkPrepare takes the locks for the calling thread. In a signal handler that interrupted a holder
// of poolLock it leaves heapsLock to another thread that has it.
func ForkPrepare(token uintptr) (taken uintptr) {
	if Profiling && profile.Hold(token, !Holds(token)) {
		taken |= forkTable
	}
	if takeHeaps(token) {
		taken |= forkHeaps
	}
	if poolLock.Take(token) {
		taken |= forkPool
	}
	return taken
}

// ForkParent releases the locks in the parent.
func ForkParent(taken uintptr) {
	release(taken)
	stats.Put1(config.LogInfo, stats.EventFork, 0, 0)
}

func release(taken uintptr) {
	if taken&forkPool != 0 {
		poolLock.Release()
	}
	if taken&forkHeaps != 0 {
		heapsLock.Release()
	}
	if taken&forkTable != 0 {
		profile.Release()
	}
}

// ForkChild makes the heap usable in a child process. mine, the calling thread's heap or nil, and
// the abandoned heaps stay usable; all others are frozen. alone says that libc knew of one thread
// in the parent. It reports whether summaries may be torn.
//
// Most children call exec or exit at once, and each page written costs one a page fault. So nothing
// is written that a child of a single thread need not have.
func ForkChild(token, taken uintptr, mine *Heap, alone bool) bool {
	loseHeaps(token)
	others := freeze(mine)
	alone = !others && alone
	whole := mine == nil || mine.Thread.Busy == 0
	midway := others || tiers.Migrating() || pool.purging|pool.leaving != 0
	if limit.busy != 0 {
		limit.busy = 0
	}
	if !alone && taken&forkPool != 0 {
		unpinOthers(token)
	}
	if whole && pool.leaving != 0 { // else the interrupted code has not yet subtracted its part
		pool.leaving = 0
	}
	profile.ForkChild(token)
	release(taken)
	if Profiling {
		profileForked(token, mine)
	}
	suspend(token)
	rebase(token, whole && midway && !alone && taken&forkPool != 0)
	return summariesTorn
}

// profileForked has a child's profile forget its parent's device memory, unless the child was
// forked in a signal handler that interrupted the profile. (A process of one thread forks without
// locks.) And the child takes samples of its own, unless the handler interrupted the heap.
//
//go:noinline
func profileForked(token uintptr, mine *Heap) {
	if mine != nil && mine.Thread.Busy == 0 {
		mine.Thread.forked()
	}
	profile.LoseDevices(token)
}

// CountFromFork is set where a report is wanted or one was made. Counts and totals of a forked
// child begin at the fork then, else they go on from the parent's.
var CountFromFork bool

// rebase makes the current counts the zero of a forked child where CountFromFork says so. With
// whole set, the charges of the tiers and the committed bytes become those of the child's memory,
// because the parent's other threads, or the control plane, may have been between a charge and its
// mapping. That looks at every heap, so a parent whose threads have ended does without.
// Precondition for whole: the calling thread was not in a slow path.
func rebase(token uintptr, whole bool) {
	if !whole && !CountFromFork || !poolLock.Take(token) {
		return
	}
	k := &scratch
	if CountFromFork {
		k = &base
	}
	k.collectCounts(&ranges{})
	if whole {
		recharge(&k.charged)
	}
	poolLock.Release()
}

// recharge sets the charges of the tiers. Precondition: poolLock is held.
func recharge(charged *[placementSlots]uintptr) {
	total := uintptr(0)
	for tier, n := range charged {
		total += n
		tiers.Recharge(uintptr(tier), n+aloneCharge(uintptr(tier)))
	}
	pool.purging = 0
	pool.count.committed = uint64(total)
}

// aloneCharge returns the charge of a tier for emergency memory (spanalloc.go), which committed
// bytes do not include.
func aloneCharge(tier uintptr) (n uintptr) {
	for p := (*Page)(raw.Ptr(atomic.LoadUintptr(&alone.pages))); p != nil; p = p.nextAlone() {
		if tierOf(p.placement) == tier {
			n += p.bytes() + SliceSize
		}
	}
	return n
}

// suspend keeps the child from waiting for code that was interrupted by the signal handler in which
// it was forked. Until that code continues, memory comes from spanalloc.go instead of the pool.
func suspend(token uintptr) {
	if heapsLock.HeldBy(token) {
		heapsLock.Suspend()
	}
	if poolLock.HeldBy(token) {
		poolLock.Suspend()
	}
}

// ForkUnprepared is ForkChild for a child made without the fork handlers (a raw clone). If another
// thread of the parent held a lock, the data that it guards is lost, and the heap starts afresh
// beside the existing memory.
func ForkUnprepared(token uintptr, mine *Heap) {
	loseHeaps(token)
	profile.ForkChild(token)
	if Profiling {
		profileForked(token, mine)
	}
	if poolLock.Held() && !poolLock.HeldBy(token) {
		pool.epoch++
		for i := range pool.freeSpans {
			pool.freeSpans[i], pool.oldest[i] = freeSpanSet{}, ageList{}
		}
		pool.segments, pool.segSlices, pool.growing = nil, 0, nil
		pool.freePages, pool.freeSegs, pool.freeTables = nil, nil, nil
		pool.freeParts = nil
		pool.meta.left, pool.crowd.left, pool.dirtyBytes, pool.purging, pool.leaving = 0, 0, 0, 0, 0
		pool.cache.n, pool.cache.bytes = 0, 0
		pool.parked = parkedSet{}
		zeroPages.room, zeroPages.next, zeroPages.end = [hintSlots]ageList{}, 0, 0
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

// loseHeaps freezes the abandoned threads in a child where another thread of the parent held their
// lock.
func loseHeaps(token uintptr) {
	if heapsLock.Held() && !heapsLock.HeldBy(token) {
		freezeLists(nil, heapAbandoned)
		abandoned = abandonedThreads{}
		heapsLock.Reset()
	}
}

// freeze freezes all threads except that of the heap mine, which may be nil. It reports whether
// there were any.
func freeze(mine *Heap) bool {
	me := (*Thread)(nil)
	if mine != nil {
		me = mine.Thread
	}
	return freezeLists(me, heapOwned)
}

// freezeLists freezes all threads in a state but one. It reports whether there were any.
func freezeLists(me *Thread, state uint32) bool {
	listed, alone := freezeList(everyThread, me, state), freezeList(aloneThreads(), me, state)
	return listed || alone
}

func freezeList(t, me *Thread, state uint32) (any bool) {
	for ; t != nil; t = t.all {
		if t != me && atomic.LoadUint32(&t.state) == state {
			atomic.StoreUint32(&t.state, heapFrozen)
			summariesTorn, any = true, true
		}
	}
	return any
}

// RankLocks gives the locks of the package their places in the order.
func RankLocks() {
	heapsLock.SetRank(lockrank.Heaps)
	poolLock.SetRank(lockrank.Pool)
}
