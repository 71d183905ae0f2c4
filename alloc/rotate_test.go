package alloc

import (
	"testing"

	"tieralloc/alloc/sizeclass"
)

// TestRotateUsedBeforeFresh: blocks that came back to one page are given out before another page
// is carved further.
func TestRotateUsedBeforeFresh(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	const size = 1000
	first := Lookup(mustServe(t, h, size))
	blocks := []uintptr{}
	for p := first; p == first; {
		b := mustServe(t, h, size)
		blocks = append(blocks, b)
		p = Lookup(b)
	}
	second := Lookup(blocks[len(blocks)-1])
	for second.Free != 0 {
		mustServe(t, h, size)
	}
	carved := second.carved
	if uintptr(carved) >= second.Size*uintptr(second.blocks) {
		t.Fatal("the second page was carved at once")
	}
	const back = 20
	for _, b := range blocks[:back] {
		Free(h, b, HowAny, NoSize, 0)
	}
	mustBeSound(t)
	for i := range back {
		if p := Lookup(mustServe(t, h, size)); p != first {
			t.Fatalf("block %d of those that came back to another page was left lying", i)
		}
		mustBeSound(t)
	}
	if p := Lookup(mustServe(t, h, size)); p != second || second.carved == carved {
		t.Errorf("what was never used was not used when nothing else was left")
	}
}

// TestRotateEnds: where a program that wrote to free blocks has cut the lists of two pages short,
// blocks are lost and nothing else.
func TestRotateEnds(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	const size = 1000
	blocks := []uintptr{}
	pages := map[*Page]bool{}
	for len(pages) < 4 {
		b := mustServe(t, h, size)
		blocks = append(blocks, b)
		pages[Lookup(b)] = true
	}
	for i, b := range blocks {
		if i%4 != 0 {
			Free(h, b, HowAny, NoSize, 0)
		}
	}
	h.flushCached(sizeclass.Of(size))
	for p := range pages {
		p.Free = 0
	}
	for range len(blocks) {
		mustServe(t, h, size)
	}
}
