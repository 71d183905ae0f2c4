package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// TestMoveAnywhere: where the kernel chooses the address a block may begin within a slice. It is
// resized and freed as any other then, but not cached; what lies before it in the slice is
// nobody's.
func TestMoveAnywhere(t *testing.T) {
	h := hugeWorld(t)
	const size, area = 300*mib + SliceSize, 1000 * mib
	b := get(t, h, 6*mib)
	p := Lookup(b)
	raw.Store(b+mib, 42)
	if !h.Thread.admit(1, size-6*mib, false) || !pinMigration(8, p) {
		t.Fatal("no room")
	}
	// the kernel goes downwards: what is unmapped of it is the highest that is large enough
	plug := raw.MapBarred(area)
	raw.Unmap(plug, area/2+3*raw.Page)
	start := hugeMoveAnywhere(h.Thread.token, p, size)
	raw.Unmap(plug+area/2+3*raw.Page, area/2-3*raw.Page)
	unpinMigration(8, p)
	sound(t)
	if start == 0 || start == b || p.Start != start || p.Size != size ||
		raw.Load(start+mib) != 42 || Lookup(start) != p || Lookup(b) != nil {
		t.Fatalf("%d bytes at %#x, from %#x", p.Size, start, b)
	}
	if start&(SliceSize-1) == 0 {
		t.Skip("the kernel has chosen a multiple of a slice")
	}
	if Check(start) != FreeOK || Check(start-8) != FreeForeign || Check(start+8) != FreeInside {
		t.Errorf("the block is %d, before it %d, in it %d", Check(start), Check(start-8),
			Check(start+8))
	}
	if b = Resize(h, start, size-2*mib); b != start {
		t.Errorf("shrunk from %#x to %#x", start, b)
	}
	sound(t)
	drop(h, b)
	sound(t)
	if pool.cache.n != 0 || pool.count.committed != 0 || isMapped(start, raw.Page) {
		t.Errorf("%d blocks are cached, %d bytes committed", pool.cache.n, pool.count.committed)
	}
}
