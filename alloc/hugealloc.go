package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// Allocation and resizing of huge blocks for a thread heap: from the page heap's cache, or by a new
// mapping, which is charged first.

// hugeAlloc maps n bytes at a multiple of align (0 or a power of two). It returns
// the block's address, with ZeroBit when it reads as zero, or 0. how is the function (see howCall).
//
// Blocks begin at different cache lines of a memory page, as pages do (sizeclass.Spread). One that
// is aligned at huge pages and ends shortly before a multiple is mapped up to it: a program may ask
// for a huge page there by madvise (x264 does), which the kernel can only give where all is mapped.
func hugeAlloc(h *Heap, n, align, how uintptr) uintptr {
	if n > maxRequest {
		return 0
	}
	h.Thread.tick()
	home := placementOf(uintptr(h.Hint), homeOf(uintptr(h.Hint)))
	if to := raw.RoundUp(n, huge2M); align >= huge2M && to-n <= huge2M/8 && h.mayWaste(home) {
		n = to
	}
	size, lead := raw.RoundUp(n, SliceSize), uintptr(0)
	longer := raw.RoundUp(n+sizeclass.LeadInMost, SliceSize)
	if align <= sizeclass.Line && hugePageSlices(home) == 1 && h.mayWaste(home) &&
		(longer == size || h.mayLengthen()) {
		size = longer
		lead = sizeclass.LeadIn(uintptr(atomic.AddUint32(&pool.leadIns, 1)), sizeclass.LeadInMost)
	}
	inSpan := n <= hugeSpanMost && align <= SliceSize && h.hugeInSpan(home)
	if inSpan && hugeLive() <= hugeSpansMost {
		if p := h.spanAlloc(size>>SliceShift, 1); p != nil {
			return h.hugeSpan(p, lead)
		}
	}
	p, zero := hugeCached(h.Thread.token, h.Hint, size, align, home), uintptr(0)
	calloc := how&howCall == uintptr(stats.CallCalloc)
	if p != nil && calloc && p.zeroSparse(h.Thread.token) {
		zero = ZeroBit
	}
	if p == nil && !calloc { // it would have to clear the block
		if inSpan {
			if p := spanCached(h.Thread.token, home, size>>SliceShift, h.Hint); p != nil {
				return h.hugeSpan(p, lead)
			}
		}
		p = h.hugeCoalesced(size, align, home)
	}
	if p == nil {
		if p, zero = hugeMap(h, size, align); p == nil {
			return 0
		}
		if zero != 0 && !calloc {
			p.adviseHuge()
		}
	}
	h.Thread.migrate()
	p.setBlockOffset(lead)
	return p.block() | zero
}

// A huge block of up to hugeSpanMost bytes is a span of the pool, so that it shares memory with
// large pages: a buffer whose size changes would need both otherwise. It moves as a whole, so it is
// a mapping where memory migrates, and near a cap, where it may have to be split. Where there are
// many, mappings serve better, because cached ones can be coalesced; then only spans serve that
// have memory.
//
//	a huge block in a span: Owner == OwnerHuge, state == spanInUse, blocks == 1
const (
	hugeSpanMost  = 16 << 20
	hugeSpansMost = 32 << 20 // bytes of huge blocks in use
)

// hugeInSpan reports whether such a block may be in a span of a placement.
func (h *Heap) hugeInSpan(home uintptr) bool {
	return home != placementPin && h.mayWaste(home) && hugePageSlices(home) == 1 &&
		!Watching && !tiers.Migrating() && !poolLock.Refuses(h.Thread.token)
}

// hugeSpan makes a span a huge block that begins at lead, and returns its address, with ZeroBit if
// it reads as zero.
func (h *Heap) hugeSpan(p *Page, lead uintptr) (b uintptr) {
	if p.zero != 0 {
		b = ZeroBit
	}
	p.clearNote()
	p.Hint, p.Class, p.Magic = h.Hint, 0, 0
	p.Start, p.Size = p.Start+lead, p.bytes()-lead
	p.setBlockOffset(0)
	p.blocks = 1
	p.Free, p.Allocs, p.Frees, p.Remote = 0, 0, 0, 0
	p.Carved, p.carved, p.subreleased, p.role, p.zero = 0, 0, 0, 0, 0
	p.Owner = OwnerHuge
	mapFill(p, p) // from now on other threads can find it
	poolLock.Take(h.Thread.token)
	p.reshare(&shares{})
	poolLock.Release()
	return p.block() | b
}

