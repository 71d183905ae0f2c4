package alloc

import (
	"syscall"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// resizeInPlace has the kernel make the block of p, which is held, size bytes long where it is, or
// returns an errno.
func (p *Page) resizeInPlace(size uintptr) (errno uintptr) {
	end := p.Start + p.Size
	if p.nextExtent() != nil && size < p.Size {
		if !raw.Unmap(p.Start+size, p.Size-size) {
			errno = uintptr(syscall.ENOMEM)
		}
		return errno
	}
	last := p.lastExtent()
	_, errno = raw.Remap(last.Start, end-last.Start, size-(last.Start-p.Start), 0, 0)
	return errno
}

// hugeSizedBack undoes a growth.
func hugeSizedBack(token uintptr, p *Page, size uintptr) {
	grown := p.Size - size
	if poolLock.Take(token) {
		hugeSized(p, size)
		poolLock.Release()
	}
	tiers.Release(tierOf(p.placement), grown)
}

// hugeMoved moves the block of p, which is held, to where it can be size bytes long. It returns the
// address, or 0 when the kernel refuses.
func hugeMoved(token uintptr, p *Page, size uintptr) (at uintptr) {
	if to := reserveRoomy(token, size, p.placement); to != 0 {
		at = hugeMove(token, p, size, to)
	}
	if at == 0 && p.nextExtent() == nil {
		at = hugeMoveAnywhere(token, p, size)
	}
	return at
}

// reserveRoomy reserves size bytes with free addresses behind them: a block that has grown once
// will probably grow again, and then in place. The start suits huge pages, so that the kernel moves
// whole page tables. So does the length, because the kernel then chooses such a start itself.
func reserveRoomy(token, size uintptr, placement uint32) uintptr {
	room := raw.RoundUp(size+size/2, huge2M) - size
	to := reserveAligned(size+room, huge2M)
	if to == 0 {
		return reserveAligned(size, SliceSize)
	}
	giveBackBarred(token, to+size, room, placement)
	return to
}

// hugeMoveAnywhere has the kernel choose where the block of p, one mapping, becomes size bytes
// long. So no more addresses than those are needed, where a limit leaves few: to reserve them takes
// as many as the block has in addition. The block may begin anywhere in a slice then, and is not
// cached when it is freed.
func hugeMoveAnywhere(token uintptr, p *Page, size uintptr) uintptr {
	leaf := raw.Map(leafBytes) // which one is needed is known too late to do without
	if leaf == 0 {
		return 0
	}
	if !poolLock.Take(token) {
		unmapFresh(leaf, leafBytes)
		return 0
	}
	from := p.Start
	mapSet(from, nil)
	poolLock.Release()

	to, errno := raw.Remap(from, p.Size, size, raw.MremapMayMove, 0)

	poolLock.Take(token)
	if errno != 0 {
		to = from
	}
	if !mapInstall(to>>RootShift, leaf) {
		unmapFresh(leaf, leafBytes)
	}
	p.Start, p.role = to, 0
	mapSet(to, p)
	if errno == 0 {
		hugeSized(p, size)
	}
	poolLock.Release()
	if errno != 0 {
		return 0
	}
	return to
}

// hugeMove moves the block of p to the size bytes reserved at to. The map forgets
// the old address before the kernel can give it to another thread.
func hugeMove(token uintptr, p *Page, size, to uintptr) uintptr {
	if !poolLock.Take(token) {
		unmapFresh(to, size)
		return 0
	}
	if !mapReserve(to, SliceSize) {
		poolLock.Release()
		unmapFresh(to, size)
		return 0
	}
	from := p.Start
	mapSet(from, nil)
	poolLock.Release()

	moved := true
	if p.nextExtent() != nil {
		moved = moveExtents(token, p, to, size)
	} else {
		errno, kept := raw.Move(from, p.Size, size, to)
		unmapTarget(to, size, kept)
		moved = errno == 0
	}

	poolLock.Take(token)
	if !moved {
		mapSet(from, p)
		poolLock.Release()
		return 0
	}
	p.Start, p.role = to, 0
	mapSet(to, p)
	hugeSized(p, size)
	poolLock.Release()
	return to
}

// hugeSized counts a new size. Precondition: poolLock is held.
func hugeSized(p *Page, size uintptr) {
	k := &pool.count.huge
	if size > p.Size {
		k[tierOf(p.placement)].alloc(0, uint64(size-p.Size))
		mapped(size - p.Size)
		commit(size - p.Size)
		p.Size = size
		return
	}
	g := p.ending(p.Size - size)
	k[g.tier&(placementSlots-1)].free(0, uint64(g.bytes))
	k[g.placement&(placementSlots-1)].free(0, uint64(g.rest))
	unmapped(p.Size - size)
	uncommit(p.Size - size)
	dropExtents(p.extentsFrom(p.Start + size))
	p.Size = size
	p.trimParts()
	if p.done != 0 && p.parted(size).bytes == size { // only its first part is left
		p.done = uint32(size >> SliceShift)
		putIn(p, p.unmigratedIn, p.placement, 0, 0)
	}
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
	placePages(p.Start+first.bytes, g.rest, uint32(g.placement), false)
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
	for q.nextExtent() != nil && q.nextExtent().Start <= at {
		q = q.nextExtent()
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
	part.setNextExtent(q.nextExtent())
	q.setNextExtent(part)
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
