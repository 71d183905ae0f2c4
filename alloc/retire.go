package alloc

import (
	"sync/atomic"

	"tieralloc/tiers"
)

// A page that became empty stays on its list for a while, so that a program whose classes take
// turns gets its memory from the thread's own pages: the pool's lock and lists, and the memory of
// pages that another thread had last, travel between processors. Such a page of one slice serves
// any class of its heap, the one that became empty last first.
//
// A thread that falls silent keeps what it keeps. When a page is left, with used all that spans in
// use have, what is kept among them:
//
//	Thread.retiredBytes <= max(used/retireShareUsed, min(retireOne, used/2)), retireMax,
//		retireMax of the page's placement
//	pool.retiredBytes = Σ Thread.retiredBytes
//	pool.retiredBytes <= max(retireAll, used/retireShareAll)
//		where Thread.retiredBytes > used/retireShareUsed
const (
	retireOne       = 512 << 10 // of pages of one slice, with which any class is served
	retireShareUsed = 64
	retireAll       = 4 << 20
	retireShareAll  = 8

	// a power of two; those that became empty before stay for their class or until they are old
	retiredKnown = 8
)

// retire lets an empty page, which is not current, stay on its list, if that is not too much. It
// reports whether the page stays.
func (h *Heap) retire(p *Page) bool {
	used := pool.usedBytes // peeks, without the lock
	most := used / retireShareUsed
	if p.slices == 1 && !secure && PurgeDelay != 0 &&
		atomic.LoadUintptr(&pool.retiredBytes)+p.bytes() <= max(retireAll, used/retireShareAll) {
		most = max(most, min(retireOne, used/2))
	}
	if h.Thread.retiredBytes+p.bytes() > min(
		most,
		placements[p.placement&(placementSlots-1)].retireMax,
	) {
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

// unretire ends a page's time as one that was left empty on its list.
func (h *Heap) unretire(p *Page) {
	if p.isRetired() {
		h.Thread.retiredBytes -= p.bytes()
		atomic.AddUintptr(&pool.retiredBytes, -p.bytes())
	}
}

// takeRetired takes a page of n slices that was left empty off its list, to be made one of any
// class, or returns nil. It is as one from the pool's dirty spans, but that the map knows it. Where
// spans move between tiers by their age it takes none: one from the pool is the youngest.
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
		// It may have gone to the pool since and be anything. But nobody else makes it one on the
		// heap's list, or takes it off that.
		owner := atomic.LoadUintptr(&p.Owner)
		if heapOf(owner) == h && owner&OwnerFull == 0 && p.isRetired() &&
			p.slices == 1 &&
			p.unmigrated == 0 && !p.away() &&
			h.detach(p) {
			atomic.StoreUintptr(&p.Owner, ownerNone)
			p.zero = 0
			return p
		}
	}
	return nil
}
