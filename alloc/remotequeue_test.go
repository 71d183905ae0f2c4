package alloc

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// A queuePair is a thread that allocates and one that frees, with a remote-free queue between them.
type queuePair struct {
	owner, other *thread
	queue        *RemoteQueue
}

func newQueuePair(t *testing.T, size uintptr) *queuePair {
	t.Helper()
	now := func() uint64 { return 1e9 }
	r := &queuePair{owner: &thread{h: mustAcquire(t, 8), token: 8, now: now},
		other: &thread{h: mustAcquire(t, 16), token: 16, now: now}}
	for _, b := range r.blocks(t, size, RemoteQueueAfter) {
		if r.other.h.Out[r.owner.h.Number%OutSlots] != nil {
			t.Fatal("there is a remote-free queue before there are many frees")
		}
		r.free(t, b)
	}
	if r.queue = r.other.h.Out[r.owner.h.Number%OutSlots]; r.queue == nil ||
		r.owner.h.firstRemoteQueue() != r.queue {
		t.Fatal("there is no remote-free queue")
	}
	return r
}

func (r *queuePair) blocks(t *testing.T, size uintptr, n int) (blocks []uintptr) {
	t.Helper()
	for range n {
		b, _ := r.owner.malloc(size)
		if b == 0 {
			t.Fatal("no memory")
		}
		blocks = append(blocks, b)
	}
	return blocks
}

func (r *queuePair) free(t *testing.T, b uintptr) {
	t.Helper()
	if why := r.other.free(b); why != FreeOK {
		t.Fatalf("free of %#x says %d", b, why)
	}
}

// TestRemoteQueue: what another thread frees goes on the remote-free queue, without a word to the
// block's page, is counted as freed at once, and is the owner's again when it next wants a page.
func TestRemoteQueue(t *testing.T) {
	const room = 60 // blocks of the larger size in a page
	for _, size := range []uintptr{100, 1000} {
		newWorld(t)
		r := newQueuePair(t, size)
		class := sizeclass.Of(size)
		blocks := r.blocks(t, size, RemoteQueueSlots+room)
		live := filled(8).SizeClasses[class].BlocksLive
		for i, b := range blocks {
			before := Lookup(b).remoteCount()
			r.free(t, b)
			if onRing := Lookup(b).remoteCount() == before; onRing != (i < RemoteQueueSlots) {
				t.Fatalf("%d bytes: block %d on the remote-free queue: %v", size, i, onRing)
			}
			if got := filled(8).SizeClasses[class].BlocksLive; got != live-uint64(i)-1 {
				t.Fatalf("%d bytes: %d blocks live after %d of %d were freed", size, got, i+1, live)
			}
			if why := Check(b); why != FreeDouble {
				t.Fatalf("%d bytes: block %d freed twice is %d", size, i, why)
			}
		}
		mustBeSound(t)
		r.owner.enter()
		r.owner.h.allocClass(class, sizeclass.Granule)
		mustBeSound(t)
		if r.queue.Head != r.queue.Tail {
			t.Errorf(
				"%d bytes: %d blocks are on the remote-free queue",
				size,
				r.queue.Tail-r.queue.Head,
			)
		}
		for _, b := range r.blocks(t, size, RemoteQueueSlots) {
			if b < blocks[0] && Lookup(b) != Lookup(blocks[0]) {
				t.Errorf("%d bytes: %#x is none of those that were freed", size, b)
			}
		}
		mustBeSound(t)
	}
}

// TestRemoteQueueWarm: of the warm classes, what comes by a remote-free queue is given out first.
func TestRemoteQueueWarm(t *testing.T) {
	newWorld(t)
	r := newQueuePair(t, 2000)
	blocks := r.blocks(t, 2000, 3)
	for _, b := range blocks {
		r.free(t, b)
	}
	r.owner.enter()
	r.owner.h.drainQueues(r.owner.h.Thread)
	mustBeSound(t)
	for i := range blocks {
		if b := r.owner.mallocFast(2000); b != blocks[len(blocks)-1-i] {
			t.Fatalf("%#x was given out", b)
		}
	}
}

// TestRemoteQueueStolen: a thread that is short of memory has the pages of one that does not come
// by, though their blocks are on remote-free queues.
func TestRemoteQueueStolen(t *testing.T) {
	newWorld(t)
	r := newQueuePair(t, 1000)
	blocks := r.blocks(t, 1000, 2*RemoteQueueSlots)
	for _, b := range blocks {
		r.free(t, b)
	}
	before := pool.usedBytes
	r.other.enter()
	r.other.h.Thread.stealPages(stealStep)
	mustBeSound(t)
	if pool.usedBytes >= before-2*SliceSize {
		t.Errorf("%d KiB were in use, %d are", before>>10, pool.usedBytes>>10)
	}
}

