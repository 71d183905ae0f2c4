package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// get allocates n bytes and writes a byte in each page of the kernel's.
func get(tb testing.TB, h *Heap, n uintptr) uintptr {
	tb.Helper()
	h.Thread.Now += 1e5
	b := Malloc(h, n, 0, 0) &^ ZeroBit
	if b == 0 {
		tb.Fatalf("no %d bytes", n)
	}
	for at := b; at < b+n; at += raw.Page {
		raw.StoreByte(at, 7)
	}
	return b
}

func drop(h *Heap, b uintptr) {
	h.Thread.Now += 1e5
	Free(h, b, HowAny, NoSize, 0)
}

// hugeWorld is a heap with nothing in it and a delay of half a second.
func hugeWorld(tb testing.TB) *Heap {
	newWorld(tb)
	PurgeDelay = 500e6
	h := mustAcquire(tb, 8)
	h.Thread.Now = 1e9
	h.unspread = true // a block of so many MiB takes no more
	return h
}

const mib = 1 << 20

func sound(tb testing.TB) {
	tb.Helper()
	if err := inspect(); err != nil {
		tb.Error(err)
	}
}

// TestHugeCut: what is left of a cached block that was cut serves others.
func TestHugeCut(t *testing.T) {
	h := hugeWorld(t)
	a := get(t, h, 40*mib)
	drop(h, a)
	for i, n := range []uintptr{10, 20, 10} {
		if b := get(t, h, n*mib); b < a || b >= a+40*mib {
			t.Errorf("block %d of %d MiB is not a part of the one that was freed", i, n)
		}
	}
	if pool.cache.bytes != 0 || pool.count.hugeMisses != 1 {
		t.Errorf("%d bytes are cached, %d misses", pool.cache.bytes, pool.count.hugeMisses)
	}
	sound(t)
}

// TestHugeStretch: a cached block that is too small is made larger, and moves.
func TestHugeStretch(t *testing.T) {
	h := hugeWorld(t)
	a := get(t, h, 20*mib)
	get(t, h, 5*mib)
	drop(h, a)
	b := get(t, h, 30*mib)
	if pool.count.hugeMisses != 2 || pool.cache.n != 0 || pool.count.committed != 35*mib {
		t.Errorf("%d misses, %d cached, %d committed", pool.count.hugeMisses, pool.cache.n,
			pool.count.committed)
	}
	if a != b && Lookup(a) != nil {
		t.Error("the map still knows the address that it had")
	}
	if raw.LoadByte(b+19*mib) != 7 {
		t.Error("other contents")
	}
	drop(h, b)
	pool.count.peak = 1 << 40
	get(t, h, 200*mib) // more than four times as large: not worth it
	if pool.count.hugeMisses != 3 || pool.cache.n != 1 {
		t.Errorf("%d misses, %d cached", pool.count.hugeMisses, pool.cache.n)
	}
	sound(t)
}

// TestHugeAligned: an aligned block lies in the memory of the one before it, whether that fits or
// is moved.
func TestHugeAligned(t *testing.T) {
	h := hugeWorld(t)
	for _, n := range []uintptr{3 * mib, 3 * mib, 5 * mib, 4 * mib} {
		h.Thread.Now += 1e5
		b := Aligned(h, huge2M, n, 0, 0) &^ ZeroBit
		if b == 0 || b&(huge2M-1) != 0 {
			t.Fatalf("%d MiB at %#x", n/mib, b)
		}
		drop(h, b)
		sound(t)
	}
	if pool.count.hugeMisses != 1 || pool.count.committed != 5*mib {
		t.Errorf("%d misses, %d bytes committed", pool.count.hugeMisses, pool.count.committed)
	}
}

// TestHugeJoins: what was cut off a cached block is one with it again when both are free, whatever
// the order, and as old as the older; a neighbour that was mapped by itself stays apart.
func TestHugeJoins(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 2, 1}} {
		h := hugeWorld(t)
		PurgeDelay = 16e9 // what is freed stays
		drop(h, get(t, h, 40*mib))
		var b [3]uintptr
		for i, n := range []uintptr{5*mib + SliceSize, 9 * mib, 10 * mib} {
			b[i] = get(t, h, n)
		}
		old := h.Thread.Now
		for _, i := range order {
			h.Thread.Now += 1e6
			drop(h, b[i])
			sound(t)
		}
		if c := &pool.cache; c.n != 1 || c.bytes != 40*mib || c.slot[0].freeSince() > old {
			t.Errorf("%v: %d blocks cached, %d bytes, free since %d, not %d", order, c.n, c.bytes,
				c.slot[0].freeSince(), old)
		}
		if c := get(t, h, 40*mib); c != b[0] || pool.count.hugeMisses != 1 {
			t.Errorf("%v: all of it does not serve: %#x is not %#x", order, c, b[0])
		}
	}
	h := hugeWorld(t)
	a, b := get(t, h, 6*mib), get(t, h, 6*mib)
	if a-b != 6*mib && b-a != 6*mib {
		t.Skip("no neighbours")
	}
	drop(h, a)
	drop(h, b)
	if pool.cache.n != 2 {
		t.Errorf("%d blocks are cached", pool.cache.n)
	}
}

// TestHugeOneAtATime: a program with one block at a time, of any size, holds no more than the
// largest, and faults little in.
func TestHugeOneAtATime(t *testing.T) {
	h := hugeWorld(t)
	for i := range 500 {
		drop(h, get(t, h, 5*mib+uintptr(i)*7919%5000*1009))
	}
	if pool.cache.bytes > 11*mib || pool.count.hugeMisses > 20 {
		t.Errorf("%d bytes are cached, %d misses", pool.cache.bytes, pool.count.hugeMisses)
	}
	sound(t)
}

// TestHighWaterCached: before the heap is larger than ever, cached blocks that do not fit go.
func TestHighWaterCached(t *testing.T) {
	h := hugeWorld(t)
	drop(h, get(t, h, 30*mib))
	get(t, h, 200*mib)
	if pool.cache.n != 0 || pool.count.peak != 200*mib {
		t.Errorf("%d blocks are cached, a peak of %d", pool.cache.n, pool.count.peak)
	}
	sound(t)
}
