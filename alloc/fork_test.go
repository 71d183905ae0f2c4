package alloc

import (
	"testing"

	"tieralloc/internal/config"
	"tieralloc/tiers"
)

// forkThreads are two threads, of which the first forks.
func forkThreads(t *testing.T) (mine, other *thread) {
	newWorld(t)
	now := func() uint64 { return 1e9 }
	mine = &thread{h: mustAcquire(t, 8), token: 8, now: now}
	other = &thread{h: mustAcquire(t, 16), token: 16, now: now}
	return mine, other
}

func mustMalloc(t *testing.T, th *thread, n uintptr, count int) (list []uintptr) {
	t.Helper()
	for range count {
		b, _ := th.malloc(n)
		if b == 0 {
			t.Fatalf("no memory for %d bytes", n)
		}
		list = append(list, b)
	}
	return list
}

func mustFree(t *testing.T, th *thread, list []uintptr) {
	t.Helper()
	for _, b := range list {
		if why := th.free(b); why != FreeOK {
			t.Fatalf("free of %#x says %d", b, why)
		}
	}
}

func mustBeSound(t *testing.T) {
	t.Helper()
	if err := inspect(); err != nil {
		t.Fatal(err)
	}
}

func TestForkParent(t *testing.T) {
	mine, other := forkThreads(t)
	blocks := append(mustMalloc(t, mine, 100, 1000), mustMalloc(t, other, 100, 1000)...)
	taken := ForkPrepare(mine.token)
	if !heapsLock.HeldBy(mine.token) || !poolLock.HeldBy(mine.token) {
		t.Fatal("the locks are not held for the fork")
	}
	ForkParent(taken)
	mustBeSound(t)
	mustFree(t, other, blocks)
	mustBeSound(t)
}

// TestForkChild: the other thread's heap is frozen. Its blocks can be freed, and
// nothing comes from it any more.
func TestForkChild(t *testing.T) {
	mine, other := forkThreads(t)
	left := mustAcquire(t, 24)
	Abandon(left)
	blocks := append(mustMalloc(t, mine, 100, 1000), mustMalloc(t, other, 100, 5000)...)
	live := filled(8).BlocksLive
	ForkChild(mine.token, ForkPrepare(mine.token), mine.h, false)
	if mine.h.Thread.state != heapOwned || other.h.Thread.state != heapFrozen ||
		left.Thread.state != heapAbandoned {
		t.Fatalf("states of heaps: mine %d, other's %d, abandoned %d", mine.h.Thread.state,
			other.h.Thread.state, left.Thread.state)
	}
	r := filled(8)
	if r.BlocksLive != live || r.BlocksTotalAlloc != 0 || r.BlocksTotalFreed != 0 {
		t.Fatalf("after the fork %d blocks live of %d, %d allocated, %d freed", r.BlocksLive, live,
			r.BlocksTotalAlloc, r.BlocksTotalFreed)
	}
	mustFree(t, mine, blocks)
	mustBeSound(t)
	for range 2 {
		mine.h.Thread.Now += PurgeDelay + minCollect
		mine.h.Thread.tick()
	}
	if other.h.Thread.state != heapFrozen {
		t.Fatal("a frozen heap was put to use")
	}
	for _, b := range mustMalloc(t, mine, 100, 5000) {
		if ownerOf(b) == other.h {
			t.Fatalf("block %#x comes from a frozen heap", b)
		}
	}
	if h := mustAcquire(t, 32); h != left {
		t.Error("a new thread did not get the abandoned heap")
	}
	mustBeSound(t)
}

// TestForkAlone: the child of a process with one thread that makes no report writes neither counts
// nor charges, though libc may not know that it is one. Totals go on from the parent's.
func TestForkAlone(t *testing.T) {
	newWorld(t)
	mine := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return 1e9 }}
	blocks := mustMalloc(t, mine, 100, 1000)
	lone := Counts{Remotes: 7}
	base, scratch = lone, lone
	for i, alone := range []bool{true, false} {
		ForkChild(mine.token, ForkPrepare(mine.token), mine.h, alone)
		if base != lone || scratch != lone {
			t.Fatalf("fork %d: figures at the fork %v, walked %v", i, base != lone, scratch != lone)
		}
	}
	base = Counts{}
	mustFree(t, mine, blocks[:400])
	if r := filled(8); r.BlocksTotalAlloc != 1000 || r.BlocksTotalFreed != 400 ||
		r.BlocksLive != 600 {
		t.Errorf("%d blocks were allocated, %d freed, %d are live", r.BlocksTotalAlloc,
			r.BlocksTotalFreed, r.BlocksLive)
	}
	ForkChild(mine.token, ForkPrepare(mine.token), mine.h, true)
	if r := filled(8); r.BlocksTotalAlloc != 0 || r.BlocksLive != 600 {
		t.Errorf("a child of one that made a report: %d blocks were allocated, %d are live",
			r.BlocksTotalAlloc, r.BlocksLive)
	}
	mustBeSound(t)
}

// TestForkCharges: what another thread had charged and not yet mapped is not charged in the child.
// Where all others have ended there is nothing of that kind, and nobody looks for it.
func TestForkCharges(t *testing.T) {
	for name, ended := range map[string]bool{"running": false, "ended": true} {
		t.Run(name, func(t *testing.T) {
			mine, other := forkThreads(t)
			mustMalloc(t, mine, 100, 1000)
			if ended {
				Abandon(other.h)
			}
			tier := uintptr(config.TierNormal)
			before := tiers.AccountOf(tier).Current
			if !tiers.Admit(tier, 1<<20) {
				t.Fatal("a megabyte is refused")
			}
			ForkChild(mine.token, ForkPrepare(mine.token), mine.h, false)
			extra := tiers.AccountOf(tier).Current - before
			if ended != (extra == 1<<20) {
				t.Errorf("%d bytes more are charged in the child", extra)
			}
			if ended {
				tiers.Release(tier, uintptr(extra))
			}
			mustBeSound(t)
		})
	}
}

