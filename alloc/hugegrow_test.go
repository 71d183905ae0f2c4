package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// growBy lengthens a block in steps of an eighth, as a buffer that is filled, until it has n bytes.
func growBy(t *testing.T, h *Heap, b, from, n uintptr) uintptr {
	t.Helper()
	raw.StoreByte(b+from-1, 7)
	for from < n {
		next := min(from+from/8, n)
		to := Resize(h, b, next)
		if to == 0 {
			t.Fatalf("%d bytes do not become %d", from, next)
		}
		if raw.LoadByte(to) != 7 || raw.LoadByte(to+from-1) != 7 {
			t.Fatalf("from %d bytes to %d: other contents", from, next)
		}
		raw.StoreByte(to+next-1, 7)
		b, from = to, next
		sound(t)
	}
	return b
}

// TestGrowsInCache: a buffer that grows lies in the memory of the one before it, and takes nothing
// from the kernel until it is longer.
func TestGrowsInCache(t *testing.T) {
	h := hugeWorld(t)
	drop(h, get(t, h, 30*mib))
	committed := pool.count.committed
	for range 3 {
		b := get(t, h, 400<<10)
		before := pool.count.committed // a span may be new
		b = growBy(t, h, b, 400<<10, 25*mib)
		if pool.count.hugeMisses != 1 || pool.count.committed != before {
			t.Errorf("%d misses, %d bytes committed instead of %d", pool.count.hugeMisses,
				pool.count.committed, before)
		}
		drop(h, b)
	}
	b := get(t, h, 400<<10)
	b = growBy(t, h, b, 400<<10, 50*mib)
	if more := pool.count.committed - committed; more > 40*mib {
		t.Errorf("%d bytes more are committed for 50 MiB beside a cache of 30", more)
	}
	drop(h, b)
	sound(t)
}

// TestGrowsElsewhere: a cached block in which a growing one cannot double is not for it.
func TestGrowsElsewhere(t *testing.T) {
	h := hugeWorld(t)
	drop(h, get(t, h, 9*mib))
	in := pool.cache.slot[0].Start
	b := get(t, h, 4*mib)
	if to := growBy(t, h, b, 4*mib, 5*mib); to == in {
		t.Error("5 MiB grow into a cached block of 9")
	}
	if pool.cache.n != 1 {
		t.Errorf("%d blocks are cached", pool.cache.n)
	}
}
