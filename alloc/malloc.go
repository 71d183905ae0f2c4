package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// Malloc is the slow path of malloc: n bytes for the thread of h, which the calling thread owns.
// allowed is the set of rules that the callers allow (tiers.CallerSet). It returns the block's
// address, with ZeroBit added if the block is known to read as zero, or 0 if there is no memory.
// how identifies the function (see howCall).
func Malloc(h *Heap, n, allowed, how uintptr) uintptr {
	t := h.Thread
	t.follow()
	h = t.Base
	if tiers.RulesOn() {
		h = t.heap(t.hintFor(n, allowed))
	}
	if Profiling {
		return h.serveProfiled(n, how)
	}
	return h.serve(n, how)
}

// Alloc is Malloc for a hint that the program gives; tiers.NoHint means the thread's.
func Alloc(h *Heap, n, hint uintptr) uintptr {
	t := h.Thread
	if hint == tiers.NoHint {
		t.follow()
		hint = uintptr(t.hint)
	}
	if h = t.heap(hint); Profiling {
		return h.serveProfiled(n, uintptr(stats.CallTaAlloc))
	}
	return h.serve(n, uintptr(stats.CallTaAlloc))
}

// Renew is Malloc for the new block of a realloc. Unless a rule decides otherwise, it has the hint
// of the old block.
func Renew(h *Heap, n, allowed, old uintptr) uintptr {
	hint := uintptr(tiers.NoHint)
	if tiers.RulesOn() {
		hint = tiers.Match(h.Thread.rules&uint64(allowed), n)
	}
	if hint == tiers.NoHint {
		hint = uintptr(h.Hint)
		if p := Lookup(old); p != nil {
			hint = uintptr(p.Hint)
		}
	}
	if h = h.Thread.heap(hint); Profiling {
		return h.serveProfiled(n, uintptr(stats.CallRealloc))
	}
	return h.serve(n, uintptr(stats.CallRealloc))
}

// hintFor returns the hint for n bytes by the rules, or the thread's own.
func (t *Thread) hintFor(n, allowed uintptr) uintptr {
	hint := tiers.Match(t.rules&uint64(allowed), n)
	if hint == tiers.NoHint {
		hint = uintptr(t.hint)
	}
	return hint
}

// serve allocates n bytes from h, which is nil if there was no memory for a heap.
func (h *Heap) serve(n, how uintptr) (b uintptr) {
	switch {
	case h == nil:
	case secure && n == 0:
		b = h.aligned(sizeclass.Granule, 0, how)
	case secure:
		b = h.serveSecure(n, 0, how)
	case n > sizeclass.MaxSize:
		b = hugeAlloc(h, n, 0, how)
	default:
		b = h.allocClass(sizeclass.Of(n), sizeclass.Granule)
	}
	if b == 0 {
		stats.Put1(config.LogError, stats.EventNoMemory, n, 0)
	} else if tiers.AnyThrottled() {
		h.throttle(b, n)
	}
	return b
}

// throttle charges the time of a block of n bytes to its tier. With TA_THROTTLE=sleep it sleeps for
// that time.
func (h *Heap) throttle(b, n uintptr) {
	p := Lookup(b)
	if p == nil {
		return
	}
	there, tier, rest := p.blockTiers(n)
	if there != 0 {
		tiers.Wait(tier, there, h.Thread.Now)
	}
	if there < n || n == 0 {
		tiers.Wait(rest, n-there, h.Thread.Now)
	}
}

// Charge charges a tier with an access to n bytes by the thread of h, and returns the nanoseconds
// that it costs.
func Charge(h *Heap, tier, n uintptr) (ns uint64) { return tiers.Wait(tier, n, h.Thread.Now) }

// Copied charges n bytes that the library has copied into the block at b, or out of it, for the
// thread of h.
func Copied(h *Heap, b, n uintptr) {
	if p := Lookup(b); p != nil {
		there, tier, rest := p.blockTiers(n)
		tiers.WaitCopy(tier, there, h.Thread.Now)
		tiers.WaitCopy(rest, n-there, h.Thread.Now)
	}
}

