package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Malloc serves what the fast path cannot: n bytes from h, which the calling
// thread owns. It returns the block's address, with ZeroBit added when the block
// is known to read as zero, or 0 when there is no memory.
func Malloc(h *Heap, n uintptr) (b uintptr) {
	if n > MaxClass {
		b = hugeAlloc(h, n, 0)
	} else {
		b = h.allocClass(Class(n))
	}
	if b == 0 {
		stats.Put1(logError, stats.EventNoMemory, n, 0)
	}
	return b
}

// allocClass allocates a block of class c. Each turn of the loop ends it, takes
// a page off the class's list, or puts one on an empty list.
func (h *Heap) allocClass(c uintptr) uintptr {
	if atomic.LoadUintptr(&h.pending) != 0 {
		h.drain()
		h.tick() // other threads may have emptied many pages
	}
	for {
		p := h.Cur[c&(Classes-1)]
		if p == pageNone {
			if b := h.unspill(c); b != 0 {
				return b
			}
			if !h.refill(c) {
				return 0
			}
			continue
		}
		if b := p.pop(); b != 0 {
			return b
		}
		if b := h.unspill(c); b != 0 {
			return b
		}
		if p.takeRemote() {
			return p.pop()
		}
		if b, zero := p.carve(); b != 0 {
			if zero {
				b |= ZeroBit
			}
			return b
		}
		h.setFull(p)
	}
}

// setFull takes the current page, which has no free block, off its list and asks
// to be told when another thread frees one. When one has just done so the page
// stays.
func (h *Heap) setFull(p *Page) {
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if old&RemoteAddr != 0 {
			return
		}
		if old&RemoteInFlight != 0 { // on the pending list already: drain will look at it
			break
		}
		if atomic.CompareAndSwapUintptr(&p.Remote, old, RemoteNotify) {
			break
		}
	}
	atomic.StoreUintptr(&p.Owner, h.self()|OwnerFull)
	h.unlink(p)
}

// refill puts a page on the empty list of class c. When the kernel refuses,
// everything that can be spared is given back first.
func (h *Heap) refill(c uintptr) bool {
	h.tick()
	if h.Cur[c&(Classes-1)] != pageNone { // other threads had freed blocks
		return true
	}
	n := pageSlices(c)
	p := spanAlloc(h.token, n)
	if p == nil && purgeAll(h) > 0 {
		if h.Cur[c&(Classes-1)] != pageNone {
			return true
		}
		p = spanAlloc(h.token, n)
	}
	if p == nil {
		return false
	}
	size := ClassSize(c)
	if size == 0 { // it never is; the compiler wants to see it
		return false
	}
	p.Size = size
	p.Magic = divMagic(size)
	p.Class = uint32(c)
	p.blocks = uint32(n << SliceShift / size)
	p.Carved, p.stamp = 0, 0
	p.Free, p.Allocs, p.Frees = 0, 0, 0
	atomic.StoreUintptr(&p.Remote, 0)
	atomic.StoreUintptr(&p.Owner, h.self())
	mapFill(p, p)
	h.append(p)
	return true
}

// tick does the work that is due now and then: purging, looking for empty pages,
// taking back what was freed into heaps without a thread.
func (h *Heap) tick() {
	if h.collect == 0 {
		h.collect = h.Now + max(PurgeDelay, minCollect)
	}
	if h.Now >= h.collect {
		h.collect = h.Now + max(PurgeDelay, minCollect)
		h.collectPages(false)
		serviceAbandoned(h.token, h.Now)
		hugeExpire(h.token, h.Now, false)
	}
	purgeDue(h.token, h.Now)
}

const minCollect = 50e6 // nanoseconds

// Aligned allocates n bytes at a multiple of align, a power of two.
//
// Blocks of a page start at a multiple of a slice plus a multiple of their size,
// so a class whose size is a multiple of align will do; there is one within eight
// classes of any size, the next power of two at the latest.
func Aligned(h *Heap, align, n uintptr) uintptr {
	size := raw.RoundUp(max(n, align), align)
	if align > SliceSize || size > MaxClass || size < n {
		if n > maxRequest || align > maxRequest {
			return 0
		}
		return hugeAlloc(h, max(n, 1), align)
	}
	c := Class(size)
	for c < Classes-1 && ClassSize(c)&(align-1) != 0 {
		c++
	}
	return h.allocClass(c)
}
