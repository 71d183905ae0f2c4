package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// A huge block, above sizeclass.MaxSize or aligned to more than a page can give, is a
// mapping of its own, aligned to a slice. Any thread may free it. Freed ones are
// kept a while for the next request (hugecache.go).

// hugeAlloc maps n bytes at a multiple of align (0 or a power of two). It returns
// the block's address, with ZeroBit when it reads as zero, or 0. how is the function (see howCall).
func hugeAlloc(h *Heap, n, align, how uintptr) uintptr {
	if n > maxRequest {
		return 0
	}
	h.Thread.tick()
	size := raw.RoundUp(n, SliceSize)
	home := placementOf(uintptr(h.Hint), homeOf(uintptr(h.Hint)))
	p, zero := h.hugeCached(size, align, home), uintptr(0)
	if p == nil && how&howCall != uintptr(stats.CallCalloc) { // which would have to clear it
		p = h.hugeCoalesced(size, align, home)
	}
	if p == nil {
		if p, zero = hugeMap(h, size, align); p == nil {
			return 0
		}
	}
	h.Thread.migrate()
	return p.Start | zero
}

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

// hugeMap makes a fresh mapping, charged to a tier; or takes a cached one of the tier that
// the charge went to. zero is ZeroBit for a fresh one.
func hugeMap(h *Heap, size, align uintptr) (p *Page, zero uintptr) {
	h.Thread.trimHighWater(size)
	if reservedPages && align <= huge2M { // else it may be more than such a page has
		if p, zero = hugeTry(h, size, align, true); p != nil {
			return p, zero
		}
	}
	p, zero = hugeTry(h, size, align, false)
	if p == nil && purgeAll(h.Thread) > 0 {
		p, zero = hugeTry(h, size, align, false)
	}
	return p, zero
}

// hugeTry charges and maps size bytes. With reserved set they are of the kernel's reserved
// huge pages, if those are wished for.
func hugeTry(h *Heap, size, align uintptr, reserved bool) (p *Page, zero uintptr) {
	page, asked := uintptr(0), size
	placement, size, first, ok := h.reserveHuge(size, reserved)
	if !ok {
		return nil, 0
	}
	if reserved {
		page = hugetlbSize(placement, asked)
	}
	align = max(align, hugePageSlices(placement)<<SliceShift, first.hugePageSlices()<<SliceShift)
	if first.bytes == 0 {
		if p = h.hugeCached(size, align, placement); p != nil { // charged already
			tiers.Release(tierOf(uint32(placement)), size)
			return p, 0
		}
	}
	atomic.AddUint64(&pool.count.hugeMisses, 1)
	start := uintptr(0)
	if page != 0 {
		start = mapHugetlb(placement, size, page)
	} else {
		start = mapHugeBlock(h.Thread.token, size, align, placement)
	}
	if start != 0 {
		first.settlePages(start, size, placement, page != 0)
		if placement != placementPin || !bound || pin(start, size) {
			p = hugeAdopt(h.Thread.token, start, size, uint32(placement), h.Hint,
				uint32(homeOf(uintptr(h.Hint))), first, false)
		}
		if p == nil {
			first.giveBack(h.Thread.token, start, size, placement)
		}
	}
	if p == nil {
		first.release(size, placement)
		return nil, 0
	}
	if page != 0 {
		p.hugetlb = 1
	}
	cutSplit(h.Thread.token, p, first.bytes)
	return p, ZeroBit
}

// mapAligned maps size bytes at a multiple of align, both multiples of a slice.
func mapAligned(size, align uintptr) uintptr { return takeAligned(size, align, false) }

// reserveAligned is mapAligned for addresses alone, which cannot be read or written: where memory
// is locked the kernel would fill them.
func reserveAligned(size, align uintptr) uintptr { return takeAligned(size, align, true) }

func takeAligned(size, align uintptr, reserve bool) uintptr {
	unmapLeftover()
	addr := mapOrReserve(size, reserve)
	if addr == 0 || addr&(align-1) == 0 {
		return addr
	}
	unmapFresh(addr, size)
	whole := size + align - raw.Page
	addr = mapOrReserve(whole, reserve)
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
		return raw.Reserve(n)
	}
	return raw.Map(n)
}

// hugeLink makes p a live huge block. Precondition: poolLock is held, and p has Start,
// Size and placement.
func hugeLink(p *Page, hint, home uint32) {
	p.Owner = OwnerHuge
	p.state = spanHuge
	p.Magic = 0
	p.Hint, p.home = hint, home
	p.moving = 0
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
	if !poolLock.Take(token) {
		// in a handler that interrupted the pool itself: the block is lost, the process is not
		return true
	}
	if p.state != spanHuge {
		poolLock.Release()
		return false
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
	)*raw.Page, p.unmigratedIn, p.hugetlb != 0
	moved := uintptr(p.done) << SliceShift
	dropExtents(p.next)
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
		retain(start, moved, unmigratedIn)
		retain(start+moved, size-moved, placement)
	}
}
