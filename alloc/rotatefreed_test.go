package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
)

// TestRotateFreed: a page without a free block stays on its list while blocks of it come back, so
// that they go to the page; one of which nothing came back for a round leaves it.
func TestRotateFreed(t *testing.T) {
	newWorld(t)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	const size, pages = 1024, 3
	var blocks []uintptr
	for len(blocks) < pages*SliceSize/size {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
	}
	c := sizeclass.Of(size)
	onList := func() (n int) {
		for p := r.h.cur[c]; p != nil && p != pageNone; p = p.next {
			n++
		}
		return n
	}
	if n := onList(); n > 1 {
		t.Fatalf("%d of %d full pages are on the list", n, pages)
	}
	// More than the thread-cache free list takes, of all pages: they come back to the list.
	for i := 0; i < len(blocks); i += 2 {
		give(t, r, blocks[i], true)
	}
	r.h.flushCached(c)
	if n := onList(); n != pages {
		t.Fatalf("%d of %d pages are on the list", n, pages)
	}
	// In rounds of half of that, all stay there: no free goes to the thread-cache free list.
	for range 10 {
		for i := 0; i < len(blocks); i += 2 {
			blocks[i], _ = r.malloc(size)
			sound(t)
			if i%4 == 2 {
				give(t, r, blocks[i], true)
				give(t, r, blocks[i-2], true)
				blocks[i-2], _ = r.malloc(size)
			}
		}
		for i := 0; i < len(blocks); i += 2 {
			if i%4 == 0 {
				give(t, r, blocks[i], true)
			}
		}
		if n := onList(); n != pages {
			t.Fatalf("%d of %d pages are on the list", n, pages)
		}
	}
	// Nothing comes back any more: the list empties.
	for range len(blocks) {
		b, _ := r.malloc(size)
		blocks = append(blocks, b)
	}
	sound(t)
	if n := onList(); n > 1 {
		t.Errorf("%d pages are on the list, all full but one", n)
	}
}
