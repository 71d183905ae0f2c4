package alloc

// hugeSpanLeast is how much of a cached huge block is made pages of at a time, at least:
// slices.
const hugeSpanLeast = 1 << 20 >> SliceShift

// spanOfHuge puts the end of the cached huge block of a placement that was freed first, at least n
// slices of it, among the dirty spans, as a segment of its own: what has memory already is used
// before fresh memory is. It reports false where there is none. Precondition: poolLock is held.
func spanOfHuge(placement, n uintptr) bool {
	c := &pool.cache
	i := c.oldest(placement, n<<SliceShift)
	if i == hugeCacheSlots || hugePageSlices(placement) != 1 {
		return false
	}
	p := c.slot[i&(hugeCacheSlots-1)]
	size := max(n, hugeSpanLeast) << SliceShift
	if p.Size < size+hugeCacheLeast {
		size = p.Size
	}
	start := p.Start + p.Size - size
	if !mapReserve(start, size) {
		return false
	}
	seg := newSegment()
	if seg == nil {
		return false
	}
	q := p
	if size == p.Size {
		dropExtents(c.remove(i).extentsFrom(start))
	} else if q = newDescriptor(); q != nil {
		c.shrink(p, size)
	} else {
		dropSegment(seg)
		return false
	}
	since := p.freeSince()
	addSegment(seg, q, start, size>>SliceShift, uint32(placement))
	seg.mapAddr, seg.mapSize, seg.pages = start, size, uint32(p.pages)
	if p.pages != transparent {
		seg.keepOrdinary(uint32(placement))
	}
	q.setFreeSince(since)
	addDirty(q)
	return true
}
