package alloc

import "sync/atomic"

// A page that became empty stays on its list for a while, so that a program whose classes take
// turns gets its memory from the thread's own pages: the pool's lock and lists, and the memory of
// pages that another thread had last, travel between processors. Such a page of one slice serves
// any class of its heap, the one that became empty last first.
//
//	kept <= max(used/keptShareUsed, min(keptOne, used/2)) when a page is left
const (
	keptMax       = 4 << 20
	keptOne       = 512 << 10 // of pages of one slice, with which any class is served
	keptShareUsed = 64

	emptiesKnown = 8 // a power of two; those that became empty before stay for their class or until they are old
)

// keptEmpty as a Trigger marks an empty page that stays on its list. No count of
// frees gets there.
const keptEmpty = ^uint64(1)

// keepEmpty lets an empty page, which is not current, stay on its list, if that is not too much, measured by all
// that is in use and by the tier's hard cap, for others may need the memory. It reports whether the page stays.
func (h *Heap) keepEmpty(p *Page) bool {
	used := pool.usedBytes // a peek, without the lock
	most := used / keptShareUsed
	if p.slices == 1 {
		most = max(most, min(keptOne, used/2))
	}
	if h.Thread.kept+p.bytes() > min(most, places[p.place&(placeSlots-1)].keep) {
		return false
	}
	h.Thread.kept += p.bytes()
	p.Trigger = keptEmpty
	p.Stamp = h.Thread.Now
	if p.slices == 1 {
		h.empties[h.emptiesAt&(emptiesKnown-1)] = p
		h.emptiesAt++
	}
	return true
}

// unkeep ends a page's time as one that was left empty on its list.
func (h *Heap) unkeep(p *Page) {
	if p.Trigger == keptEmpty {
		h.Thread.kept -= p.bytes()
	}
}

// reuse takes a page of n slices that was left empty off its list, to be made one of any class, or returns nil. It is
// as one from the pool's dirty spans, but that the map knows it.
func (h *Heap) reuse(n uintptr) *Page {
	if n != 1 || secure {
		return nil
	}
	for range emptiesKnown {
		h.emptiesAt--
		p := h.empties[h.emptiesAt&(emptiesKnown-1)]
		h.empties[h.emptiesAt&(emptiesKnown-1)] = nil
		if p == nil {
			break
		}
		// It may have gone to the pool since and be anything; but nobody else makes it the heap's.
		if heapOf(atomic.LoadUintptr(&p.Owner)) == h && p.Trigger == keptEmpty && p.slices == 1 &&
			p.Hint == h.Hint && p.stray == 0 && !p.away() && h.retire(p) {
			atomic.StoreUintptr(&p.Owner, ownerNone)
			p.zero = 0
			return p
		}
	}
	return nil
}
