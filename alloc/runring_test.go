package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// TestRunsWaiting: a block that another thread has freed, and that is on the page's remote list or on a ring when the page is cut, is not
// free yet, and does not keep it from being cut.
func TestRunsWaiting(t *testing.T) {
	newWorld(t)
	now := func() uint64 { return 1e9 }
	r := &thread{h: mustAcquire(t, 8), token: 8, now: now}
	other := &thread{h: mustAcquire(t, 16), token: 16, now: now}
	const size = 48
	var blocks, left []uintptr
	for range 6 * int(SliceSize/size) {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
	}
	for i, b := range blocks {
		if i%16 == 8 {
			left = append(left, b)
		} else {
			give(t, r, b, i%2 == 0)
		}
	}
	var waiting []uintptr
	for i, b := range left { // by the remote list, until there is a ring
		if i%3 == 0 && i < 200 {
			if why := other.free(b); why != FreeOK {
				t.Fatal(why)
			}
			waiting = append(waiting, b)
		}
	}
	if r.h.rings == 0 {
		t.Fatal("there is no ring")
	}
	r.h.Thread.rest(false, false)
	r.h.Thread.rest(false, true)
	sound(t)
	cut := 0
	for _, b := range waiting {
		if p := Lookup(b); p.inRuns() {
			cut++
			if has(&p.table().Free, p.unit(b)) {
				t.Fatalf("%#x, which waits, is free", b)
			}
		}
	}
	if cut < len(waiting)/2 {
		t.Errorf("%d of %d blocks that wait are in pages in runs", cut, len(waiting))
	}
	r.enter()
	r.h.collectPages(false)
	sound(t)
	if n, want := liveBlocks(t, r.h), uint64(len(left)-len(waiting)); n != want {
		t.Errorf("%d blocks live, not %d", n, want)
	}
}

// TestRunsTwice: a block of a page in runs that the program frees, writes to and frees again counts once, and does not hurt the others.
func TestRunsTwice(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return 1e9 }}
	sparse(t, r, 48, 16)
	var b uintptr
	for b == 0 || !Lookup(b).inRuns() {
		b, _ = r.malloc(200)
	}
	live := liveBlocks(t, r.h)
	if why := r.free(b); why != FreeOK || r.h.Self == nil || r.h.Self.Tail == r.h.Self.Head {
		t.Fatalf("the first free says %d; the block is not on the ring", why)
	}
	if why := r.free(b); why != FreeDouble {
		t.Fatalf("the second free says %d", why)
	}
	raw.Store(b+8, 1)
	r.free(b)
	r.enter()
	r.h.receive(r.h.Thread)
	sound(t)
	if n := liveBlocks(t, r.h); n != live-1 {
		t.Errorf("%d blocks live after one of %d was freed", n, live)
	}
}

// TestRunsTwiceFull: the same where the second free finds the ring full and comes to Free: it is told.
func TestRunsTwiceFull(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), token: 8, now: func() uint64 { return 1e9 }}
	left := sparse(t, r, 48, 16)
	var blocks []uintptr
	for len(blocks) < RingSlots {
		if b, _ := r.malloc(200); Lookup(b).inRuns() {
			blocks = append(blocks, b)
		}
	}
	r.enter()
	r.h.receive(r.h.Thread)
	for _, b := range blocks {
		r.free(b)
	}
	if r.h.Self.Tail-r.h.Self.Head != RingSlots {
		t.Fatalf("%d blocks are on the ring", r.h.Self.Tail-r.h.Self.Head)
	}
	for _, b := range left { // the pages may become empty
		if p := Lookup(b); p == Lookup(blocks[0]) {
			r.h.freeRun(p, b)
		}
	}
	raw.Store(blocks[0]+8, 1)
	if why := r.free(blocks[0]); why != FreeDouble && why != FreeStale {
		t.Errorf("the second free says %d", why)
	}
	sound(t)
}
