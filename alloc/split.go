package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A huge block that is larger than the room left in a tier is split: its first part lies in that
// tier, and the rest in a slower one. It looks like a block in the middle of a migration
// (migrate.go), whose first done slices are in the tier that is unmigratedIn:
//
//	done > 0 ⇒ the first done slices lie in unmigratedIn, but for pages that would not
//	    move; the rest lies in placement
//	whole split ⇔ all of the first part is charged to unmigratedIn, and nothing else
//
// So it goes on to one tier when that has room, by promotion. A new block is split at a multiple
// of splitStep; one that grows beyond its tier may be split where it ended. Split blocks are not
// cached.
const splitStep = huge2M

// A firstPart is that of a block: so many bytes, in a placement. The zero value is none.
type firstPart struct {
	placement uint32
	bytes     uintptr
}

// slices are the first part in slices.
func (s firstPart) slices() uint32 { return uint32(s.bytes >> SliceShift) }

// hugePageSlices is that of its placement, in slices.
func (s firstPart) hugePageSlices() uintptr {
	if s.bytes == 0 {
		return 1
	}
	return hugePageSlices(uintptr(s.placement))
}

// release releases the charges of a block of size bytes that could not be allocated.
func (s firstPart) release(size uintptr, placement uintptr) {
	tiers.Release(tierOf(s.placement), s.bytes)
	tiers.Release(tierOf(uint32(placement)), size-s.bytes)
}

// settlePages is the function of that name for a block of size bytes.
func (s firstPart) settlePages(start, size, placement uintptr, hugetlb bool) {
	if s.bytes != 0 {
		settlePages(start, s.bytes, s.placement, hugetlb)
	}
	if s.bytes != size {
		settlePages(start+s.bytes, size-s.bytes, uint32(placement), hugetlb)
	}
}

// bindAgain is the function of that name for a block of size bytes.
func (s firstPart) bindAgain(start, size uintptr, placement uint32) {
	bindAgain(start, s.bytes, s.placement)
	bindAgain(start+s.bytes, size-s.bytes, placement)
}

// bindAgain gives the memory of a span in use the policies of where it lies.
func (p *Page) bindAgain(placement uint32) {
	if p.parts() != nil {
		p.bindParts()
		return
	}
	n := spanBytes(p)
	p.parted(n).bindAgain(p.spanStart(), n, placement)
}

// giveBack is the function of that name for a block of size bytes.
func (s firstPart) giveBack(token, start, size, placement uintptr) {
	if s.bytes != 0 {
		giveBack(token, start, s.bytes, s.placement)
	}
	giveBack(token, start+s.bytes, size-s.bytes, uint32(placement))
}

// blockElsewhere is how many of the first n bytes of a block of p lie in unmigratedIn.
func (p *Page) blockElsewhere(n uintptr) uintptr {
	if p.Owner != OwnerHuge {
		return 0
	}
	gap := uintptr(p.Gap)
	return p.elsewhere(gap+n) - p.elsewhere(gap)
}

// blockTiers returns how many of the first n bytes of a block of p lie in the tier that is returned
// with them. The others lie in the tier rest.
func (p *Page) blockTiers(n uintptr) (there, tier, rest uintptr) {
	return p.blockElsewhere(n), tierOf(p.unmigratedIn), tierOf(p.placement)
}

// parted returns how many of the first n bytes of a huge block lie in the tier of the first byte,
// and the placement of these. The block has no part map, and is in use or was just freed.
func (p *Page) parted(n uintptr) firstPart {
	if p.done == 0 {
		return firstPart{p.placement, n}
	}
	return firstPart{p.unmigratedIn, min(n, uintptr(p.done)<<SliceShift)}
}

// isSplit reports whether the first part of a huge block, or some of its parts, lie in a faster
// tier than the rest.
func (p *Page) isSplit() bool {
	return p.unmigratedIn < p.placement && (p.done != 0 || p.parts() != nil && p.unmigrated != 0)
}

// wholeSplit reports whether all that is charged to another tier than that of its placement is the
// first part of the block, or those that its part map has there.
func (p *Page) wholeSplit() bool {
	return uintptr(p.unmigrated)*raw.Page == p.elsewhere(p.Size)
}

// putSplit records that a huge block in use, all of it in its placement, is split from now on.
// Precondition: poolLock is held.
func (p *Page) putSplit(first firstPart, placement uint32) {
	putIn(p, placement, first.placement, uint32(first.bytes/raw.Page), first.slices())
}

// A growth is the charge for the bytes that a block grows by: the first to the tier that it is in,
// the rest, if any, to a slower one.
type growth struct {
	tier, bytes     uintptr
	placement, rest uintptr
}

func (g *growth) release() {
	tiers.Release(g.tier, g.bytes)
	tiers.Release(g.placement, g.rest)
}

// splitGrown splits the block of p, which is held and has grown, where that was charged to two
// tiers.
func splitGrown(token uintptr, p *Page, g *growth) {
	if g.rest == 0 || !poolLock.Take(token) {
		return
	}
	first := firstPart{p.placement, p.Size - g.rest}
	p.putSplit(first, uint32(g.placement))
	poolLock.Release()
	bindAgain(
		p.Start+first.bytes,
		g.rest,
		uint32(g.placement),
	) // it has grown out of the other placement's
	settlePages(p.Start+first.bytes, g.rest, uint32(g.placement), false)
	cutSplit(token, p, first.bytes)
}

// cutSplit notes that a block is two mappings to the kernel, the second behind its first bytes,
// because the two placements have different policies or advice. It reports whether the
// block can be resized.
// Precondition: the block is held, or nobody but the caller knows of it.
func cutSplit(token uintptr, p *Page, first uintptr) bool {
	if first == 0 {
		return true
	}
	most := extentsMost()
	if !poolLock.Take(token) {
		return false
	}
	ok := p.cutPart(p.Start+first, most)
	poolLock.Release()
	return ok
}

// cutPart makes a part of the block begin at an address, if it can be. Precondition: poolLock is
// held.
func (p *Page) cutPart(at, most uintptr) bool {
	q := p
	for q.next != nil && q.next.Start <= at {
		q = q.next
	}
	if q.Start == at {
		return true
	}
	if p.extents() >= most || pool.extents >= extentsAll {
		return false
	}
	part := newDescriptor()
	if part == nil {
		return false
	}
	part.Start = at
	part.next, q.next = q.next, part
	pool.extents++
	return true
}

// ending is what the last n bytes of a huge block are charged with.
func (p *Page) ending(n uintptr) (g growth) {
	if p.parts() != nil {
		g.tier, g.bytes = tierOf(p.unmigratedIn), p.elsewhere(p.Size)-p.elsewhere(p.Size-n)
		g.placement, g.rest = tierOf(p.placement), n-g.bytes
		return g
	}
	first := p.parted(p.Size - n)
	all := p.parted(p.Size)
	g.tier, g.bytes = tierOf(first.placement), all.bytes-first.bytes
	g.placement, g.rest = tierOf(p.placement), n-g.bytes
	return g
}
