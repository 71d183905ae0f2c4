package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// freeRemote returns a block to the heap that owns its page, by one push on the page's remote list.
// If the owner asked for a notification, the page also goes on the owner's pending list, once:
// RemoteNotify becomes RemoteInFlight in the same swap, and only the owner clears that flag.
//
// The page cannot return to the pool in between: before the push the block is in use, and after it
// the flag keeps the page.
func freeRemote(r *granuleCounts, p *Page, b uintptr) {
	if p.isNursery() {
		freeNurseryRemote(r, p, b)
		return
	}
	pushRemote(p, b, b, 1)
}

// pushRemote puts n blocks, linked from first to last, on the page's remote list.
func pushRemote(p *Page, first, last, n uintptr) {
	raw.Store(last+8, FreeKey)
	if summariesTorn && p.summed() {
		p.settleSummary()
	}
	for {
		old := atomic.LoadUintptr(&p.Remote)
		raw.Store(last, encodeLink(last, old&RemoteAddr))
		next := first | (old>>RemoteShift+n)<<RemoteShift | old&RemoteInFlight
		if old&RemoteNotify != 0 {
			next |= RemoteInFlight
		}
		if atomic.CompareAndSwapUintptr(&p.Remote, old, next) {
			if old&RemoteNotify != 0 {
				if p.summed() {
					p.clearSummary()
				}
				notify(p)
			}
			return
		}
	}
}

func notify(p *Page) {
	owner := heapOf(atomic.LoadUintptr(&p.Owner))
	for {
		head := atomic.LoadUintptr(&owner.pending)
		p.pendNext = (*Page)(raw.Ptr(head))
		if atomic.CompareAndSwapUintptr(&owner.pending, head, addrOf(p)) {
			return
		}
	}
}

// drainPending empties the pending list: a full page with blocks on its remote list returns to its
// class's list or to the pool.
func (h *Heap) drainPending() {
	list := atomic.SwapUintptr(&h.pending, 0)
	for list != 0 {
		p := (*Page)(raw.Ptr(list))
		list = addrOf(p.pendNext)
		heapOf(
			p.Owner,
		).relinkPending(p)
		// another heap of the thread, to which ta_move has passed it
	}
}

// relinkPending removes p from the pending list, where it is because other threads have freed
// blocks of the full page. It returns to its class's list.
func (h *Heap) relinkPending(p *Page) {
	p.dropSummary()
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if atomic.CompareAndSwapUintptr(&p.Remote, old, old&^RemoteInFlight) {
			break
		}
	}
	p.takeRemote()
	atomic.StoreUintptr(&p.Owner, h.ownerOf(uintptr(p.Class)))
	h.append(p)
	if p.Frees == p.Allocs {
		h.emptied(p)
	}
}
