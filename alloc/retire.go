package alloc

import (
	"sync/atomic"

	"tieralloc/tiers"
)

// A page that became empty stays on its list for a while. So a program that uses its classes
// alternately gets memory from its thread's own pages. That avoids cache misses on the pool's lock
// and lists, and on pages that another thread had last. A retired page of one slice serves any
// class of its heap, most recently retired first.
//
// A thread that stops allocating keeps its retired pages. So these limits hold when a page is
// retired, where used is the bytes of all spans in use, retired ones included:
//
//	Thread.retiredBytes <= max(used/retireShareUsed, min(retireOne, used/2)), retireMax,
//		retireMax of the page's placement
//	pool.retiredBytes = Σ Thread.retiredBytes
//	pool.retiredBytes <= max(retireAll, used/retireShareAll)
//		where Thread.retiredBytes > used/retireShareUsed
const (
	retireOne       = 512 << 10 // of pages of one slice, which serve any class
	retireShareUsed = 64
	retireAll       = 4 << 20
	retireShareAll  = 8

	// a power of two; pages retired before these stay for their class, or until they are old
	retiredKnown = 8
)

// retire keeps an empty page, which is not current, on its list if the limits allow it. It reports
// whether the page stays.
func (h *Heap) retire(p *Page) bool {
	if p.bytes() > h.retireRoom(&placements[p.placement&(placementSlots-1)], p.slices == 1) {
		return false
	}
	h.Thread.retiredBytes += p.bytes()
	atomic.AddUintptr(&pool.retiredBytes, p.bytes())
	p.markRetired()
	p.setFreeSince(h.Thread.Now)
	if p.slices == 1 {
		h.retiredPages[h.retiredAt&(retiredKnown-1)] = p
		h.retiredAt++
	}
	return true
}

// retireRoom is how many bytes more of a placement, in pages of one slice or longer ones, the
// thread may retire.
func (h *Heap) retireRoom(w *placement, oneSlice bool) uintptr {
	used := pool.usedBytes // read without the lock
	most := used / retireShareUsed
	if oneSlice && !secure && PurgeDelay != 0 {
		all := max(retireAll, used/retireShareAll)
		others := atomic.LoadUintptr(&pool.retiredBytes) - h.Thread.retiredBytes
		most = max(most, min(retireOne, used/2, all-min(all, others)))
	}
	most = min(most, w.retireMax)
	return most - min(most, h.Thread.retiredBytes)
}

// unretire ends the retirement of a page.
func (h *Heap) unretire(p *Page) {
	if p.isRetired() {
		h.Thread.retiredBytes -= p.bytes()
		atomic.AddUintptr(&pool.retiredBytes, -p.bytes())
	}
}

// takeRetired removes a retired page of n slices from its list, to make it a page of any class, or
// returns nil. The page is like one of the pool's spans, fresh if it was never used, except that it
// is in the page map. If spans are demoted by age it returns nil, because a span from the pool is
// the youngest.
func (h *Heap) takeRetired(n uintptr) *Page {
	if n != 1 || secure || tiers.Migrating() {
		return nil
	}
	for range retiredKnown {
		h.retiredAt--
		p := h.retiredPages[h.retiredAt&(retiredKnown-1)]
		h.retiredPages[h.retiredAt&(retiredKnown-1)] = nil
		if p == nil {
			break
		}
		// The page may have returned to the pool meanwhile and be in any state. But only this
		// thread puts pages on the heap's list and removes them.
		owner := atomic.LoadUintptr(&p.Owner)
		if heapOf(owner) == h && owner&OwnerFull == 0 && p.isRetired() && p.slices == 1 &&
			h.vacate(p) {
			return p
		}
	}
	return nil
}

// vacate makes an empty page of the heap a span that is in no list, for takeRetired and vacateKept,
// or reports false.
func (h *Heap) vacate(p *Page) bool {
	if p.unmigrated != 0 || p.away() || !h.detach(p) {
		return false
	}
	atomic.StoreUintptr(&p.Owner, ownerNone)
	p.next = nil
	if p.carved != 0 {
		p.zero = 0
	}
	p.zero = min(p.zero, 1)
	return true
}

// Page rotation: when the current page of a class has no free block, it goes to the end of the
// list, and the next page becomes current.

// rotateFreed rotates the current page, which has no free block, if blocks of it were freed since
// it became current, and reports whether it did. Such a page is not taken off the list: its next
// frees would then go to the thread-cache free list, and alternating between the two lists would
// cost mispredicted branches.
func (h *Heap) rotateFreed(p *Page) bool {
	if p.next == nil || !p.freedSinceRotation() {
		return false
	}
	h.rotate(p)
	return true
}

// rotateLeast is the least number of free bytes for which a rotation is worth while.
const rotateLeast = 1 << 10

// rotateToFreed rotates the current page, which has no free block but may be carved further, if the
// next page has free blocks, and reports whether it did: memory that was in use is preferred to
// fresh memory. (For a page of slots this is not known.)
func (h *Heap) rotateToFreed(p *Page) bool {
	q := p.next
	if q == nil || p.Magic == 0 || q.freeBytes() < rotateLeast ||
		q.Free == 0 && q.subreleased == 0 {
		// only the list counts: a program that writes to free blocks may have cut it short
		return false
	}
	h.rotate(p)
	return true
}

// rotate puts the current page at the end of its list. Precondition: the list has other pages.
func (h *Heap) rotate(p *Page) {
	p.noteRotation()
	h.unlink(p)
	h.append(p)
}

// freeBytes returns the bytes of free blocks in the page, including those in subreleased parts. It
// excludes blocks that other threads have freed: they are still in other processors' caches, and
// taking many back at once is cheaper. Precondition: the caller owns the page, which is not of
// slots.
func (p *Page) freeBytes() uintptr {
	return uintptr(p.carved) - p.Size*uintptr(p.Allocs-p.Frees)
}