// TestRemoteQueueOfEnded: what was freed into the heap of a thread that has ended goes back to the
// pool.
func TestRemoteQueueOfEnded(t *testing.T) {
	newWorld(t)
	r := newQueuePair(t, 1000)
	blocks := r.blocks(t, 1000, RemoteQueueSlots)
	Abandon(r.owner.enter())
	for _, b := range blocks {
		r.free(t, b)
	}
	mustBeSound(t)
	Trim(r.other.enter())
	mustBeSound(t)
	if pool.usedBytes != 0 {
		t.Errorf("%d KiB are in use", pool.usedBytes>>10)
	}
}

// TestRemoteQueueTake: of what one thread puts on a remote-free queue while two take from it, each
// has a part, and together they have it all.
func TestRemoteQueueTake(t *testing.T) {
	newWorld(t)
	schedulerAside(t)
	const most = 400_000
	ground := raw.Map(16 * most)
	defer raw.Unmap(ground, 16*most)
	r := (*RemoteQueue)(raw.Ptr(raw.Map(remoteQueueBytes)))
	from := &thread{h: mustAcquire(t, 16)}
	var got [2]uint64
	var ended atomic.Bool
	var wg sync.WaitGroup
	for i := range got {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var blocks [remoteQueueBatch]uintptr
			for last := false; ; last = ended.Load() {
				n := r.take(&blocks)
				for _, b := range blocks[:n] {
					got[i] += uint64(b-ground) / 16
				}
				if n == 0 && last {
					return
				}
				runtime.Gosched()
			}
		}()
	}
	want := uint64(0)
	for i := uintptr(0); i < most; {
		if from.pushQueue(r, ground+16*i) {
			want += uint64(i)
			i++
		} else { // it is full
			runtime.Gosched()
		}
	}
	ended.Store(true)
	wg.Wait()
	if got[0]+got[1] != want {
		t.Errorf("%d put in, %d and %d taken out", want, got[0], got[1])
	}
	t.Logf("%d and %d", got[0], got[1])
}

// TestRemoteQueuesMost: no more remote-free queues than so many lead to a heap, whose slow path
// looks at each. What others free comes back all the same.
func TestRemoteQueuesMost(t *testing.T) {
	newWorld(t)
	now := func() uint64 { return 1e9 }
	owner := &thread{h: mustAcquire(t, 8), token: 8, now: now}
	for i := range uintptr(3 * remoteQueuesMost) {
		r := &queuePair{owner: owner, other: &thread{h: mustAcquire(t, 16+8*i), token: 16 + 8*i,
			now: now}}
		for _, b := range r.blocks(t, 100, 2*RemoteQueueAfter) {
			r.free(t, b)
		}
	}
	rings := uintptr(0)
	for r := owner.h.firstRemoteQueue(); r != nil; r = r.next {
		rings++
	}
	if rings != remoteQueuesMost || owner.h.remoteQueueCount != rings {
		t.Errorf(
			"%d remote-free queues lead to one heap, counted %d",
			rings,
			owner.h.remoteQueueCount,
		)
	}
	mustBeSound(t)
	owner.enter()
	owner.h.collectPages(true)
	mustBeSound(t)
	if n := liveBlocks(t, owner.h); n != 0 {
		t.Errorf("%d blocks live", n)
	}
}

// TestRemoteQueueBack: a remote-free queue whose tail a signal handler's end has set back is empty,
// not full.
func TestRemoteQueueBack(t *testing.T) {
	newWorld(t)
	r := newQueuePair(t, 100)
	r.queue.Head = r.queue.Tail + 3
	var blocks [remoteQueueBatch]uintptr
	if n := r.queue.take(&blocks); n != 0 {
		t.Errorf("%d blocks are taken from an empty remote-free queue", n)
	}
	r.queue.Head = r.queue.Tail
}

// TestWarmEmptied: a page that becomes empty while its class's list is to look at the time goes all
// the same.
func TestWarmEmptied(t *testing.T) {
	newWorld(t)
	f := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return 1e9 }}
	var blocks []uintptr
	for range 400 {
		b, _ := f.malloc(2000)
		blocks = append(blocks, b)
	}
	p, last := Lookup(blocks[100]), uintptr(0)
	for _, b := range blocks {
		if Lookup(b) != p {
			continue
		}
		if last != 0 {
			Free(f.enter(), last, HowAny, NoSize, 0)
		}
		last = b
	}
	s := &f.h.CacheLists[p.Class]
	f.h.flushCached(uintptr(p.Class))
	s.Credit, s.Room = 0, 0 // the list has no room, so the page gets the block
	f.free(last)
	if p.Owner != ownerNone && !p.isRetired() {
		t.Errorf("the page, of %d blocks and %d frees, is neither kept nor gone", p.Allocs, p.Frees)
	}
	s.Credit, s.Room = tickMax, cacheLimit(uintptr(p.Class))
	mustBeSound(t)
}
