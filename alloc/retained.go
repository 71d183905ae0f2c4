package alloc

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// The kernel refuses to unmap the middle of a mapping when the process has as many of them as it
// may have. Then it most likely maps nothing either, so the memory must stay usable.
// Its memory is discarded, and it is kept as a segment that is one clean span: pages are cut from
// it, and huge blocks when the kernel maps no more. The kernel would not map again the memory that
// it can still unmap, at the end of a mapping: so after a refusal it is asked only every tightSteps
// times.
const tightSteps = 64

var tight uint32 // how often it is not asked

// unmap unmaps n bytes at addr, or reports false. With ask set the kernel is asked in any case:
// huge pages of its pool are few, and cannot be kept for something else.
func unmap(addr, n uintptr, ask bool) bool {
	if left := atomic.LoadUint32(&tight); left > 0 && !ask {
		atomic.CompareAndSwapUint32(&tight, left, left-1)
		return false
	}
	if !raw.Unmap(addr, n) {
		atomic.StoreUint32(&tight, tightSteps)
		return false
	}
	unmapped(n)
	return true
}

// retain keeps n bytes at start that read as zero and are in no span, and merges them with retained
// neighbours. If there is no memory to note them, they are lost. Precondition: poolLock is held.
func retain(start, n uintptr, placement uint32) {
	granularity := hugePageSlices(uintptr(placement)) << SliceShift
	if n == 0 || start&(granularity-1) != 0 || n&(granularity-1) != 0 || !mapReserve(start, n) {
		return
	}
	if p := Lookup(start - SliceSize); isRetained(p, placement) {
		start, n = p.Start, n+p.bytes()
		unretain(p)
	}
	if p := Lookup(start + n); isRetained(p, placement) {
		n += p.bytes()
		unretain(p)
	}
	seg := newSegment()
	if seg == nil {
		return
	}
	p := newDescriptor()
	if p == nil {
		dropSegment(seg)
		return
	}
	addSegment(seg, p, start, n>>SliceShift, placement)
	seg.mapAddr, seg.mapSize = start, n
	if placements[placement&(placementSlots-1)].spans == config.HugeAuto {
		seg.pages = mixed // a huge block may have asked for huge pages
		seg.dropLeft()
		if seg.forbidHuge() {
			seg.pages = systemPages
		}
	}
	insertFree(p, spanClean)
}

// isRetained reports whether p is a segment that retain has made, no part of it in use.
// Precondition: poolLock is held.
func isRetained(p *Page, placement uint32) bool {
	if p == nil || p.state != spanClean || p.placement != placement || p.segment == nil {
		return false
	}
	s := p.segment
	return p.Start == s.start && uintptr(p.slices) == s.slices && s.mapAddr == s.start &&
		s.mapSize == p.bytes() &&
		!s.reserved() && s.epoch == pool.epoch
}

// unretain takes the segment that p, clean and in its bin, is all of out of the pool.
func unretain(p *Page) {
	removeFree(p, spanClean)
	segmentDetach(p)
}

// giveBack unmaps n bytes at start that nobody has seen, or keeps them.
func giveBack(token, start, n uintptr, placement uint32) {
	if raw.Unmap(start, n) {
		return
	}
	mapped(n)
	if raw.Discard(start, n) && poolLock.Take(token) {
		retain(start, n, placement)
		poolLock.Release()
	} else {
		leave(start, n)
	}
}

// giveBackBarred is giveBack for memory that may be inaccessible.
func giveBackBarred(token, start, n uintptr, placement uint32) {
	switch {
	case raw.Unmap(start, n):
	case raw.Allow(start, n):
		giveBack(token, start, n, placement)
	default:
		mapped(n)
		leave(start, n)
	}
}

// mapAligned maps size bytes at a multiple of align, both multiples of a slice.
func mapAligned(size, align uintptr) uintptr { return takeAligned(size, align, false) }

// reserveAligned is mapAligned for addresses alone, which cannot be read or written: where memory
// is locked the kernel would fill them.
func reserveAligned(size, align uintptr) uintptr { return takeAligned(size, align, true) }

func takeAligned(size, align uintptr, reserve bool) uintptr {
	unmapLeftover()
	// The kernel maps next to what it mapped last, so only a multiple of align is likely to lie at
	// one. A limit of the address space may have no room for more.
	if size&(align-1) == 0 || addressLimit != 0 {
		addr := mapOrReserve(size, reserve)
		if addr == 0 || addr&(align-1) == 0 {
			return addr
		}
		unmapFresh(addr, size)
	}
	whole := size + align - raw.Page
	addr := mapOrReserve(whole, reserve)
	if addr == 0 {
		return 0
	}
	start := raw.RoundUp(addr, align)
	if start > addr {
		unmapFresh(addr, start-addr)
	}
	if end := addr + whole; end > start+size {
		unmapFresh(start+size, end-start-size)
	}
	return start
}

