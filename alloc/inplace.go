package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/tiers"
)

// A block that a program lengthens by realloc stays where it is if it is the first block of its
// page and the only one in use there, and the page has room, or the free span behind it. The page
// becomes one of a larger class. A program that fills a buffer by doubling it then copies little.
// (jemalloc extends large blocks into the free memory behind them in the same way.)

// InPlaceMin is the smallest block, in bytes, that is not copied without trying this.
const InPlaceMin = 16 << 10

// inPlaceMost is how long, in bytes, a block grows in this way. A longer one grows by page tables,
// and is better moved to where it can while it is short.
const inPlaceMost = 1 << 20

// offerMost is the largest block that is copied to a page that stays (offerKept) rather than grown.
const offerMost = 64 << 10

// growInPlace makes the block at addr of a page n bytes long, more than it is. It returns addr, or
// 0 with the block unchanged.
func (h *Heap) growInPlace(p *Page, addr, n uintptr) uintptr {
	owner := atomic.LoadUintptr(&p.Owner)
	o := heapOf(owner)
	if owner <= OwnerHuge || addr != p.Start || n > inPlaceMost || o.Thread != h.Thread ||
		!o.mayGrow(p) {
		return 0
	}
	c := sizeclass.Of(n)
	o.grown = uint32(c)
	slices := o.slicesOf(c)
	size, gap := sizeclass.Size(c), uintptr(0)
	alone := size > ResizeMin // no other block is to share its page: ta_move keeps its address
	if alone && slices < uintptr(p.slices) && !o.mayLengthen() {
		return 0
	}
	slices = max(slices, uintptr(p.slices))
	if p.lead() != 0 {
		gap = sizeclass.Line
	}
	stride, room := size+gap, slices<<SliceShift-p.lead()
	if stride == 0 || stride > room { // it is never 0; the compiler wants to see it
		return 0
	}
	if slices > uintptr(p.slices) {
		if p.Size <= offerMost && !alone && o.offerKept(c, slices) {
			return 0
		}
		h.Thread.tick()
	}
	was := p.class()
	if !o.isOnly(p, was) || Profiling && !large(c) && o.dueNext(c) || !o.claim(p) ||
		!p.lengthen(h.Thread, slices-uintptr(p.slices)) {
		return 0
	}
	blocks := room / stride
	if alone {
		blocks = 1
	}
	fresh := p.zero
	if uintptr(p.carved) > stride {
		fresh = 0
	}
	p.Frees++
	o.detach(p)
	o.setUp(p, c, slices)
	magic := sizeclass.DivMagic(stride)
	p.Start = addr
	p.setGap(gap)
	p.Magic = magic
	p.blocks = uint32(blocks)
	p.zero = min(fresh, 1)
	p.carved, p.Carved, p.Allocs = uint32(stride), uint64(stride), 1
	o.append(p)
	if Profiling {
		o.resized(addr, addr, n)
		o.ration(was)
		o.ration(c)
	}
	h.Calls[CallReallocAllocs]++
	h.Calls[CallReallocFrees]++
	return addr
}

// mayGrow reports whether blocks of a page of the heap may grow in place: not where something is
// to know of each block or may move the span, or this is not the pool's or not in its tier, nor
// below ResizeMin where there are rules: they choose the hint of a copy.
func (h *Heap) mayGrow(p *Page) bool {
	if p.Size < ResizeMin && tiers.RulesOn() {
		return false
	}
	return !Watching && !tiers.Migrating() && !tiers.Throttled(tierOf(p.placement)) &&
		!h.sampled && !h.unspread && p.Magic != 0 && !p.isNursery() && p.segment != nil &&
		p.subreleased == 0 && !p.away()
}

// isOnly reports whether one block alone of a page of class c is in use. It returns those to the
// page that are on the thread-cache free list.
func (h *Heap) isOnly(p *Page, c uintptr) bool {
	used := p.Allocs - p.Frees
	if used > 1 && used <= 1+cacheLimit(c) && h.cacheList(c).Head != 0 {
		h.flushCached(c)
		used = p.Allocs - p.Frees
	}
	return used == 1
}

// claim puts a page of the heap on its list if it is full. It reports false if another thread uses
// the page or frees blocks of it.
func (h *Heap) claim(p *Page) bool {
	if atomic.LoadUintptr(&p.Owner)&OwnerFull == 0 {
		return atomic.LoadUintptr(&p.Remote) == 0
	}
	p.dropSummary()
	if !atomic.CompareAndSwapUintptr(&p.Remote, RemoteNotify, 0) {
		return false
	}
	atomic.StoreUintptr(&p.Owner, h.ownerOf(uintptr(p.Class)))
	h.append(p)
	return true
}

// lengthen makes a span that is in use longer, by so many slices of the free span behind it. It
// reports false, with the span unchanged, if there are none in the same placement.
func (p *Page) lengthen(t *Thread, more uintptr) bool {
	if more == 0 {
		return true
	}
	if p.placement == placementPin && bound || !poolLock.Take(t.token) {
		return false
	}
	longer := p.moving == 0 && p.unmigrated == 0 && p.lengthenLocked(t, more)
	poolLock.Release()
	return longer
}

// lengthenLocked is lengthen with poolLock held. A block that would be copied to a dirty span gets
// no clean memory.
func (p *Page) lengthenLocked(t *Thread, more uintptr) bool {
	q, tier, bytes := p.behind(more), tierOf(p.placement), more<<SliceShift
	dirty := &pool.freeSpans[p.placement&(placementSlots-1)].dirty
	switch {
	case q == nil || uintptr(q.slices) < more:
		return false
	case joins(p, q, spanDirty):
		p.zero = 0
	case joins(p, q, spanClean) && hugePageSlices(uintptr(p.placement)) == 1 &&
		(p.Size >= ResizeMin || !dirty.has(uintptr(p.slices)+more)) &&
		!nearLimit(bytes) && tiers.Room(tier, bytes) && tiers.Admit(tier, bytes):
		commit(bytes)
		faulted(t.Now, bytes)
	default:
		return false
	}
	removeFree(q, q.state)
	if uintptr(q.slices) == more {
		freeDescriptor(q)
	} else {
		q.Start += bytes
		q.slices -= uint32(more)
		insertFree(q, q.state)
		if q.state == spanDirty {
			rememberDirty(q)
		}
	}
	p.slices += uint32(more)
	pool.usedBytes += bytes
	mapFill(p, p)
	return true
}

// behind is the span behind p in its segment, or nil. If that is the end of the segment, or less
// than more slices before it, the segment grows if it can.
func (p *Page) behind(more uintptr) *Page {
	seg, at := p.segment, p.spanStart()+p.bytes()
	if seg.epoch != pool.epoch { // its spans are on lists that are gone
		return nil
	}
	q, end := (*Page)(nil), seg.start+seg.slices<<SliceShift
	if at < end {
		q = Lookup(at)
	}
	tail := at == end || joins(p, q, spanClean) && q.Start+q.bytes() == end
	if tail && seg == pool.growing && (q == nil || uintptr(q.slices) < more) {
		if s := extend(uintptr(p.placement), more, max(more, firstGrowth)); s != nil {
			insertFree(coalesce(s, spanClean), spanClean)
			q = Lookup(at)
		}
	}
	return q
}
