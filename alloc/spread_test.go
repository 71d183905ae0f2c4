package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// TestSpreadRows: blocks of one size, as the rows of a matrix, use the sets of a cache about
// equally: of a cache with 1024 sets of lines (1 MiB, 16 ways) none gets more than its ways of as
// many blocks as there are sets.
func TestSpreadRows(t *testing.T) {
	const sets, ways = 1024, 16
	h := hugeWorld(t)
	h.unspread = false
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

// TestSpreadColumns: large blocks begin at different lines of a memory page, as the columns of a
// table that are read row by row: of the 64 sets of a cache of 8 ways none gets more of 48 blocks.
func TestSpreadColumns(t *testing.T) {
	const sets, columns, ways = raw.Page / sizeclass.Line, 48, 8
	h := hugeWorld(t)
	h.unspread = false
	for _, n := range []uintptr{40 << 10, 64 << 10, 100_000, 128 << 10, 200_000, 256 << 10, 300_000,
		512 << 10, 1_000_000, mib, 2 * mib, 4 * mib, 5 * mib, 8_000_000, 9*mib - SliceSize} {
		var used [sets]int
		var all []uintptr
		for range columns {
			b := Malloc(h, n, 0, 0) &^ ZeroBit
			if b%sizeclass.Line != 0 || Usable(b) < n || Check(b) != FreeOK {
				t.Fatalf("a block of %d bytes at %#x has %d: %d", n, b, Usable(b), Check(b))
			}
			used[b/sizeclass.Line%sets]++
			all = append(all, b)
		}
		sound(t)
		for i, k := range used {
			if k > ways {
				t.Errorf("%d of %d blocks of %d bytes begin in set %d", k, columns, n, i)
				break
			}
		}
		freeAll(t, h, all)
	}
	sound(t)
}

// TestLeadIn: what lies before a block in its mapping stays as it is, and is not the program's, as
// the block is resized, from the page of a class to a mapping of its own, copied into the cache,
// moved to another tier by parts, and freed by another thread.
func TestLeadIn(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	h.unspread = false
	for _, cached := range []uintptr{0, 60 * mib} {
		b, n := mustServe(t, h, mib), mib
		for Lookup(b).lead() == 0 {
			b = mustServe(t, h, mib)
		}
		lead := Lookup(b).lead()
		if cached != 0 {
			drop(h, mustServe(t, h, cached))
		}
		numbered(b, mib)
		for _, size := range []int{3 * mib, 4*mib + 1, 5 * mib, 5*mib + SliceSize, 12 * mib,
			30 * mib, 80 * mib, 31 * mib, 6 * mib, 7*mib - int(lead), 21 * mib} {
			h.Thread.Now += 1e6
			to := Resize(h, b, uintptr(size))
			if to == 0 { // the caller copies
				to = mustServe(t, h, uintptr(size))
				raw.Copy(to, b, uintptr(min(size, n)))
				drop(h, b)
			}
			b, n = to, size
			sound(t)
			p := Lookup(b)
			if Check(b) != FreeOK || Check(b-raw.Page) == FreeOK || Usable(b) < uintptr(n) ||
				p.Owner == OwnerHuge && b+Usable(b) != p.Start+p.Size {
				t.Fatalf("%d bytes at %#x: %d, %d usable", n, b, Check(b), Usable(b))
			}
			isNumbered(t, b, mib)
		}
		p := Lookup(b)
		if p.Gap == 0 || Check(p.Start) != FreeInside {
			t.Errorf("%d bytes before the block, of which the first is %d", p.Gap, Check(p.Start))
		}
		follows(t, h, p.Start+4*mib, 2, FollowMoved)
		if to := Move(h, b, 1); to != b {
			t.Errorf("moved to %#x", to)
		}
		isNumbered(t, b, mib)
		if why := Free(mustAcquire(t, 16), b, HowAny, NoSize, 0); why != FreeOK {
			t.Errorf("free says %d", why)
		}
		sound(t)
	}
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
			if align > sizeclass.Line && Lookup(b).Gap != 0 {
				t.Errorf("%d bytes at a multiple of %d are spread", n, align)
			}
			all = append(all, plain, b)
		}
	}
	sound(t)
	freeAll(t, h, all)
	sound(t)
}

// TestSpreadNotLonger: where addresses are few, nothing is spread, and in a huge page a longer span
// is resident as a whole; so spans are not longer there.
func TestSpreadNotLonger(t *testing.T) {
	for _, huge := range []string{"off", "thp"} {
		h := hugeWorld(t)
		h.unspread = false
		environment(t, "TA_HUGEPAGES="+huge)
		if huge == "off" {
			addressLimit = 1 << 30
		}
		for c := uintptr(sizeclass.LastShort + 1); c < sizeclass.Count; c++ {
			p := Lookup(mustServe(t, h, sizeclass.Size(c)))
			if uintptr(p.slices) != sizeclass.PageSlices(c) {
				t.Errorf("%s: blocks of %d bytes have a page of %d slices", huge, p.Size, p.slices)
			}
		}
		if p := Lookup(mustServe(t, h, 6*mib)); p.Size != 6*mib || p.Gap != 0 {
			t.Errorf("%s: a block of %d bytes begins %d behind", huge, p.Size, p.Gap)
		}
		sound(t)
	}
}

// TestLargestCached: a freed block of 64 MiB serves the next one.
func TestLargestCached(t *testing.T) {
	h := hugeWorld(t)
	h.unspread = false
	for range 3 {
		b := get(t, h, 64*mib)
		drop(h, b)
		sound(t)
	}
	if pool.count.hugeMisses != 1 {
		t.Errorf("%d blocks were mapped", pool.count.hugeMisses)
	}
}

// TestUnspreadFast: the fast path serves from pages that are not spread, but not while a profile is
// taken: nothing counts those blocks.
func TestUnspreadFast(t *testing.T) {
	for _, n := range []uintptr{1025, 5000, 20_000, 200_000} {
		for align := uintptr(128); align <= 32<<10; align *= 2 {
			newWorld(t)
			unspreadFast(t, align, n)
			sound(t)
		}
	}
	profiledWorld(t, 64<<20)
	unspreadFast(t, 4096, 4096)
}

func unspreadFast(t *testing.T, align, n uintptr) {
	t.Helper()
	r := &thread{h: mustAcquire(t, 16), token: 16, now: func() uint64 { return 1e9 }}
	var all []uintptr
	for range 64 {
		all = append(all, r.aligned(align, n)&^ZeroBit)
	}
	for _, b := range all[1:] { // the first keeps its page
		if why := r.free(b); why != FreeOK {
			t.Fatalf("free says %d", why)
		}
	}
	if Profiling {
		h := r.h.AlignedHeap
		for c, p := range h.Cur {
			if p != &h.none {
				t.Errorf("blocks of %d bytes are shown", sizeclass.Size(uintptr(c)))
			}
		}
	}
	fast := 0
	for range 32 {
		b := r.alignedFast(align, n)
		if b != 0 {
			fast++
		} else {
			b = r.aligned(align, n) &^ ZeroBit
		}
		if b%align != 0 || usable(b) < n {
			t.Fatalf("%d bytes at %#x for an alignment of %d", n, b, align)
		}
		if why := r.free(b); why != FreeOK {
			t.Fatalf("free says %d", why)
		}
	}
	if !Profiling && fast < 30 {
		t.Errorf("%d bytes at a multiple of %d: the fast path served %d of 32", n, align, fast)
	}
	r.free(all[0])
}
