package alloc

import "testing"

// TestPurgeablePart: while a part of a dirty span is purged, without the lock, both its
// neighbours find it, and not the span that it was cut from.
func TestPurgeablePart(t *testing.T) {
	newWorld(t)
	environment(t, "TA_HUGEPAGES=thp")
	h := mustAcquire(t, 8)
	granularity := uintptr(huge2M >> SliceShift)
	var spans []*Page
	for _, n := range []uintptr{granularity / 4, granularity - granularity/4, granularity / 2} {
		p := h.spanAlloc(n, 1)
		if p == nil || len(spans) > 0 &&
			p.Start != spans[len(spans)-1].Start+spans[len(spans)-1].bytes() {
			t.Fatalf("span %v does not follow the one before", p)
		}
		spans = append(spans, p)
	}
	for _, p := range spans[1:] {
		spanFree(8, p, 0)
	}
	p := spans[1]
	if !purgeable(p) || p.bytes() <= huge2M || p.Start%huge2M == 0 {
		t.Fatalf("span at %#x of %d bytes: the case is not made", p.Start, p.bytes())
	}
	removeFree(p, spanDirty)
	p = purgeablePart(p)
	last := p.Start + p.bytes() - SliceSize
	if p.Start%huge2M != 0 || p.bytes() < huge2M || Lookup(p.Start) != p || Lookup(last) != p {
		t.Errorf("part at %#x of %d bytes: the map has %p and %p at its ends, not %p", p.Start,
			p.bytes(), Lookup(p.Start), Lookup(last), p)
	}
}
