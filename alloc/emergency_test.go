package alloc

import (
	"runtime/debug"
	"testing"
	"time"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// within ends the process when f does not end: a loop without an end is what may
// go wrong here, and no other test could run beside that.
func within(t *testing.T, d time.Duration, f func()) {
	t.Helper()
	loops := time.AfterFunc(d, func() {
		debug.SetTraceback("all")
		panic(t.Name() + ": still running after " + d.String())
	})
	f()
	loops.Stop()
}

// TestHandlerInPool is a signal handler that interrupted its thread in the pool,
// when the heap has several empty pages of a class that it would like to give
// back just then.
func TestHandlerInPool(t *testing.T) {
	mine, _ := forkThreads(t)
	blocks := mustMalloc(t, mine, 1000, 1000)
	mustFree(t, mine, blocks)
	mustBeSound(t)
	poolLock.Take(mine.token)
	mine.now = func() uint64 { return 1e9 + minCollect + PurgeDelay }
	within(t, 2*time.Second, func() {
		for range 3 {
			b := Malloc(mine.enter(), 20000, uintptr(tiers.CallerSet(0, 0, 0)), 0) &^ ZeroBit
			if b == 0 {
				return
			}
			Free(mine.enter(), b, HowAny, NoSize, 0)
			mine.h.Thread.Now += 10 * PurgeDelay
			mine.h.Thread.tick()
		}
	})
	poolLock.Release()
	mustFree(t, mine, mustMalloc(t, mine, 1000, 1000))
	within(t, 2*time.Second, func() { Trim(mine.enter()) })
}

// TestEmergency: blocks made while the own thread is in the pool are good blocks,
// then and afterwards.
func TestEmergency(t *testing.T) {
	mine, other := forkThreads(t)
	poolLock.Take(mine.token)
	var blocks []uintptr
	h := mustAcquire(t, mine.token) // a borrowed heap, as in a handler
	in := &thread{h: h, token: mine.token, now: mine.now}
	for _, n := range []uintptr{16, 1000, 5000, 300 << 10, sizeclass.MaxSize, 5 << 20} {
		blocks = append(blocks, mustMalloc(t, in, n, 70)...)
	}
	for _, b := range blocks {
		if why := Check(b); why != FreeOK || notZero(b, usable(b)) != 0 && usable(b) >= 4096 {
			t.Fatalf("block %#x of %d bytes: Check says %d", b, usable(b), why)
		}
	}
	mustFree(t, in, blocks[:len(blocks)/3])
	Leave(h)
	poolLock.Release()
	mustFree(t, other, blocks[len(blocks)/3:len(blocks)/2])
	mine.h = h // it was adopted
	if got := mustAcquire(t, mine.token); got != h {
		t.Fatalf("the heap %p was not adopted, but %p", h, got)
	}
	within(t, 2*time.Second, func() {
		mustFree(t, mine, blocks[len(blocks)/2:])
		Trim(mine.enter())
		Trim(other.enter())
	})
	if r := filled(8); int64(r.BlocksLive) < 0 || int64(r.BytesLive) < 0 ||
		int64(r.BytesCommitted) < 0 {
		t.Errorf("%d blocks of %d bytes live, %d committed", int64(r.BlocksLive),
			int64(r.BytesLive), int64(r.BytesCommitted))
	}
}

// TestEmergencyCounts: blocks of a handler's pages are counted, cached ones as
// free, and the heap of a handler that a thread gets later counts like any other.
func TestEmergencyCounts(t *testing.T) {
	mine, _ := forkThreads(t)
	left := mustAcquire(t, 24)
	Abandon(left)
	in := &thread{h: left, token: mine.token, now: mine.now}
	poolLock.Take(mine.token)
	if h := mustAcquire(t, mine.token); h != left {
		t.Fatal("the handler did not get the abandoned heap")
	}
	blocks := mustMalloc(t, in, 1000, 200)
	mustFree(t, in, blocks[:20]) // into a full page: they are cached
	fresh := mustAcquire(t, mine.token)
	Leave(fresh)
	Leave(left)
	poolLock.Release()
	if r := filled(mine.token); r.BlocksLive != 180 ||
		r.BytesLive != 180*uint64(usable(blocks[199])) {
		t.Errorf("%d blocks of %d bytes live", int64(r.BlocksLive), int64(r.BytesLive))
	}

	late := &thread{h: mustAcquire(t, 32), token: 32, now: mine.now}
	if mustAcquire(t, 40) != fresh && late.h != fresh {
		t.Fatal("the handler's heap was not adopted")
	}
	late.h = fresh
	late.h.Thread.token = late.token
	before := filled(mine.token).BlocksTotalAlloc
	mustFree(t, late, mustMalloc(t, late, 500, 5000))
	Trim(late.enter())
	r := filled(mine.token)
	if got := r.BlocksTotalAlloc - before; got != 5000 || r.BlocksLive != 180 {
		t.Errorf("%d blocks counted of 5000, %d live", int64(got), int64(r.BlocksLive))
	}
}

// TestResizeInPool: where the pool is out of reach a block is resized wholly or
// not at all, and the map knows nothing that is not there.
func TestResizeInPool(t *testing.T) {
	mine, _ := forkThreads(t)
	huge := mustMalloc(t, mine, 8<<20, 1)[0]
	small := mustMalloc(t, mine, 300<<10, 1)[0]
	poolLock.Take(mine.token)
	for _, n := range []uintptr{5 << 20, 12 << 20} {
		size := usable(huge)
		b := Resize(mine.enter(), huge, n)
		if b != 0 {
			huge, size = b, n
		}
		if got := usable(huge); got < n && b != 0 || got != size {
			t.Errorf("resized to %d: %#x has %d bytes by the map", n, b, got)
		}
	}
	if Resize(mine.enter(), small, 600<<10) != 0 {
		t.Error("resized without the pool")
	}
	poolLock.Release()
	if n := aloneEntries(); n != 0 {
		t.Errorf("the map has %d blocks that are gone", n)
	}
	mustBeSound(t)
}

// aloneEntries counts the entries of the page map for emergency blocks.
func aloneEntries() (n int) {
	for i := uintptr(0); i < RootEntries; i++ {
		leaf := raw.Load(mapRoot + i*8)
		for j := uintptr(0); leaf != 0 && j < LeafEntries; j++ {
			if entry := raw.Load(leaf + j*8); entry != 0 &&
				(*Page)(raw.Ptr(entry)).state == spanHugeAlone {
				n++
				raw.Store(leaf+j*8, 0)
			}
		}
	}
	return n
}
