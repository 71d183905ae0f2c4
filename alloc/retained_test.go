package alloc

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// unmapNot is an operation of simulations: for a while the kernel unmaps nothing.
func (s *sim) unmapNot() error {
	tight = uint32(s.pick(100))
	return nil
}

// TestRetained: what cannot be unmapped is of use for pages and for huge blocks, in one piece
// where it lies side by side, and nothing of it is lost on the way.
func TestRetained(t *testing.T) {
	newWorld(t)
	PurgeDelay = 0
	h := mustAcquire(t, 8)
	const size, count = 5 << 20, 6
	whole := mapAligned(count*size, SliceSize)
	if whole == 0 {
		t.Fatal("no memory")
	}
	for i := range uintptr(count) { // side by side
		if hugeAdopt(h.Thread.token, whole+i*size, size, 1, h.Hint, 1, firstPart{}, false) == nil ||
			!h.Thread.admit(1, size, false) {
			t.Fatal("no block")
		}
	}
	mustBeSound(t)
	had := pool.count.mapped
	tight = 100
	for _, i := range []uintptr{3, 1, 5, 2, 0, 4} {
		raw.Store(whole+i*size, 77)
		if why := Free(h, whole+i*size, HowAny, NoSize, 0); why != FreeOK {
			t.Fatal(why)
		}
		mustBeSound(t)
	}
	if s := pool.segments; s == nil || s.next != nil || s.start != whole ||
		s.slices != count*size>>SliceShift || pool.count.mapped != had {
		t.Fatalf("not one segment of all of it, or %d bytes mapped, not %d", pool.count.mapped, had)
	}
	if got := takeRetained(h.Thread.token, count*size+SliceSize, SliceSize, 1) +
		takeRetained(h.Thread.token, size, SliceSize, 0); got != 0 {
		t.Errorf("more than there is, or of another placement, is had at %#x", got)
	}
	at := takeRetained(h.Thread.token, 3*size, SliceSize, 1)
	if at != whole || raw.Load(at) != 0 || pool.count.mapped != had-3*size {
		t.Fatalf("had %#x, not %#x; it holds %d; %d bytes mapped", at, whole, raw.Load(at),
			pool.count.mapped)
	}
	mustBeSound(t)
	giveBack(h.Thread.token, at, 3*size, 1) // it can: the kernel is asked
	if pool.count.mapped != had-3*size {
		t.Error("what was unmapped counts as mapped")
	}
	b := Malloc(h, 1000, 0, 0)
	if b&^ZeroBit < whole+3*size || b >= whole+count*size {
		t.Errorf("a block at %#x is not cut from what was kept", b)
	}
	mustBeSound(t)
	if takeRetained(h.Thread.token, size, SliceSize, 1) != 0 {
		t.Error("a segment with a page in use was given away")
	}
}

// TestLost: what the kernel neither unmaps nor discards stays charged, and is in use no more.
func TestLost(t *testing.T) {
	newWorld(t)
	PurgeDelay = 0
	h := mustAcquire(t, 8)
	const size = 6 << 20
	h.unspread = true
	b := mustServe(t, h, size)
	locked := unsafe.Slice((*byte)(raw.Ptr(b)), raw.Page)
	if err := unix.Mlock(locked); err != nil { // it is not to be discarded then
		t.Skip(err)
	}
	tight = 1
	if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
		t.Fatal(why)
	}
	mustBeSound(t)
	r := filled(8)
	if normal := &tierFigures()[config.TierNormal]; normal.BytesCurrent != size ||
		r.BytesLive != 0 || inUse() != 0 {
		t.Errorf("%d bytes are charged, %d live, %d in use", normal.BytesCurrent, r.BytesLive,
			inUse())
	}
	scratch.collectCounts(&ranges{})
	recharge(&scratch.charged) // as in a child
	mustBeSound(t)
	raw.Unmap(b, size)
}
