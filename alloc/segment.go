package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// grow maps a new segment and returns it as one span of at least n slices, in no
// list. A segment is a quarter of what there is, within minGrowth and maxGrowth,
// so their number grows with the logarithm of the heap; when the kernel refuses
// that much, the span alone is tried. Precondition: poolLock is held.
func grow(n uintptr) *Page {
	slices := min(max(pool.segSlices/4, minGrowth), maxGrowth)
	if slices < n {
		slices = n
	}
	if p := segmentMap(slices); p != nil || slices == n {
		return p
	}
	return segmentMap(n)
}

func segmentMap(slices uintptr) *Page {
	seg := newSegment()
	if seg == nil {
		return nil
	}
	p := newDescriptor()
	if p == nil {
		dropSegment(seg)
		return nil
	}
	size := slices<<SliceShift + SliceSize - raw.Page
	addr := raw.Map(size)
	if addr == 0 {
		dropSegment(seg)
		freeDescriptor(p)
		return nil
	}
	start := raw.RoundUp(addr, SliceSize)
	if !mapReserve(start, slices<<SliceShift) {
		raw.Unmap(addr, size)
		dropSegment(seg)
		freeDescriptor(p)
		return nil
	}
	mapped(size)
	stats.Put1(logDebug, stats.EventSegment, start, slices<<SliceShift)
	seg.epoch = pool.epoch
	seg.start, seg.slices, seg.mapAddr, seg.mapSize = start, slices, addr, size
	seg.prev, seg.next = nil, pool.segments
	if pool.segments != nil {
		pool.segments.prev = seg
	}
	pool.segments = seg
	pool.segSlices += slices

	p.Owner = ownerNone
	p.Start, p.slices, p.segment = start, uint32(slices), seg
	p.state, p.Remote, p.blocks, p.Carved = spanClean, 0, 0, 0
	return p
}

func newSegment() *segment {
	if s := pool.freeSegs; s != nil {
		pool.freeSegs = s.next
		return s
	}
	return (*segment)(raw.Ptr(metaAlloc(segBytes)))
}

func dropSegment(s *segment) {
	s.next = pool.freeSegs
	pool.freeSegs = s
}

// segmentDetach takes a segment that is one clean free span out of the pool and
// reports what is to be unmapped. Precondition: poolLock is held; p is in its
// bin.
func segmentDetach(p *Page) (addr, size uintptr) {
	seg := p.segment
	pool.clean.remove(p)
	mapSet(p.Start, nil)
	mapSet(p.Start+p.bytes()-SliceSize, nil)
	if seg.prev != nil {
		seg.prev.next = seg.next
	} else {
		pool.segments = seg.next
	}
	if seg.next != nil {
		seg.next.prev = seg.prev
	}
	pool.segSlices -= seg.slices
	addr, size = seg.mapAddr, seg.mapSize
	freeDescriptor(p)
	dropSegment(seg)
	return addr, size
}
