package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// written has each word of the block say where it is.
func written(b, n uintptr) {
	for at := uintptr(0); at+8 <= n; at += 8 {
		raw.Store(b+at, b+at)
	}
}

func intact(t *testing.T, b, n uintptr) {
	t.Helper()
	for at := uintptr(0); at+8 <= n; at += 8 {
		if got := raw.Load(b + at); got != b+at {
			t.Fatalf("the block %#x of %d bytes has %#x at %d", b, n, got, at)
		}
	}
}

func liveBlocks(t *testing.T, h *Heap) uint64 {
	t.Helper()
	r := filled(h.Thread.token)
	if r == nil {
		t.Fatal("no report")
	}
	return r.BlocksLive
}

// TestNursery: where there are many heaps, the first blocks of all small classes lie in one page,
// as large and as far from each other as they are elsewhere; any thread can free them, and then the
// page is left empty until somebody collects it.
func TestNursery(t *testing.T) {
	crowdedWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	other := mustAcquire(t, 16)
	var blocks []uintptr
	for range 3 {
		for c := uintptr(0); sizeclass.Size(c) <= 1024; c++ {
			n := sizeclass.Size(c)
			b, _ := r.malloc(n)
			if !Lookup(b).isNursery() || Lookup(b) != Lookup(r.h.nursery.Start) {
				t.Fatalf("a block of %d bytes lies outside the nursery", n)
			}
			if b&(n&-n-1) != 0 || Usable(b) != n {
				t.Fatalf("a block of %d bytes at %#x has %d", n, b, Usable(b))
			}
			written(b, n)
			blocks = append(blocks, b)
		}
	}
	if pool.usedBytes != SliceSize {
		t.Errorf("%d bytes are in use for blocks of all classes", pool.usedBytes)
	}
	sound(t)
	if n := liveBlocks(t, r.h); n != uint64(len(blocks)) {
		t.Errorf("the report has %d blocks, not %d", n, len(blocks))
	}
	for i, b := range blocks {
		intact(t, b, Usable(b))
		h := r.h
		if i%3 == 0 {
			h = other
		}
		if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
			t.Fatalf("freeing %#x says %d", b, why)
		}
		if i%3 != 0 && Free(r.h, b, HowAny, NoSize, 0) != FreeDouble {
			t.Fatalf("freeing %#x twice is not seen", b)
		}
	}
	sound(t)
	if r.h.nursery == nil {
		t.Error("the nursery has gone with its last block")
	}
	Trim(r.enter())
	if r.h.nursery != nil || pool.usedBytes != 0 || liveBlocks(t, r.h) != 0 {
		t.Errorf("after Trim: nursery %p, %d bytes in use, %d blocks", r.h.nursery, pool.usedBytes,
			liveBlocks(t, r.h))
	}
	sound(t)
}

// TestNurseryRemote: what other threads have freed in a nursery is used again before anything else.
func TestNurseryRemote(t *testing.T) {
	crowdedWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	other := mustAcquire(t, 16)
	first := uintptr(0)
	for i := range nurseryMost {
		b, _ := r.malloc(nurseryLargest)
		if first == 0 {
			first = b
		}
		if b != first {
			t.Fatalf("round %d: a block at %#x, not %#x", i, b, first)
		}
		if why := Free(other, b, HowAny, NoSize, 0); why != FreeOK {
			t.Fatalf("freeing %#x says %d", b, why)
		}
	}
	sound(t)
}

// TestNurseryThrottled: each block out of a nursery is charged to the time of its tier.
func TestNurseryThrottled(t *testing.T) {
	const each = 1000 // nanoseconds
	crowdedWorld(t)
	setTiers(func(s *config.Settings) { s.Tiers[config.TierNormal].Lat = each })
	now := raw.Clock(raw.ClockMono)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return now }}
	for i := uint64(1); i <= 100; i++ {
		b, _ := r.malloc(uintptr(i%10) * 16)
		if i <= nurseryMost && !Lookup(b).isNursery() {
			t.Fatalf("block %d lies outside the nursery", i)
		}
		if got := tierFigures()[config.TierNormal].SimulatedWaitNs; got < i*each {
			t.Fatalf("%d blocks cost %d ns", i, got)
		}
		if i%2 == 0 {
			r.free(b)
		}
	}
	sound(t)
}