// allocClass allocates a block of class c, or of a larger class if there is no other; its size is a
// multiple of align. It tries one source after another, memory that was in use before first. If no
// source has a block, another page becomes current, and it tries all again. A class without a page
// has pageNone, which never has a block, as its current page.
func (h *Heap) allocClass(c, align uintptr) uintptr {
	if h.hiddenBlocks|h.remoteQueues|atomic.LoadUintptr(&h.pending) != 0 {
		h.takeBack()
	}
	for {
		p := h.current(c)
		if p.subreleased != 0 {
			p.relist()
		}
		if b := p.pop(); b != 0 {
			return b
		}
		if b := h.popCached(c); b != 0 {
			return b
		}
		if b := p.popRemote(); b != 0 {
			return b
		}
		if p == pageNone && h.young(c) {
			if b := h.fromNursery(c); b != 0 {
				return b
			}
		}
		if h.rotateToFreed(p) {
			continue
		}
		if p == pageNone || p.fresh() {
			if b := h.fallbackNear(c, align); b != 0 {
				return b
			}
		}
		if p == pageNone {
			if h.refill(c) {
				continue
			}
			if c = h.fallbackAny(c, align); c == sizeclass.Count {
				return 0
			}
			continue
		}
		if b := p.popUntouched(); b != 0 {
			return b
		}
		if !h.rotateFreed(p) {
			h.setFull(p)
		}
	}
}

// takeBack takes back blocks that other threads have freed.
func (h *Heap) takeBack() {
	if h.hiddenBlocks != 0 {
		h.freeHidden()
	}
	if h.remoteQueues != 0 {
		h.drainQueues(h.Thread)
	}
	if atomic.LoadUintptr(&h.pending) != 0 {
		h.drainPending()
		h.Thread.tick() // other threads may have emptied many pages
	}
}

// setFull removes the current page, which has no free block, from its list, and asks for a
// notification when another thread frees a block of it. If one has just done so, the page stays.
func (h *Heap) setFull(p *Page) {
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if old&RemoteAddr != 0 {
			return
		}
		if atomic.CompareAndSwapUintptr(&p.Remote, old, RemoteNotify) {
			break
		}
	}
	h.unlink(p)
	p.summarize()
	// from now on another thread may take it (abandoned.go)
	atomic.StoreUintptr(&p.Owner, h.fullOwnerOf(uintptr(p.Class)))
}

// refill puts a page on the empty list of class c. If the kernel refuses memory, it first returns
// all unused memory. (If a cap refuses, that was done already.)
func (h *Heap) refill(c uintptr) bool {
	if h.nursery == nil && h.Thread.capped && h.young(c) {
		return false // there was no page for the nursery a moment ago
	}
	h.Thread.tick()
	h.Thread.grown()
	if h.current(c) != pageNone { // other threads had freed blocks
		return true
	}
	n := h.slicesOf(c)
	h.Thread.capped = false
	p := h.takeRetired(n)
	if p == nil && n != 1 {
		p = h.takeKept(c, n)
	}
	if p == nil && h.wantsDense(c) {
		if p = h.spanAlloc(sizeclass.DensePageSlices(c), 1); p != nil {
			n = sizeclass.DensePageSlices(c)
		}
	}
	if p == nil {
		p = h.spanAlloc(n, h.batch(n))
	}
	if p == nil && !h.Thread.capped && purgeAll(h.Thread) > 0 {
		if h.current(c) != pageNone {
			return true
		}
		p = h.spanAlloc(n, 1)
	}
	if p == nil {
		return false
	}
	more := p.next
	h.addPage(p, c, n)
	h.addRetired(more, c)
	h.Thread.migrate()
	return true
}

// addPage makes p, a span of n slices or more, a fresh page on the list of class c.
func (h *Heap) addPage(p *Page, c, n uintptr) {
	h.setUp(p, c, n)
	if p.fresh() && !secure && h.prefaults(c, p.Size) {
		p.zero = zeroPrefault
	}
	if secure {
		p.harden()
	}
	mapFill(p, p) // from now on other threads can find it
	h.append(p)
}

// mayWaste reports whether blocks in a placement may be spread, which takes up to an eighth of a
// page: not where addresses are few or a cap is near.
func (h *Heap) mayWaste(placement uintptr) bool {
	return !secure && !h.unspread && addressLimit == 0 &&
		tiers.Room(tierOf(uint32(placement)), spreadRoom)
}

const spreadRoom = 64 << 20 // bytes

