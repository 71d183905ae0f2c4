package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// oneFree is a heap that has one free block, of size bytes.
func oneFree(t *testing.T, size uintptr) (h *Heap, free uintptr) {
	t.Helper()
	newWorld(t)
	h = mustAcquire(t, 8)
	free = mustServe(t, h, size)
	for Lookup(free).Free != 0 { // what was carved with it
		mustServe(t, h, size)
	}
	Free(h, free, HowAny, NoSize, 0)
	mustBeSound(t)
	return h, free
}

// pushCached puts a block in use on the thread-cache free list, as the fast path does.
func pushCached(h *Heap, b uintptr) {
	s := &h.CacheLists[Lookup(b).Class]
	raw.Store(b, s.Head)
	raw.Store(b+8, FreeKey)
	s.Head = b
	s.Room--
}

// TestFallbackNear: a block of one of the next two classes above 1 KiB serves before fresh memory,
// whether its page or the thread-cache free list has it.
func TestFallbackNear(t *testing.T) {
	for _, c := range []struct {
		size, wants, align uintptr
		serves             bool
	}{
		{1280, 1152, sizeclass.Granule, true},
		{1408, 1152, sizeclass.Granule, true},
		{1536, 1152, sizeclass.Granule, false},
		{1152, 1280, sizeclass.Granule, false},
		{1152, 1024, sizeclass.Granule, false}, // of such blocks there may be many
		{9000, 8000, sizeclass.Granule, true},
		{100 << 10, 90 << 10, sizeclass.Granule, true},
		{5120, 4096, sizeclass.Line, true},
		{5120, 4096, 2 * sizeclass.Line, false}, // it is spread
		{40 << 10, 36 << 10, sizeclass.Line, true},
		{40 << 10, 36 << 10, 2 * sizeclass.Line, false},
	} {
		for _, spilled := range []bool{false, true} {
			h, free := oneFree(t, c.size)
			if spilled {
				pushCached(h, Lookup(free).pop())
				mustBeSound(t)
			}
			b := Aligned(h, c.align, c.wants, 0, 0) &^ ZeroBit
			if (b == free) != c.serves {
				t.Errorf(
					"%d bytes at a multiple of %d, with a free block of %d bytes (cached: %v): "+
						"that one served: %v",
					c.wants,
					c.align,
					c.size,
					spilled,
					b == free,
				)
			}
			mustBeSound(t)
		}
	}
}

// TestFallbackAway: a block that lies in another tier than the hint's does not serve.
func TestFallbackAway(t *testing.T) {
	h, free := oneFree(t, 1280)
	p := Lookup(free)
	was := p.placement
	p.placement = config.TierSlow
	if b := h.fallbackNear(sizeclass.Of(1152), sizeclass.Granule); b != 0 {
		t.Error("it served")
	}
	p.placement = was
	if b := h.fallbackNear(sizeclass.Of(1152), sizeclass.Granule); b != free {
		t.Error("and did not when it was back")
	}
}

// TestFallbackEmptying: a page that is not current serves while three quarters of it are in use.
func TestFallbackEmptying(t *testing.T) {
	h, free := oneFree(t, 1280)
	p := Lookup(free)
	blocks := []uintptr{}
	for next := p; next == p; next = Lookup(blocks[len(blocks)-1]) {
		blocks = append(blocks, mustServe(t, h, 1280))
	}
	used := uintptr(p.blocks)
	for _, b := range blocks[:len(blocks)-1] {
		pushCached(h, b)
		got := h.fallbackNear(sizeclass.Of(1152), sizeclass.Granule)
		if want := 4*used >= 3*uintptr(p.blocks); (got == b) != want {
			t.Fatalf(
				"%d of %d blocks are in use, with the one on the thread-cache free list: it lent "+
					"%#x",
				used,
				p.blocks,
				got,
			)
		}
		if got != 0 {
			Free(h, got, HowAny, NoSize, 0)
		} else {
			h.flushCached(uintptr(p.Class))
		}
		used--
		mustBeSound(t)
	}
}

// TestFallbackOwn: a class whose current page is used up looks at its other pages before it
// falls back.
func TestFallbackOwn(t *testing.T) {
	h, free := oneFree(t, 1280)
	other := mustAcquire(t, 16)
	h.fallbackNear(sizeclass.Of(1152), sizeclass.Granule)
	fill := func() (p *Page) {
		b := mustServe(t, h, 1152)
		p = Lookup(b)
		for n := uint32(1); n < p.blocks; n++ {
			mustServe(t, h, 1152)
		}
		return p
	}
	p, q := fill(), fill()
	Free(h, p.Start, HowAny, NoSize, 0)
	if mustServe(t, h, 1152) != p.Start {
		t.Fatal("its own block did not serve")
	}
	for i := range uintptr(20) {
		Free(other, q.Start+i*1152, HowAny, NoSize, 0)
	}
	Free(h, free, HowAny, NoSize, 0)
	if b := mustServe(t, h, 1152); b == free {
		t.Errorf("it borrowed, with %d blocks on its next page", q.remoteCount())
	}
	mustBeSound(t)
}

// TestFallbackRate: a class that is short for good gets memory of its own.
func TestFallbackRate(t *testing.T) {
	h, free := oneFree(t, 1280)
	fallbacks := func() (n int) {
		for h.fallbackNear(sizeclass.Of(1152), sizeclass.Granule) == free {
			Free(h, free, HowAny, NoSize, 0)
			if n++; n > 1e6 {
				t.Fatal("it falls back for ever")
			}
		}
		return n
	}
	if n := fallbacks(); n < fallbackBurst/fallbackEvery || n > fallbackBurst/fallbackEvery+1 {
		t.Errorf("%d times at once", n)
	}
	if b := mustServe(t, h, 1152); b == free {
		t.Error("and once more")
	}
	h.Thread.Now += 1e6
	if n := fallbacks(); n != 1e6/fallbackEvery {
		t.Errorf("%d times after a millisecond", n)
	}
	mustBeSound(t)
}

// TestFallbackFresh: what is left of a page in used memory goes before a block of another class,
// which is there for the next one that would need fresh memory.
func TestFallbackFresh(t *testing.T) {
	h, free := oneFree(t, 5120)
	h.fallbackNear(sizeclass.Of(4608), sizeclass.Granule)
	p := Lookup(mustServe(t, h, 4608))
	for p.Free != 0 {
		mustServe(t, h, 4608)
	}
	Free(h, free, HowAny, NoSize, 0)
	p.zero = 0
	if b := mustServe(t, h, 4608); Lookup(b) != p {
		t.Error("used memory was left lying")
	}
	for p.Free != 0 {
		mustServe(t, h, 4608)
	}
	p.zero = 1
	if b := mustServe(t, h, 4608); b != free {
		t.Error("fresh memory was taken before a free block")
	}
	mustBeSound(t)
}
