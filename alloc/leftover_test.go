package alloc

import (
	"testing"

	"tieralloc/internal/raw"
)

// TestLeftover: what was not unmapped counts as mapped until it is, which is tried before addresses
// are taken.
func TestLeftover(t *testing.T) {
	newWorld(t)
	before := pool.count.mapped
	var at [leftoverSlots + 1]uintptr
	for i := range at {
		at[i] = raw.Map(3 * raw.Page)
		mapped(3 * raw.Page)
		leave(at[i], 3*raw.Page)
	}
	if pool.count.mapped != before+uint64(len(at)*3*raw.Page) {
		t.Errorf("%d bytes more are mapped", pool.count.mapped-before)
	}
	raw.Unmap(mapAligned(SliceSize, SliceSize), SliceSize)
	for i, addr := range at {
		if known := i < leftoverSlots; isMapped(addr, raw.Page) == known ||
			isMapped(addr+2*raw.Page, raw.Page) == known {
			t.Errorf("%d of %d: mapped is %v", i, leftoverSlots, !known)
		}
	}
	if pool.count.mapped != before+3*raw.Page || leftover != [leftoverSlots]uint64{} {
		t.Errorf("%d bytes more are mapped, %x are left over", pool.count.mapped-before, leftover)
	}
	raw.Unmap(at[leftoverSlots], 3*raw.Page)
	unmapFresh(raw.Map(raw.Page), raw.Page)
	if pool.count.mapped != before+3*raw.Page {
		t.Error("what was unmapped at once counts")
	}
}