// slicesOf is the number of slices of a page of class c, unless it is dense.
func (h *Heap) slicesOf(c uintptr) uintptr {
	switch {
	case secure:
		return slotSlices(c)
	case c > sizeclass.LastShort:
		return h.longSlices(c)
	}
	return sizeclass.PageSlices(c)
}

// longSlices is the number of slices of a page of class c, above sizeclass.LastShort.
func (h *Heap) longSlices(c uintptr) uintptr {
	switch {
	case watchedAlone(c):
		return sizeclass.AloneSlices(c)
	case h.mayLengthen():
		return sizeclass.SpreadSlices(c)
	}
	return sizeclass.PageSlices(c)
}

// watchedAlone reports whether a page of class c has one block because the use of the block, that
// of its span, is watched.
func watchedAlone(c uintptr) bool { return Watching && sizeclass.Alone(c) }

// mayLengthen reports whether spans may be longer so that their blocks can be spread: not where a
// cap, or who asked for a tier, counts their bytes, nor where a span is a part of a huge page: all
// of that is resident, and the longer spans may not fill it.
func (h *Heap) mayLengthen() bool {
	home := homeOf(uintptr(h.Hint))
	return h == h.Thread.Base && hugePageSlices(home) == 1 && h.mayWaste(home) &&
		tiers.Room(home, maxRequest)
}

// setUp makes p, a span of n slices or more, a fresh page of class c of the heap.
func (h *Heap) setUp(p *Page, c, n uintptr) {
	size := sizeclass.Size(c)
	stride, most, start := size, n<<SliceShift, p.spanStart()
	if sizeclass.Spread(c) && (c <= sizeclass.LastShort || n >= sizeclass.SpreadSlices(c)) &&
		h.mayWaste(uintptr(p.placement)) {
		stride += sizeclass.Line
		most -= sizeclass.LeadInLeast
	}
	if stride == 0 { // it never is; the compiler wants to see it
		return
	}
	blocks := most / stride
	p.blocks, p.Size = uint32(blocks), size
	p.setGap(stride - size)
	if stride != size {
		start += sizeclass.PageLeadIn(start>>SliceShift, blocks, blocks*stride)
	}
	p.Start = start
	p.Magic = sizeclass.DivMagic(stride)
	p.Class = uint32(c)
	p.Hint = h.Hint
	p.clearNote()
	p.Carved, p.carved, p.subreleased, p.role = 0, 0, 0, 0
	p.Free, p.Allocs, p.Frees = 0, 0, 0
	p.Remote, p.Owner = 0, h.ownerOf(c)
	atomic.AddUintptr(&h.Thread.pages, 1)
}

// Aligned allocates n bytes at a multiple of align, a power of two, as Malloc does.
//
// Blocks of a page start at a multiple of a slice plus a multiple of their size. So a class whose
// size is a multiple of align serves; one of the next eight classes does, at the latest the next
// power of two. Blocks that are spread are at multiples of a cache line only; for more they come
// from a heap of their own, whose pages are not spread.
func Aligned(h *Heap, align, n, allowed, how uintptr) uintptr {
	t := h.Thread
	t.follow()
	h = t.Base
	if tiers.RulesOn() {
		h = t.heap(t.hintFor(n, allowed))
	}
	b := uintptr(0)
	if Profiling {
		b = h.alignedProfiled(align, n, how)
	} else {
		b = h.aligned(align, n, how)
	}
	if b != 0 && tiers.AnyThrottled() {
		h.throttle(b, n)
	}
	return b
}

func (h *Heap) aligned(align, n, how uintptr) uintptr {
	if h == nil {
		return 0
	}
	if secure {
		if n == 0 {
			if b := zeroAlloc(h, align); b != 0 {
				return b
			} // otherwise a page that is not empty must serve
		}
		return h.serveSecure(max(n, 1), align, how)
	}
	size := raw.RoundUp(max(n, align), align)
	if align > SliceSize || size > sizeclass.MaxSize || size < n {
		if n > maxRequest || align > maxRequest {
			return 0
		}
		return hugeAlloc(h, max(n, 1), align, how)
	}
	c := sizeclass.Aligned(sizeclass.Of(size), align)
	of := h
	if !h.aligns(c, align) {
		of = h.unspreadHeap()
	}
	b := uintptr(0)
	if of != nil {
		b = of.allocClass(c, align)
	}
	if b == 0 {
		b = h.fallbackUnspread(c, align)
	}
	return b
}
