package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A signal handler may allocate while the code that it interrupted, on the same thread, holds a
// lock. POSIX does not allow that, but programs do it, above all in a child that the handler forks.
// Memory that would need the lock is then mapped separately and never joins the pool. Its addresses
// are not reused. It has no segment, and is on two lists that only grow, by compare-and-swap.
var alone struct {
	pages   uintptr // *Page, linked by ageNext
	threads uintptr // *Thread, linked by all
}

func aloneThreads() *Thread { return (*Thread)(raw.Ptr(atomic.LoadUintptr(&alone.threads))) }

// emergencySpan maps a span of n slices whose descriptor is in a slice before it. It does not make
// room in a tier.
func (h *Heap) emergencySpan(n uintptr) *Page {
	size := (n + 1) << SliceShift
	placement, ok := h.reserveAlone(size)
	if !ok {
		return nil
	}
	start := mapAligned(size, SliceSize)
	if start != 0 && !mapReserve(start, size) {
		raw.Unmap(start, size)
		start = 0
	}
	if start == 0 {
		tiers.Release(tierOf(placement), size)
		return nil
	}
	settlePages(start, size, placement, false)
	p := (*Page)(raw.Ptr(start))
	p.Start = start + SliceSize
	p.slices = uint32(n)
	p.state = spanInUse
	p.zero = 1
	p.placement = placement
	for {
		head := atomic.LoadUintptr(&alone.pages)
		p.ageNext = (*Page)(raw.Ptr(head))
		if atomic.CompareAndSwapUintptr(&alone.pages, head, start) {
			return p
		}
	}
}

// reserveAlone is reserve without the steps that take a lock.
func (h *Heap) reserveAlone(n uintptr) (placement uint32, ok bool) {
	const nothingToTrim = 1<<placementSlots - 1
	answer := tiers.Reserve(uintptr(h.Hint), n, nothingToTrim)
	return uint32(answer & (placementSlots - 1)), answer < placementSlots
}

// emergencyThread returns a thread with a heap that the pool does not know.
func emergencyThread(token uintptr) *Thread {
	addr := raw.Map(raw.RoundUp(threadBytes+heapBytes, raw.Page))
	if addr == 0 {
		return nil
	}
	t := (*Thread)(raw.Ptr(addr))
	t.begin(token, (*Heap)(raw.Ptr(addr+threadBytes)))
	for {
		head := atomic.LoadUintptr(&alone.threads)
		t.all = (*Thread)(raw.Ptr(head))
		if atomic.CompareAndSwapUintptr(&alone.threads, head, addr) {
			return t
		}
	}
}