func mapOrReserve(n uintptr, reserve bool) uintptr {
	if reserve {
		return raw.MapBarred(n)
	}
	return raw.Map(n)
}

// mapHugeBlock maps size bytes for a huge block, or takes them from what was kept: at once while
// mappings are short, or ever more would be kept.
func mapHugeBlock(token, size, align, placement uintptr) (start uintptr) {
	if atomic.LoadUint32(&tight) != 0 {
		if start = takeRetained(token, size, align, placement); start != 0 {
			return start
		}
	}
	start = mapAligned(size, max(align, huge2M)) // for huge pages, and for coalesce.go
	if start == 0 {
		start = mapAligned(size, align)
	}
	if start == 0 && dropReservationsLocking(token) {
		start = mapAligned(size, align)
	}
	if start != 0 && !mapReserve(start, SliceSize) {
		giveBack(token, start, size, uint32(placement))
		start = 0
	}
	if start == 0 {
		start = takeRetained(token, size, align, placement)
	}
	return start
}

// takeRetained takes size bytes at a multiple of align from the smallest segment of a placement
// that is one clean span and will do. It returns 0 where there is none. They count as not mapped,
// like those that the kernel maps afresh.
func takeRetained(token, size, align, placement uintptr) uintptr {
	if !poolLock.Take(token) {
		return 0
	}
	best := (*Page)(nil)
	for s := pool.segments; s != nil; s = s.next {
		p := Lookup(s.start)
		if p == nil || p.state != spanClean || uintptr(p.slices) != s.slices ||
			uintptr(p.placement) != placement {
			continue
		}
		if p.bytes() >= size && p.Start&(align-1) == 0 && !s.reserved() &&
			(best == nil || p.slices < best.slices) {
			best = p
		}
	}
	start := uintptr(0)
	if best != nil {
		n := best.bytes()
		start = best.Start
		unretain(best)
		retain(start+size, n-size, uint32(placement))
		unmapped(size)
	}
	poolLock.Release()
	return start
}

// copyBack brings n bytes back to where they were moved from, which reads as zero, and unmaps them
// where they are. It is no matter of speed: the kernel has just run out of memory. It is not asked
// to move them either, for when it refuses that it may have unmapped the target before.
func copyBack(token, to, from, n uintptr, placement uint32) {
	for i := uintptr(0); i < n; i += 8 {
		if word := raw.Load(from + i); word != 0 { // else there may be no memory at either
			raw.Store(to+i, word)
		}
	}
	giveBack(token, from, n, placement)
}

// A fresh mapping that the kernel refuses to unmap is left over: it counts as mapped, and is
// unmapped before the next addresses are taken. No lock is needed for that. A mapping for which
// there is no entry stays mapped, and counted.
//
//	leftover[i] = first memory page << leftoverBits | memory pages, or 0
const (
	leftoverSlots = 16
	leftoverBits  = 28 // so up to a TiB
)

var leftover [leftoverSlots]uint64 // atomic

// unmapFresh unmaps n bytes at addr that are not counted as mapped, now or later. What is in them
// goes in any case.
func unmapFresh(addr, n uintptr) {
	if !raw.Unmap(addr, n) {
		raw.Discard(addr, n)
		mapped(n)
		leave(addr, n)
	}
}

// unmapTarget unmaps what a refused move has left of the n bytes at its target: the last kept ones.
func unmapTarget(to, n, kept uintptr) {
	if kept != 0 {
		unmapFresh(to+n-kept, kept)
	}
}

// leave notes a leftover mapping.
func leave(addr, n uintptr) {
	entry := uint64(addr>>raw.PageShift<<leftoverBits | n>>raw.PageShift)
	for i := 0; i < leftoverSlots && n>>raw.PageShift < 1<<leftoverBits; i++ {
		if atomic.CompareAndSwapUint64(&leftover[i], 0, entry) {
			return
		}
	}
}

// unmapLeftover tries again to unmap the leftover mappings.
func unmapLeftover() {
	for i := range leftover {
		entry := atomic.LoadUint64(&leftover[i])
		if entry == 0 || !atomic.CompareAndSwapUint64(&leftover[i], entry, 0) {
			continue
		}
		addr, n := uintptr(entry)>>leftoverBits<<raw.PageShift,
			uintptr(entry)&(1<<leftoverBits-1)<<raw.PageShift
		if !raw.Unmap(addr, n) {
			leave(addr, n)
			return
		}
		unmapped(n)
	}
}
