package alloc

import (
	"sync/atomic"
	"testing"

	"tieralloc/alloc/sizeclass"
)

// fullPage is a page with no free block, and its blocks.
func fullPage(t *testing.T, h *Heap) (p *Page, blocks []uintptr) {
	t.Helper()
	c := sizeclass.Of(5000)
	if !h.refill(c) {
		t.Fatal("no page")
	}
	p = h.Cur[c]
	for b, _ := p.carve(); b != 0; b, _ = p.carve() {
		blocks = append(blocks, b)
	}
	h.setFull(p)
	mustBeSound(t)
	return p, blocks
}

// TestFullInFlight: the owner frees a block of a full page that waits on the pending
// list. Between two threads that takes a coincidence, so it is made here by hand. The
// block has to join those that wait, and all come back when the list is looked at.
func TestFullInFlight(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	p, blocks := fullPage(t, h)
	freeRemote(nil, p, blocks[0])
	mustBeSound(t)
	if h.pending != addrOf(p) {
		t.Fatal("the owner was not told")
	}
	if why := Free(h, blocks[1], HowAny, NoSize, 0); why != FreeOK || h.Cur[p.Class] == p ||
		p.Owner != h.ownerOf(uintptr(p.Class))|OwnerFull {
		t.Fatalf("a free by the owner says %d; the page's owner word is %#x", why, p.Owner)
	}
	mustBeSound(t)
	h.drainPending()
	mustBeSound(t)
	if h.Cur[p.Class] != p || p.pop() != blocks[1] || p.pop() != blocks[0] || p.Remote != 0 {
		t.Fatal("the page did not give out both blocks again")
	}
	h.setFull(p)
	mustBeSound(t)
	if p.Remote != RemoteNotify {
		t.Fatalf("the remote word is %#x: the page does not ask for news", p.Remote)
	}
	freeRemote(nil, p, blocks[2])
	h.drainPending()
	mustBeSound(t)
	if h.Cur[p.Class] != p || p.pop() != blocks[2] {
		t.Fatal("the block freed from elsewhere did not come back")
	}
}

// TestFullInHand: the owner frees the last block of a full page that another thread has
// just taken from the pending list, to have the page if it is empty. The owner must not
// touch the page any more, which goes to the pool.
func TestFullInHand(t *testing.T) {
	newWorld(t)
	h, thief := mustAcquire(t, 8), mustAcquire(t, 16)
	p, blocks := fullPage(t, h)
	for _, b := range blocks[1:] {
		freeRemote(nil, p, b)
	}
	list := atomic.SwapUintptr(&h.pending, 0) // as the thief does
	if why := Free(h, blocks[0], HowAny, NoSize, 0); why != FreeOK {
		t.Fatal(why)
	}
	if list != addrOf(p) || p.Owner != h.ownerOf(uintptr(p.Class))|OwnerFull ||
		h.cur[p.Class] == p || !p.allFree() {
		t.Fatalf("the owner has had a hand on the page: owner word %#x", p.Owner)
	}
	h.pending = list
	thief.Thread.stealFrom(h)
	mustBeSound(t)
	if p.Owner != ownerNone || h.pending != 0 {
		t.Errorf("the empty page was not taken: owner word %#x", p.Owner)
	}
}
