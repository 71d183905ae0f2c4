package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
)

// shortOf is a heap in a world of one tier that holds a MiB and no more.
func shortOf(t *testing.T) *Heap {
	newWorld(t)
	setTiers(func(s *config.Settings) {
		s.OnHardcap = config.HardcapFail
		s.Tiers[config.TierNormal].Hard = 1 << 20
	})
	return mustAcquire(t, 8)
}

// untilNone allocates with f until there is no memory.
func untilNone(t *testing.T, f func() uintptr) (blocks []uintptr) {
	t.Helper()
	for {
		b := f() &^ ZeroBit
		if b == 0 {
			mustBeSound(t)
			return blocks
		}
		if blocks = append(blocks, b); len(blocks) > 1<<20 {
			t.Fatal("a MiB has no end")
		}
	}
}

func freeAll(t *testing.T, h *Heap, blocks []uintptr) {
	t.Helper()
	for _, b := range blocks {
		if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
			t.Fatalf("freeing %#x: %d", b, why)
		}
	}
	mustBeSound(t)
}

// held is a block of class c that h has without another page, or 0.
func held(h *Heap, c uintptr) uintptr {
	for p := h.cur[c]; p != pageNone; p = h.cur[c] {
		if b := p.pop(); b != 0 {
			return b
		}
		if b, _ := p.carve(); b != 0 {
			return b
		}
		h.setFull(p)
	}
	return h.popCached(c)
}

// TestFallbackAny: when small blocks are to be had no more, no larger one is either.
func TestFallbackAny(t *testing.T) {
	for _, size := range []uintptr{32, 100, 5000, 8192, 40000, 200000} {
		h := shortOf(t)
		of := func(n uintptr) func() uintptr { return func() uintptr { return Malloc(h, n, 0, 0) } }
		large := untilNone(t, of(size))
		freeAll(t, h, large[1:2]) // its page stays, for the others
		small := untilNone(t, of(16))
		if len(small) == 0 {
			t.Errorf("a free block of %d bytes is not there for 16", size)
		}
		for c := sizeclass.Of(16); c < sizeclass.Count; c++ {
			if b := held(h, c); b != 0 {
				t.Errorf("class %d still has block %#x", c, b)
			}
		}
		freeAll(t, h, append(small, append(large[2:], large[0])...))
		if again := untilNone(t, of(size)); len(again) != len(large) {
			t.Errorf("%d blocks of %d bytes at first, %d in the end", len(large), size, len(again))
		}
	}
}

// TestFallbackIsAligned: a block of a larger class is taken for its alignment, too, and the
// smallest that will do.
func TestFallbackIsAligned(t *testing.T) {
	h := shortOf(t)
	of := func(n uintptr) uintptr { return Malloc(h, n, 0, 0) &^ ZeroBit }
	odd, even, big := of(80*3), of(512), of(40<<10) // 240 is a multiple of 16 and not of 32
	c := sizeclass.Of(7168)
	full := []uintptr{of(7168)}
	for h.refill(c) { // to the last slice
		full = append(full, untilNone(t, func() uintptr { return held(h, c) })...)
	}
	for _, want := range []struct {
		align, page uintptr
	}{{16, odd}, {256, even}, {4096, big}} {
		// One of 176 bytes, of which there is no page.
		b := Aligned(h, want.align, 176, 0, 0) &^ ZeroBit
		if b == 0 || b&(want.align-1) != 0 || Lookup(b) != Lookup(want.page) {
			t.Errorf("%#x for an alignment of %d: not of the page of %#x", b, want.align, want.page)
		}
	}
	for _, b := range untilNone(t, func() uintptr { return Aligned(h, 512, 500, 0, 0) }) {
		if b&511 != 0 {
			t.Errorf("%#x is no multiple of 512", b)
		}
	}
	freeAll(t, h, append(full, odd, even, big))
}
