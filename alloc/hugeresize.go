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
	if p.next != nil && size < p.Size {
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
	if at == 0 && p.next == nil {
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
	p.Start, p.rests = to, 0
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
	if p.next != nil {
		moved = moveExtents(token, p, to, size)
	} else {
		moved = raw.Move(from, p.Size, size, to) == 0
	}

	poolLock.Take(token)
	if !moved {
		mapSet(from, p)
		poolLock.Release()
		return 0
	}
	p.Start, p.rests = to, 0
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