// hugeMap makes a fresh mapping, charged to a tier, or takes a cached one of the tier that was
// charged. zero is ZeroBit for a fresh one.
func hugeMap(h *Heap, size, align uintptr) (p *Page, zero uintptr) {
	h.Thread.trimHighWater(size)
	if reservedPages && align <= huge2M { // a larger alignment may exceed such a page's
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

// hugeTry charges and maps size bytes. With reserved set they come from the kernel's reserved huge
// pages, if the tier asks for those.
func hugeTry(h *Heap, size, align uintptr, reserved bool) (p *Page, zero uintptr) {
	page, asked := uintptr(0), size
	size, placement, first, ok := h.reserveHuge(size, reserved)
	if !ok {
		return nil, 0
	}
	if reserved {
		page = hugetlbSize(placement, asked)
	}
	align = max(align, hugePageSlices(placement)<<SliceShift, first.hugePageSlices()<<SliceShift)
	if first.bytes == 0 {
		p = hugeCached(h.Thread.token, h.Hint, size, align, placement)
		if p != nil { // charged already
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
		p = h.adoptFresh(start, size, size, placement, first, page != 0)
		if p == nil {
			first.giveBack(h.Thread.token, start, size, placement)
		}
	}
	if p == nil {
		first.release(size, placement)
		return nil, 0
	}
	if page != 0 {
		p.pages = reservedPool
	}
	cutSplit(h.Thread.token, p, first.bytes)
	faultedHuge(h.Thread.token, h.Thread.Now, size)
	return p, ZeroBit
}

// adoptFresh makes a huge block of a fresh mapping that reserveHuge has charged, or returns nil.
// used bytes of it are accessible.
func (h *Heap) adoptFresh(start, size, used, placement uintptr, first firstPart,
	hugetlb bool) *Page {
	first.placePages(start, size, placement, hugetlb)
	if placement == placementPin && bound && !pin(start, used) {
		return nil
	}
	return hugeAdopt(h.Thread.token, start, size, uint32(placement), h.Hint,
		uint32(homeOf(uintptr(h.Hint))), first, false)
}

// hugeResize makes the block of p n bytes long, in place or by moving its page
// table entries. It returns the block's address, or 0 with everything as it was.
func hugeResize(h *Heap, p *Page, n uintptr) uintptr {
	size := raw.RoundUp(n, SliceSize)
	old := p.Size
	if size == old {
		return p.Start
	}
	if p.state == spanHugeAlone || !pinMigration(h.Thread.token, p) {
		return 0
	}
	to := uintptr(0)
	if p.wholeSplit() && !p.reserved() &&
		cutSplit(h.Thread.token, p, uintptr(p.done)<<SliceShift) {
		to = hugeResizedByParts(h, p, size)
	}
	unpinMigration(h.Thread.token, p)
	return to
}

// hugeResizedByParts is hugeResized for a block that may have a part map.
func hugeResizedByParts(h *Heap, p *Page, size uintptr) (at uintptr) {
	if p.parts() == nil {
		return hugeResized(h, p, size)
	}
	if size > p.Size && !p.endSlower(h.Thread.token, size) {
		return 0
	}
	bindAgain(p.Start, p.Size, p.placement) // one mapping
	at = hugeResized(h, p, size)
	p.bindParts()
	return at
}

// hugeResized is hugeResize for a block that is pinned and is wholly in its placement or a whole
// split.
func hugeResized(h *Heap, p *Page, size uintptr) (at uintptr) {
	old := p.Size
	if size > old {
		if p.pages == sampledPages {
			p.pages = systemPages // what is new was not looked at
		}
		p.sampleHuge()
	}
	var g growth
	if size > old && !h.reserveGrowth(p, size-old, &g) {
		return 0
	}
	if size < old {
		g = p.ending(old - size)
	}
	errno := p.resizeInPlace(size)
	switch {
	case errno == 0:
		at = p.Start
		if poolLock.Take(h.Thread.token) {
			hugeSized(p, size)
			poolLock.Release()
		}
		if size > old && p.placement == placementPin && bound && !pin(at+old, size-old) {
			raw.Unmap(at+old, size-old) // the old part keeps its policy
			hugeSizedBack(h.Thread.token, p, old)
			return 0
		}
	case size > old && errno == uintptr(syscall.ENOMEM) && (p.placement != placementPin || !bound):
		// otherwise the host has changed a part of the mapping
		at = hugeMoved(h.Thread.token, p, size)
		if at == 0 && purgeAll(h.Thread) > 0 {
			at = hugeMoved(h.Thread.token, p, size)
		}
	}
	switch {
	case at == 0 && size > old, at != 0 && size < old:
		g.release()
	case at != 0:
		splitGrown(h.Thread.token, p, &g)
		at = p.Start
		if size > old {
			faultedHuge(h.Thread.token, h.Thread.Now, size-old)
			p.adviseHuge()
		}
	}
	return at
}

// hugeCoalesced makes a block of size bytes from cached blocks of a placement that are each too
// small. Their memory is moved by page tables, one after the other, and only the rest is faulted
// in. It returns nil if no cached blocks are worth it.
func (h *Heap) hugeCoalesced(size, align, placement uintptr) *Page {
	token := h.Thread.token
	p, have := coalescible(token, size, align, placement)
	if p == nil {
		return nil
	}
	size = max(size, have)
	more := size - have
	if more != 0 {
		h.Thread.trimHighWater(more)
	}
	if !h.Thread.admit(tierOf(p.placement), more, false) {
		uncoalesce(token, p, nil, 0)
		return nil
	}
	if !linkCoalesced(token, p, have, size, h.Hint) {
		return nil
	}
	faultedHuge(h.Thread.token, h.Thread.Now, more)
	return p
}

// guardPagesAlloc allocates n bytes at a multiple of align, a power of two.
func guardPagesAlloc(h *Heap, n, align, how uintptr) uintptr {
	if n > maxRequest || align > maxRequest {
		return 0
	}
	h.Thread.tick()
	p := guardPagesTry(h, n, align)
	if p == nil && purgeAll(h.Thread) > 0 {
		p = guardPagesTry(h, n, align)
	}
	if p == nil {
		return 0
	}
	p.setFamily(uint32(how >> HowFamily & familyMask % stateKinds))
	p.setRequest(n)
	fill(p.Start, n, raw.RoundUp(n, raw.Page))
	h.Thread.migrate()
	return p.Start | ZeroBit
}

// guardPagesTry charges and maps a block of n bytes.
func guardPagesTry(h *Heap, n, align uintptr) *Page {
	size, placement, first, ok := h.reserveHuge(raw.RoundUp(n, SliceSize), false)
	if !ok {
		return nil
	}
	atomic.AddUint64(&pool.count.hugeMisses, 1)
	used := raw.RoundUp(n, raw.Page)
	align = max(align, hugePageSlices(placement)<<SliceShift, first.hugePageSlices()<<SliceShift)
	start, base, whole := guardPagesMap(h.Thread.token, size, used, align,
		uintptr(random()))
	var p *Page
	if start != 0 {
		if p = h.adoptFresh(start, size, used, placement, first, false); p == nil {
			raw.Unmap(base, whole)
		}
	}
	if p == nil {
		first.release(size, placement)
		return nil
	}
	mapped(whole - size)
	locked := poolLock.Take(h.Thread.token) // else only this thread knows p (spanalloc.go)
	p.setReservation(base, whole)
	if locked {
		poolLock.Release()
	}
	return p
}

// guardPagesFree checks a block with guard pages before the call in frees it.
func (p *Page) guardPagesFree(in *running, how, size uintptr) uintptr {
	n := p.request()
	if why := judge(in, uintptr(p.family()), n, how, size); why != FreeOK {
		return why
	}
	if !fillIntact(p.Start, n, raw.RoundUp(n, raw.Page)) {
		corrupt(in, p, p.Start, foundBehind)
	}
	return FreeOK
}