// TestForkHolder: a signal handler that interrupted a holder of poolLock forks while another thread
// has heapsLock. It does not wait for that, and the child does without what heapsLock guards.
func TestForkHolder(t *testing.T) {
	mine, other := forkThreads(t)
	Abandon(mustAcquire(t, 24))
	poolLock.Take(mine.token)
	heapsLock.Take(other.token)
	mine.h.Thread.Busy = 1
	taken := ForkPrepare(mine.token)
	if taken != 0 {
		t.Errorf("the fork has taken %#x", taken)
	}
	ForkChild(mine.token, taken, mine.h, false)
	mine.h.Thread.Busy = 0
	poolLock.Release() // by the interrupted code
	if heapsLock.Held() {
		t.Fatal("heapsLock is held in the child")
	}
	mustMalloc(t, &thread{h: mustAcquire(t, 32), token: 32, now: mine.now}, 100, 1000)
	mustBeSound(t)
}

// TestForkUnprepared: another thread held the pool's lock, so what it guards is
// given up; blocks from before stay good and can be freed. Before the fork and
// after it, spans next to each other are freed, once without and once with purging.
func TestForkUnprepared(t *testing.T) {
	t.Run("dirty", func(t *testing.T) {
		unprepared(t, func(h *Heap) { h.collectPages(true) })
	})
	t.Run("clean", func(t *testing.T) {
		unprepared(t, func(h *Heap) { Trim(h) })
	})
}

func unprepared(t *testing.T, tidy func(*Heap)) {
	mine, other := forkThreads(t)
	old := mustMalloc(t, mine, 300<<10, 40)
	for i := 0; i < len(old); i += 2 {
		mustFree(t, mine, old[i:i+1])
	}
	tidy(mine.enter())
	small := mustMalloc(t, mine, 100, 2000)
	huge := mustMalloc(t, mine, 8<<20, 2)
	mustBeSound(t)

	poolLock.Take(other.token)
	ForkUnprepared(mine.token, mine.h)
	if poolLock.Held() {
		t.Fatal("the lock is still held")
	}
	fresh := append(mustMalloc(t, mine, 300<<10, 20), mustMalloc(t, mine, 5<<20, 2)...)
	mustFree(t, mine, small)
	for i := 1; i < len(old); i += 2 {
		mustFree(t, mine, old[i:i+1])
		tidy(mine.enter())
		afterUnprepared(t, mine)
	}
	mustFree(t, mine, huge)
	mustFree(t, mine, fresh)
	afterUnprepared(t, mine)
	mine.h.Thread.Now += PurgeDelay + minCollect
	mine.h.Thread.tick()
	Trim(mine.h)
	afterUnprepared(t, mine)
}

// afterUnprepared looks at what has to hold though part of the heap is given up:
// what the pool has is in its order, and sums did not go below zero.
func afterUnprepared(t *testing.T, mine *thread) {
	t.Helper()
	v := &inspection{onList: map[*Page]*Heap{}, pending: map[*Page]*Heap{},
		cached: map[*Page]uint64{}, threads: map[*Thread]bool{}, inUse: map[*Page]bool{},
		pages: map[*Thread]uintptr{}}
	v.allThreads()
	v.thread(mine.h.Thread)
	free := v.binned()
	dirty := uintptr(0)
	for i := range pool.freeSpans {
		for p := pool.oldest[i].head; p != nil; p = p.ageNext {
			state, ok := free[p]
			v.want(ok && state == spanDirty, "span at %#x is on the list by age but in no bin",
				p.Start)
			dirty += p.bytes()
		}
	}
	v.want(dirty == pool.dirtyBytes, "%d bytes are dirty, counted %d", dirty,
		int64(pool.dirtyBytes))
	v.want(int64(pool.usedBytes) >= 0 && int64(pool.segSlices) >= 0 &&
		int64(pool.count.committed) >= 0,
		"used %d, slices %d, committed %d", int64(pool.usedBytes), int64(pool.segSlices),
		int64(pool.count.committed))
	if v.err != nil {
		t.Fatal(v.err)
	}
}

// TestForkMigrationPins: a span that another thread was moving at the fork is let go in the child,
// and can be freed there, as one can that its owner has freed meanwhile.
func TestForkMigrationPins(t *testing.T) {
	mine, other := forkThreads(t)
	blocks := mustMalloc(t, mine, 300<<10, 2)
	own := Lookup(mustMalloc(t, mine, 300<<10, 1)[0])
	poolLock.Take(other.token)
	held := pinMigrationLocked(other.token, Lookup(blocks[0])) &&
		pinMigrationLocked(other.token, Lookup(blocks[1])) && pinMigrationLocked(mine.token, own)
	poolLock.Release()
	if !held {
		t.Fatal("the spans cannot be held")
	}
	mustFree(t, mine, blocks[1:])
	mine.h.Thread.collectPages(true)
	ForkChild(mine.token, ForkPrepare(mine.token), mine.h, false)
	if p := Lookup(blocks[0]); p.moving != 0 || own.moving == 0 ||
		pool.migrationPins.used != 1<<(own.moving-1) {
		t.Errorf("held: %#x, the other's as %d, the own as %d", pool.migrationPins.used, p.moving,
			own.moving)
	}
	unpinMigration(mine.token, own)
	mustFree(t, mine, blocks[:1])
	mine.h.Thread.collectPages(true)
	mustBeSound(t)
}
