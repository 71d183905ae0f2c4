package alloc

import (
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A huge block, above sizeclass.MaxSize or aligned to more than a page can give, is a mapping of
// its own, aligned to a slice, or a span (hugealloc.go). Any thread may free it. Freed mappings are
// kept a while for the next request (hugecache.go).

// maxRequest is more than an address space holds and leaves room to round up.
const maxRequest = 1 << 46

// hugeGone gives n bytes at addr, which no block has any more, back to the kernel,
// and then their charge. The caller has added n to pool.leaving.
func hugeGone(token, addr, n uintptr, placement uint32) {
	gone := unmap(addr, n, false)
	ok := gone || raw.Discard(addr, n)
	if ok {
		tiers.Release(tierOf(placement), n)
	}
	if poolLock.Take(token) {
		pool.leaving -= n
		switch {
		case !ok:
			lose(placement, n)
		case gone:
			uncommit(n)
		default:
			uncommit(n)
			retain(addr, n, placement)
		}
		poolLock.Release()
	}
}

// hugeLink makes p a live huge block. Precondition: poolLock is held, and p has Start,
// Size and placement.
func hugeLink(p *Page, hint, home uint32) {
	p.Owner = OwnerHuge
	p.state = spanHuge
	p.Magic = 0
	p.setBlockOffset(0)
	p.Hint, p.home = hint, home
	p.moving = 0
	p.setParts(nil)
	ageAdd(p)
	pool.huge.add(p)
	p.reshare(&shares{})
	mapSet(p.Start, p)
}

// hugeUnlink ends p's life as a block. Precondition: poolLock is held.
func hugeUnlink(p *Page) {
	ageRemove(p)
	pool.huge.remove(p)
	p.unshare()
	p.Owner = ownerNone
	p.state = spanHugeCached
}

// hugeFree frees the block of p, or reports false when it is not one (any more).
func hugeFree(token uintptr, p *Page, now uint64) bool {
	if p.state == spanHugeAlone {
		p.Owner = ownerNone
		mapSet(p.Start, nil)
		base, whole := p.Start, p.Size
		if secure {
			base, whole = p.reservation()
		}
		if raw.Unmap(base, whole) {
			tiers.Release(tierOf(p.placement), p.Size)
		}
		return true
	}
	sampled := p.sampleHuge()
	if !poolLock.Take(token) {
		// in a handler that interrupted the pool itself: the block is lost, the process is not
		return true
	}
	if p.state == spanInUse && p.Owner == OwnerHuge {
		p.unshare()
		spanFreeLocked(token, p, now)
		poolLock.Release()
		return true
	}
	if p.state != spanHuge {
		poolLock.Release()
		return false
	}
	if sampled {
		p.pages = sampledPages
	}
	p.setFreeSince(now)
	if p.moving != 0 {
		p.state = spanHugeCached
		p.Owner = ownerNone
		p.moving |= movingFreed // its holder goes on from here
	} else {
		hugeFreed(token, p)
	}
	poolLock.Release()
	return true
}

// hugeUnmap gives the memory of a block that is in no list back to the kernel.
// poolLock is held, and let go meanwhile.
func hugeUnmap(token uintptr, p *Page) {
	mapSet(p.Start, nil)
	extentsUnmap(token, p)
}

// extentsUnmap is hugeUnmap for parts that the page map does not have: there may be no leaf for
// where they begin.
func extentsUnmap(token uintptr, p *Page) {
	start, size, placement := p.Start, p.Size, p.placement
	unmigrated, unmigratedIn, hugetlb := uintptr(
		p.unmigrated,
	)*raw.Page, p.unmigratedIn, p.reserved()
	moved := uintptr(p.done) << SliceShift
	dropExtents(p.nextExtent())
	freeDescriptor(p)
	pool.leaving += size
	poolLock.Release()
	gone := unmap(start, size, hugetlb)
	ok := gone || raw.Discard(start, size)
	if ok {
		tiers.Release(tierOf(placement), size-unmigrated)
		tiers.Release(tierOf(unmigratedIn), unmigrated)
	}
	poolLock.Take(token)
	pool.leaving -= size
	if ok {
		uncommit(size)
	} else {
		lose(placement, size-unmigrated)
		lose(unmigratedIn, unmigrated)
	}
	if ok && !gone && !hugetlb {
		if moved == 0 && unmigrated != 0 { // by parts
			bindAgain(start, size, placement)
		}
		retain(start, moved, unmigratedIn)
		retain(start+moved, size-moved, placement)
	}
}

// hugeAdopt makes a huge block of a mapping that is charged to the tier of its placement, but for
// its first part. With held set the caller holds it from the start: once it is on the list by age,
// others may move it.
func hugeAdopt(token, start, size uintptr, placement, hint, home uint32, first firstPart,
	held bool) *Page {
	if !poolLock.Take(token) {
		return emergencyHuge(start, size, placement)
	}
	p := newDescriptor()
	if p != nil && (!mapReserve(start, SliceSize) || held && ^pool.migrationPins.used == 0) {
		freeDescriptor(p)
		p = nil
	}
	if p != nil {
		mapped(size)
		commit(size)
		p.Start, p.Size, p.placement = start, size, placement
		p.unmigrated, p.unmigratedIn, p.done = uint32(
			first.bytes/raw.Page,
		), first.placement, first.slices()
		p.pages, p.role = systemPages, 0
		p.setNextExtent(nil)
		p.setReservation(start, size) // no guards yet
		hugeLink(p, hint, home)
		if held {
			pinMigrationLocked(token, p)
		}
	}
	poolLock.Release()
	return p
}

// hugeReturn undoes hugeAdopt: the contents go back to address to. Precondition: q is held.
func hugeReturn(token uintptr, q *Page, to uintptr) {
	start, size, placement := q.Start, q.Size, q.placement
	poolLock.Take(token)
	unpinMigrationLocked(token, q)
	hugeUnlink(q)
	mapSet(start, nil)
	uncommit(size)
	unmapped(size)
	freeDescriptor(q)
	poolLock.Release()
	copyBack(token, to, start, size, placement)
}

// emergencyHuge makes a huge block of a fresh mapping, charged already. It is not
// counted.
func emergencyHuge(start, size uintptr, placement uint32) *Page {
	own := mapAligned(SliceSize, SliceSize)
	if own == 0 {
		return nil
	}
	if !mapReserve(start, SliceSize) {
		raw.Unmap(own, SliceSize)
		return nil
	}
	p := (*Page)(raw.Ptr(own))
	p.Start, p.Size = start, size
	p.Owner = OwnerHuge
	p.state = spanHugeAlone
	p.placement = placement
	mapSet(start, p)
	return p
}

// hugeLive is how many bytes huge blocks in use have, by a peek without the lock.
func hugeLive() (bytes uint64) {
	for i := range pool.count.huge {
		k := &pool.count.huge[i]
		bytes += k.allocBytes - k.freeBytes
	}
	return bytes
}

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

// placePages is the function of that name for a block of size bytes.
func (s firstPart) placePages(start, size, placement uintptr, hugetlb bool) {
	if s.bytes != 0 {
		placePages(start, s.bytes, s.placement, hugetlb)
	}
	if s.bytes != size {
		placePages(start+s.bytes, size-s.bytes, uint32(placement), hugetlb)
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

// A cached huge block that serves calloc must be cleared. Where a program has touched few of its
// pages, clearing it would make all of them resident, and take longer than the faults for those
// that the program touches. Such a block gives its pages back instead.

// sparseShare is the part of a sparse block's pages that is resident, at most: discarding a page
// and faulting it in again costs several times as much as clearing it.
const sparseShare = 4

// zeroSparse makes the huge block of p, which the caller has taken from the cache, read as zero by
// discarding its pages, if few of them are resident. It reports whether it did.
func (p *Page) zeroSparse(token uintptr) bool {
	if !roomy(autoHeap) || filtered() || !pinMigration(token, p) {
		return false
	}
	ok := p.hardlyResident() && raw.Discard(p.Start, p.Size)
	unpinMigration(token, p)
	return ok
}

// hardlyResident reports whether few pages of a huge block are resident. It stops looking where too
// many are. It does not see pages that were swapped out.
func (p *Page) hardlyResident() bool {
	const n = 512 // memory pages looked at by one call
	var resident [n]byte
	most := p.Size / raw.Page / sparseShare
	for at, end := p.Start, p.Start+p.Size; at < end; at += n * raw.Page {
		looked := min((end-at)/raw.Page, n)
		if raw.Resident(at, looked, &resident[0]) != 0 {
			return false
		}
		for i := range looked {
			most -= uintptr(resident[i&(n-1)] & 1)
		}
		if int(most) < 0 {
			return false
		}
	}
	return true
}