// TestNurseryFirst: a small program has its blocks on one page; a class with more has its own.
func TestNurseryFirst(t *testing.T) {
	newWorld(t)
	r := &thread{h: Acquire(8), now: func() uint64 { return 1e9 }}
	for i := range 2 * nurseryFirst {
		for size := uintptr(16); size <= nurseryLargest; size *= 2 {
			young := i < nurseryFirst && size <= nurserySmall
			if b, _ := r.malloc(size); Lookup(b).isNursery() != young {
				t.Fatalf("block %d of %d bytes: in the nursery %v", i, size, Lookup(b).isNursery())
			}
		}
	}
	sound(t)
}

// TestNurseryCapped: where a tier has a cap, a few threads have no nursery, which would take a
// slice of it.
func TestNurseryCapped(t *testing.T) {
	newWorld(t)
	setTiers(func(s *config.Settings) { s.Tiers[config.TierNormal].Hard = 64 << 20 })
	r := &thread{h: Acquire(8), now: func() uint64 { return 1e9 }}
	if b, _ := r.malloc(48); b == 0 || Lookup(b).isNursery() {
		t.Errorf("a block in a capped tier: %#x, in a nursery", b)
	}
	sound(t)
}

// TestNurseryLeft: a class of which the thread has many blocks gets pages of its own, where the
// fast path serves it; for the next thread that adopts the heap it begins in the nursery again.
func TestNurseryLeft(t *testing.T) {
	crowdedWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	for i := range 2 * nurseryMost {
		b, _ := r.malloc(48)
		if Lookup(b).isNursery() != (i < nurseryMost) {
			t.Fatalf("block %d: in the nursery %v", i, Lookup(b).isNursery())
		}
	}
	if b, _ := r.malloc(64); !Lookup(b).isNursery() {
		t.Error("another class has left the nursery, too")
	}
	sound(t)
	Abandon(r.enter())
	r.h = mustAcquire(t, 24)
	if b := mustServe(t, r.h, 80); !Lookup(b).isNursery() {
		t.Error("a heap that is adopted is not young")
	}
	sound(t)
}

// TestNurseryInside: an address within a block of a nursery is none of a block, and a block is
// freed once.
func TestNurseryInside(t *testing.T) {
	crowdedWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	for c := uintptr(1); sizeclass.Size(c) <= nurseryLargest; c++ {
		b, _ := r.malloc(sizeclass.Size(c))
		if !Lookup(b).isNursery() {
			break // it is full
		}
		for _, in := range []uintptr{sizeclass.Granule, sizeclass.Size(c) - sizeclass.Granule,
			sizeclass.Granule / 2} {
			if why := Free(r.h, b+in, HowAny, NoSize, 0); why != FreeInside {
				t.Fatalf("freeing %#x, %d bytes into a block of %d, says %d", b+in, in,
					sizeclass.Size(c), why)
			}
		}
		give(t, r, b, false)
		raw.Store(b+8, 0) // a program that has written to it
		if why := Free(r.h, b, HowAny, NoSize, 0); why != FreeDouble {
			t.Fatalf("freeing a block of %d bytes twice says %d", sizeclass.Size(c), why)
		}
	}
	sound(t)
}

// TestNurseryGiven: a nursery that has rested gives the memory pages that no block lies in back to
// the kernel, once, and later where the kernel has refused.
func TestNurseryGiven(t *testing.T) {
	crowdedWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	kept, _ := r.malloc(48)
	written(kept, 48)
	blocks := []uintptr{}
	for range nurseryMost - 1 {
		b, _ := r.malloc(1024)
		written(b, 1024)
		if Lookup(b).isNursery() {
			blocks = append(blocks, b)
		}
	}
	p := r.h.nursery
	for _, b := range blocks {
		give(t, r, b, false)
	}
	before := residentPages(t, p)
	r.h.Thread.collectPages(false)
	if n := residentPages(t, p); n != before {
		t.Errorf("%d memory pages of %d are resident before the nursery has rested", n, before)
	}
	th := r.h.Thread
	pool.quiet = th.Now + 1
	r.h.collectNursery(true)
	pool.quiet = 0
	if n := residentPages(t, p); n != before {
		t.Errorf("%d memory pages of %d are resident while all is to be quiet", n, before)
	}
	r.h.collectNursery(true)
	if n := residentPages(t, p); n != 1 {
		t.Errorf("%d memory pages are resident for one block of 48 bytes", n)
	}
	if n := r.h.collectNursery(true); n != 0 {
		t.Errorf("%d bytes go twice", n)
	}
	b, _ := r.malloc(2000)
	written(b, 2000)
	give(t, r, b, false)
	if n := r.h.collectNursery(true); n > 2*raw.Page {
		t.Errorf("%d bytes go for a block of 2000", n)
	}
	intact(t, kept, 48)
	sound(t)
}
