package alloc

import (
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// grow maps a new segment for a placement and returns it as one span of at least n slices, in no
// list. A segment is a quarter of what there is, within minGrowth and maxGrowth, so their number
// grows with the logarithm of the heap. The first ones are smaller, and double what there is: a
// small program maps little, and an address far from its blocks is no memory. When the kernel
// refuses that much, half of it is tried, down to the span alone. One of the kernel's huge pages,
// which are scarce and taken at once, is as large as asked for. The first segment has room behind
// it to grow in place: a mapping, its margins and its page tables cost a small program more than
// its blocks do. Precondition: poolLock is held.
func grow(placement, n uintptr) *Page {
	if placements[placement&(placementSlots-1)].spans > config.HugeThp &&
		n&(huge2M>>SliceShift-1) == 0 {
		if p := segmentMap(placement, n, true); p != nil {
			return p
		}
	}
	granularity := hugePageSlices(placement)
	slices := min(max(pool.segSlices/4, min(pool.segSlices, minGrowth), firstGrowth, 2*granularity),
		maxGrowth) &^ (granularity - 1)
	if p := extend(placement, n, slices); p != nil {
		return p
	}
	for ; slices > n && n != 0; slices = slices / 2 &^ (granularity - 1) {
		if addressLimit != 0 {
			slices -= slices % n // so that nothing is left over where all spans are of this length
		}
		if p := segmentMap(placement, slices, false); p != nil {
			return p
		}
	}
	p := segmentMap(placement, n, false)
	if p == nil && dropGuardPages(n<<SliceShift) {
		p = segmentMap(placement, n, false)
	}
	return p
}

// anySlice lets the first segment begin at any slice: its addresses are harder to guess.
var anySlice bool

func segmentMap(placement, slices uintptr, hugetlb bool) *Page {
	seg := newSegment()
	if seg == nil {
		return nil
	}
	p := newDescriptor()
	if p == nil {
		dropSegment(seg)
		return nil
	}
	auto := !hugetlb && wantsTransparent(placement, slices<<SliceShift) && !hugeDear() &&
		!sparse() && segmentTurn()
	align := hugePageSlices(placement) << SliceShift
	if auto {
		align = huge2M
	}
	room := uintptr(0)
	if pool.segments == nil && align == SliceSize && !hugetlb {
		room = firstRoom << SliceShift
		if !anySlice {
			align = huge2M // one page table serves its first 2 MiB
		}
	}
	addr, size, start := mapSegment(placement, slices<<SliceShift, room, align, hugetlb)
	if addr == 0 && room != 0 {
		room = 0
		addr, size, start = mapSegment(placement, slices<<SliceShift, 0, SliceSize, false)
	}
	// where addresses are few, it must leave some for the descriptors of its pages
	if addr != 0 && (!mapReserve(start, slices<<SliceShift) ||
		addressLimit != 0 && !pool.meta.mayCut(slices*pageBytes)) {
		unmapFresh(addr, size)
		addr = 0
	}
	if addr == 0 {
		dropSegment(seg)
		freeDescriptor(p)
		return nil
	}
	mapped(size)
	placePages(start, slices<<SliceShift, uint32(placement), hugetlb)
	stats.Put1(config.LogDebug, stats.EventSegment, start, slices<<SliceShift)
	addSegment(seg, p, start, slices, uint32(placement))
	seg.mapAddr, seg.mapSize = addr, size
	if room != 0 {
		seg.room, pool.growing = room, seg
	}
	switch {
	case hugetlb:
		seg.pages = reservedPool
	case auto && advise(start, slices<<SliceShift):
		seg.pages = transparent
	default:
		seg.keepOrdinary(uint32(placement))
	}
	return p
}

// addSegment adds a segment of slices at start, which is one clean span p, in no list yet.
// Precondition: poolLock is held.
func addSegment(seg *segment, p *Page, start, slices uintptr, placement uint32) {
	seg.epoch = pool.epoch
	seg.start, seg.slices, seg.room = start, slices, 0
	seg.pages, seg.split = systemPages, 0
	seg.prev, seg.next = nil, pool.segments
	if pool.segments != nil {
		pool.segments.prev = seg
	}
	pool.segments = seg
	pool.segSlices += slices
	p.beClean(seg, start, slices, placement)
}

// beClean makes p a clean span of a segment, in no list.
func (p *Page) beClean(seg *segment, start, slices uintptr, placement uint32) {
	p.Owner = ownerNone
	p.Start, p.slices, p.segment = start, uint32(slices), seg
	p.placement = placement
	p.state, p.Remote, p.blocks, p.Carved, p.unmigrated, p.moving = spanClean, 0, 0, 0, 0, 0
}

// extend adds most slices, or as many of them from least on as fit, to the segment that has room.
// It returns them as one clean span, in no list. It returns nil if they do not fit, need other
// pages or another placement than the memory before them, or the kernel refuses. Precondition:
// poolLock is held.
func extend(placement, least, most uintptr) *Page {
	seg := pool.growing
	if seg == nil || seg.room < least<<SliceShift || hugePageSlices(placement) != 1 {
		return nil
	}
	slices := max(min(most, seg.room>>SliceShift), least)
	n := slices << SliceShift
	if wantsTransparent(placement, n) && !hugeDear() && !sparse() {
		return nil
	}
	start := seg.start + seg.slices<<SliceShift
	if last := Lookup(start - SliceSize); last == nil || uintptr(last.placement) != placement {
		return nil
	}
	p := newDescriptor()
	if p == nil {
		return nil
	}
	if !mapReserve(start, n) || !raw.Open(start, n) {
		freeDescriptor(p)
		return nil
	}
	placePages(start, n, uint32(placement), false)
	stats.Put1(config.LogDebug, stats.EventSegment, start, n)
	seg.slices += slices
	seg.keepOrdinary(uint32(placement))
	seg.room -= n
	pool.segSlices += slices
	p.beClean(seg, start, slices, uint32(placement))
	return p
}

// dropReservations gives what is reserved before and behind all segments back to the kernel.
// Precondition: poolLock is held.
func dropReservations() {
	for s := pool.segments; s != nil; s = s.next {
		s.dropBehind()
		if n := s.start - s.mapAddr; n != 0 && raw.Unmap(s.mapAddr, n) {
			unmapped(n)
			s.mapAddr, s.mapSize = s.start, s.mapSize-n
		}
	}
}

// dropBehind gives what is reserved behind a segment back to the kernel.
func (s *segment) dropBehind() {
	end := s.start + s.slices<<SliceShift
	n := s.mapAddr + s.mapSize - end
	if n == 0 || !raw.Unmap(end, n) {
		return
	}
	unmapped(n)
	s.mapSize -= n
	s.room = 0
	if pool.growing == s {
		pool.growing = nil
	}
}

// dropReservationsLocking is dropReservations for a caller that does not hold poolLock. It reports
// whether there was anything to give back.
func dropReservationsLocking(token uintptr) bool {
	if !poolLock.Take(token) {
		return false
	}
	before := pool.count.mapped
	dropReservations()
	dropped := pool.count.mapped != before
	poolLock.Release()
	return dropped
}

// mapSegment maps n bytes at a multiple of align between margins, with room bytes more reserved
// behind them. It returns what was mapped, and where the n bytes start in it; addr is 0 when the
// kernel refuses. Without margins there is no room either.
func mapSegment(placement, n, room, align uintptr, hugetlb bool) (addr, size, start uintptr) {
	if hugetlb {
		addr = mapHugetlb(placement, n, huge2M)
		return addr, n, addr
	}
	if addressLimit == 0 {
		size = n + room + align - raw.Page + 2*margin
		if addr = raw.MapBarred(size); addr != 0 {
			start = raw.RoundUp(addr+margin, align)
			if raw.Open(start, n) {
				return addr, size, start
			}
			unmapFresh(addr, size)
		} else if room == 0 {
			limitAddresses(size)
		}
	}
	if room != 0 {
		return 0, 0, 0
	}
	addr = mapAligned(n, align)
	return addr, n, addr
}

// margin is the number of bytes reserved before and after a segment, so that an address that is far
// out of bounds hits no memory of this heap or of another mapping. Where the kernel refuses that,
// as it does to a process with too many mappings, the segment does without; and so it does under a
// limit of the address space, in which a margin counts as memory does.
const margin = 1 << 20

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

// segmentDetach takes a segment that is one free span out of the pool and returns
// the range to unmap. Precondition: poolLock is held; p is in no list.
func segmentDetach(p *Page) (addr, size uintptr) {
	seg := p.segment
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
	if seg == pool.growing {
		pool.growing = nil
	}
	addr, size = seg.mapAddr, seg.mapSize
	freeDescriptor(p)
	dropSegment(seg)
	return addr, size
}

// hugeSpanLeast is how much of a cached huge block is made pages of at a time, at least:
// slices.
const hugeSpanLeast = 1 << 20 >> SliceShift

// spanOfHuge makes the end of a placement's cached huge block that was freed first, at least n
// slices, a segment of one dirty span, so that resident memory is used before fresh memory. It
// reports false if there is no such block. Precondition: poolLock is held.
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
