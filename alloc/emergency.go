package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// A signal handler may allocate while the code that it interrupted, on the same
// thread, holds a lock. POSIX promises nothing there, but programs do it, most of
// all in a child that the handler forks. What would need the lock is then mapped
// afresh and never joins the pool; its addresses are not reused. It has no segment
// and is known by two lists that only grow, by compare-and-swap.
var alone struct {
	pages uintptr // *Page, linked by lruNext
	heaps uintptr // *Heap, linked by all
}

func aloneHeaps() *Heap { return (*Heap)(raw.Ptr(atomic.LoadUintptr(&alone.heaps))) }

// emergencySpan maps a span of n slices whose descriptor lies in a slice before
// it.
func emergencySpan(n uintptr) *Page {
	size := (n + 1) << SliceShift
	start := mapAligned(size, SliceSize)
	if start == 0 {
		return nil
	}
	if !mapReserve(start, size) {
		raw.Unmap(start, size)
		return nil
	}
	p := (*Page)(raw.Ptr(start))
	p.Start = start + SliceSize
	p.slices = uint32(n)
	p.state = spanInUse
	p.zero = 1
	for {
		head := atomic.LoadUintptr(&alone.pages)
		p.lruNext = (*Page)(raw.Ptr(head))
		if atomic.CompareAndSwapUintptr(&alone.pages, head, start) {
			return p
		}
	}
}

// emergencyHuge makes a huge block of a fresh mapping. It is not counted.
func emergencyHuge(start, size uintptr) *Page {
	own := mapAligned(SliceSize, SliceSize)
	if own == 0 {
		return nil
	}
	if !mapReserve(start, SliceSize) {
		raw.Unmap(own, SliceSize)
		return nil
	}
	p := (*Page)(raw.Ptr(own))
	p.Start, p.Size = start, size
	p.Owner = OwnerHuge
	p.state = spanHugeAlone
	mapSet(start, p)
	return p
}

// emergencyHeap is a heap that the pool does not know.
func emergencyHeap(token uintptr) *Heap {
	addr := raw.Map((unsafe.Sizeof(Heap{}) + raw.Page - 1) &^ (raw.Page - 1))
	if addr == 0 {
		return nil
	}
	h := (*Heap)(raw.Ptr(addr))
	h.init(token)
	for {
		head := atomic.LoadUintptr(&alone.heaps)
		h.all = (*Heap)(raw.Ptr(head))
		if atomic.CompareAndSwapUintptr(&alone.heaps, head, addr) {
			return h
		}
	}
}
