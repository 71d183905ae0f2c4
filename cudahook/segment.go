package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A segment is memory that the driver has allocated by one call, or, if it is expandable, by
// several (reservation.go).
//
//	bytes = Σ bytes of its blocks
//	it is on the heap's list of idle ones ⇔ it is one block, in bins, not expandable, and of no
//	private pool: a graph that is launched again works with what its pool has free, too
type segment struct {
	raw.OffHeap
	address uint64
	bytes   uint64
	kind    uint64
	first   *block // nil: memory is about to be mapped there, or returned
	last    *block
	pool    *pool
	managed uint64 // 1: managed memory, preferred on the device or, if spilled, on the host

	nonReusable uint64       // 1: it is unmapped as soon as it is idle, and not reused
	asleep      uint64       // 1: its memory is unmapped (sleep.go)
	host        uint64       // memory of the host for its contents; 0: none
	kept        uint64       // 1: its contents are there
	addresses   *reservation // where it lies, if it is expandable; else nil

	idlePrev, next *segment // idle segments: non-reusable ones, then the longest idle first
	since          uint64   // when it became idle, in nanoseconds; 0: not known yet
	idle           uint64
}

const (
	segmentAt    = unsafe.Sizeof(uintptr(0))
	firstIndexed = 512
)

// An index holds the segments in the order of their addresses.
//
//	n <= capacity
type index struct {
	base     uintptr
	n        uintptr
	capacity uintptr
}

func (x *index) at(i uintptr) *segment {
	return (*segment)(raw.Ptr(raw.Load(x.base +
		i*segmentAt)))
}

// below returns the number of segments that begin at or below an address.
func (x *index) below(address uint64) uintptr {
	lo, hi := uintptr(0), x.n
	for lo < hi {
		mid := (lo + hi) / 2
		if x.at(mid).address <= address {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// find returns the segment that an address lies in, or nil.
func (x *index) find(address uint64) *segment {
	i := x.below(address)
	if i == 0 {
		return nil
	}
	s := x.at(i - 1)
	if address-s.address >= s.bytes {
		return nil
	}
	return s
}

// add enters a segment, or reports false when there is no memory.
func (x *index) add(s *segment) bool {
	if x.n == x.capacity {
		capacity := max(x.capacity*2, firstIndexed)
		base := raw.Map(capacity * segmentAt)
		if base == 0 {
			return false
		}
		for i := uintptr(0); i < x.n; i++ {
			raw.Store(base+i*segmentAt, raw.Load(x.base+i*segmentAt))
		}
		if x.base != 0 {
			raw.Unmap(x.base, x.capacity*segmentAt)
		}
		x.base, x.capacity = base, capacity
	}
	at := x.below(s.address)
	for i := x.n; i > at; i-- {
		raw.Store(x.base+i*segmentAt, raw.Load(x.base+(i-1)*segmentAt))
	}
	raw.Store(x.base+at*segmentAt, uintptr(unsafe.Pointer(s)))
	x.n++
	return true
}

// remove takes a segment out. Precondition: it is there.
func (x *index) remove(s *segment) {
	i := x.below(s.address) - 1
	for x.n--; i < x.n; i++ {
		raw.Store(x.base+i*segmentAt, raw.Load(x.base+(i+1)*segmentAt))
	}
}

func (x *index) clear() {
	if x.base != 0 {
		raw.Unmap(x.base, x.capacity*segmentAt)
	}
	x.base, x.n, x.capacity = 0, 0, 0
}

// setIdle appends a segment that has become one free block to the idle segments. A non-reusable one
// goes to their front.
func (h *heap) setIdle(s *segment) {
	s.idle, s.since = 1, h.sinceNow()
	h.count.idles++
	if s.nonReusable != 0 {
		s.idlePrev, s.next = nil, h.idleFirst
		if h.idleFirst != nil {
			h.idleFirst.idlePrev = s
		} else {
			h.idleLast = s
		}
		h.idleFirst = s
		return
	}
	s.next, s.idlePrev = nil, h.idleLast
	if h.idleLast != nil {
		h.idleLast.next = s
	} else {
		h.idleFirst = s
	}
	h.idleLast = s
}

func (h *heap) unsetIdle(s *segment) {
	if s.idle == 0 {
		return
	}
	if s.next != nil {
		s.next.idlePrev = s.idlePrev
	} else {
		h.idleLast = s.idlePrev
	}
	if s.idlePrev != nil {
		s.idlePrev.next = s.next
	} else {
		h.idleFirst = s.next
	}
	s.idle = 0
	h.count.idles--
}

// sinceNow returns the time, or 0 if it is not known yet.
func (h *heap) sinceNow() uint64 {
	if h.blind {
		return 0
	}
	return h.now
}

// segmentBytes returns the size of a new segment for a block of n bytes. With tight it is as small
// as possible.
func (d *device) segmentBytes(kind, n uint64, tight bool) uint64 {
	switch {
	case kind == kindSmall:
		return smallBytes
	case kind == kindLarge && n < ownMin && !tight:
		return max(d.segment, mapRounded(n))
	}
	return mapRounded(n)
}

// adopt makes memory that the driver has mapped a segment, which is one free block of stream cache
// t. It reports false if there is no memory for the entries in table and index. Precondition: s has
// its kind, pool, size and, in first, a block's descriptor.
func (h *heap) adopt(s *segment, address uint64, t *streamCache) bool {
	b := s.first
	s.address = address
	b.address, b.bytes, b.segment, b.since = address, s.bytes, s, h.sinceNow()
	if !h.table.add(b) {
		return false
	}
	if !h.index.add(s) {
		h.table.remove(b)
		return false
	}
	h.count.segments++
	b.number = h.clock
	h.give(b, t)
	return true
}

// forget drops a segment and its one block. Precondition: the block is not in bins.
func (h *heap) forget(s *segment) {
	b := s.first
	h.table.remove(b)
	h.index.remove(s)
	h.count.segments--
	h.dropBlock(b)
	h.dropSegment(s)
}

// blockAt returns the block that an address lies in, or nil.
func (h *heap) blockAt(address uint64) *block {
	if b := h.table.find(address); b != nil {
		return b
	}
	s := h.index.find(address)
	if s == nil {
		return nil
	}
	if h.near == nil {
		h.near = (*nearBlocks)(raw.Ptr(h.arena.take(unsafe.Sizeof(nearBlocks{}))))
	}
	b := (*block)(nil)
	place := address / mapUnit % nearPlaces
	if h.near != nil {
		b = h.near.at[place]
	}
	if b == nil || b.state == stateGone || b.segment != s || b.address > address {
		b = s.first
	}
	for b != nil && address-b.address >= b.bytes {
		b = b.after
	}
	if b != nil && h.near != nil {
		h.near.at[place] = b
	}
	return b
}

// nearBlocks are, for each 2 MiB of addresses, by a hash, a block that blockAt found there. It
// begins with that one, if it still is a block of the segment and not behind the address, because
// an expandable segment has thousands of blocks.
type nearBlocks struct {
	raw.OffHeap
	at [nearPlaces]*block
}

const nearPlaces = 256
