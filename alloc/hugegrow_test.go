package alloc

import (
	"fmt"
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

// TestGrowthCopied: a block moves to a cached one in which it cannot double if it is a page's, or
// if it grows by more than half.
func TestGrowthCopied(t *testing.T) {
	for _, c := range []struct {
		from, to uintptr // MiB
		moves    bool
	}{{8, 9, false}, {8, 12, true}, {8, 15, true}, {8, 17, false}, {3, 4, true}, {4, 10, true}} {
		t.Run(fmt.Sprintf("%d to %d", c.from, c.to), func(t *testing.T) {
			h := hugeWorld(t)
			b := get(t, h, c.from*mib)
			numbered(b, c.from*mib)
			cached := get(t, h, 15*mib)
			in := Lookup(cached).Start
			get(t, h, 5*mib) // so that it grows to neither side
			drop(h, cached)
			to := Resize(h, b, c.to*mib)
			if to == 0 || (Lookup(to).Start == in) != c.moves {
				t.Fatalf("moved to %#x, %#x was cached", to, in)
			}
			isNumbered(t, to, c.from*mib)
			drop(h, to)
			sound(t)
		})
	}
}

// TestGrowthRepeated: a buffer that grows again and again has the same memory each time, whatever
// its last size.
func TestGrowthRepeated(t *testing.T) {
	for last := uintptr(300 << 10); last < 5*mib; last += last / 3 {
		t.Run(fmt.Sprintf("%d KiB", last>>10), func(t *testing.T) {
			newWorld(t)
			h := mustAcquire(t, 8)
			peak := uint64(0)
			for round := range 60 {
				n := uintptr(200 << 10)
				b := get(t, h, n)
				for n < last {
					n += n / 2
					to := Resize(h, b, n)
					if to == 0 {
						to = get(t, h, n)
						drop(h, b)
					}
					b = to
				}
				drop(h, b)
				if round == 10 {
					peak = pool.count.peak
				}
			}
			if pool.count.peak != peak {
				t.Errorf("a peak of %d bytes, after 10 rounds %d", pool.count.peak, peak)
			}
			sound(t)
		})
	}
}
