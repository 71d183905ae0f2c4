package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
)

// TestSpreadRows: blocks of one size, as the rows of a matrix, use the sets of a cache about
// equally: of a cache with 1024 sets of lines (1 MiB, 16 ways) none gets more than its ways of as
// many blocks as there are sets.
func TestSpreadRows(t *testing.T) {
	const sets, ways = 1024, 16
	h := hugeWorld(t)
	for _, n := range []uintptr{1100, 2048, 4000, 4096, 8000, 8192, 12000, 16384, 32768} {
		var used [sets]int
		for range sets {
			b := Malloc(h, n, 0, 0) &^ ZeroBit
			if b%sizeclass.Line != 0 {
				t.Fatalf("a block of %d bytes at %#x", n, b)
			}
			used[b/sizeclass.Line%sets]++
		}
		for i, k := range used {
			if k > ways {
				t.Errorf("%d of %d blocks of %d bytes begin in set %d", k, sets, n, i)
				break
			}
		}
	}
	sound(t)
}

// TestUnspread: aligned blocks lie at multiples of their alignment, apart from those that are
// spread, and are as large as those.
func TestUnspread(t *testing.T) {
	h := hugeWorld(t)
	var all []uintptr
	for align := uintptr(32); align <= 8192; align *= 2 {
		for n := uintptr(500); n < 40<<10; n += n / 3 {
			plain, b := Malloc(h, n, 0, 0)&^ZeroBit, Aligned(h, align, n, 0, 0)&^ZeroBit
			if b == 0 || b%align != 0 || Lookup(b).Size < n {
				t.Fatalf("%d bytes at %#x for an alignment of %d", n, b, align)
			}
			if align > sizeclass.Line && Lookup(b).gap != 0 {
				t.Errorf("%d bytes at a multiple of %d are spread", n, align)
			}
			all = append(all, plain, b)
		}
	}
	sound(t)
	freeAll(t, h, all)
	sound(t)
}
