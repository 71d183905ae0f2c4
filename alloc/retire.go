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
		if heapOf(owner) == h && owner&OwnerFull == 0 && p.isRetired() &&
			p.slices == 1 &&
			p.unmigrated == 0 && !p.away() &&
			h.detach(p) {
			atomic.StoreUintptr(&p.Owner, ownerNone)
			p.next = nil
			if p.carved != 0 {
				p.zero = 0
			}
			p.zero = min(p.zero, 1)
			return p
		}
	}
	return nil
}
