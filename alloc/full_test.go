package alloc

import "testing"

// TestFullInFlight: a page runs full while it is still on the pending list from
// the time before. Between two threads that takes a coincidence within one call of
// malloc, so it is made here by hand. When the list is looked at, the page has to
// ask for news again, or the next remote free would go unseen.
func TestFullInFlight(t *testing.T) {
	newWorld(t)
	h, other := mustAcquire(t, 8), mustAcquire(t, 16)
	c := Class(5000)
	if !h.refill(c) {
		t.Fatal("no page")
	}
	p := h.Cur[c]
	var blocks []uintptr
	for b, _ := p.carve(); b != 0; b, _ = p.carve() {
		blocks = append(blocks, b)
	}
	h.setFull(p)
	mustBeSound(t)
	freeRemote(other, p, blocks[0])
	mustBeSound(t)
	if h.pending != addrOf(p) {
		t.Fatal("the owner was not told")
	}
	if why := Free(h, blocks[1]); why != FreeOK || h.Cur[c] != p {
		t.Fatalf("a free by the owner says %d and makes page %p current", why, h.Cur[c])
	}
	mustBeSound(t)
	if p.pop() != blocks[1] || !p.takeRemote() || p.pop() != blocks[0] {
		t.Fatal("the page did not give out both blocks again")
	}
	h.setFull(p)
	mustBeSound(t)
	h.drain()
	mustBeSound(t)
	if p.Remote != RemoteNotify {
		t.Fatalf("the remote word is %#x: the page does not ask for news", p.Remote)
	}
	freeRemote(other, p, blocks[2])
	h.drain()
	mustBeSound(t)
	if h.Cur[c] != p || p.pop() != blocks[2] {
		t.Fatal("the block freed from elsewhere did not come back")
	}
}
