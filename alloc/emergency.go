package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A signal handler may allocate while the code that it interrupted, on the same
// thread, holds a lock. POSIX promises nothing there, but programs do it, most of
// all in a child that the handler forks. What would need the lock is then mapped
// afresh and never joins the pool: it is not counted, and its addresses are not
// reused. It is known by having no segment.

// emergencySpan maps a span of n slices whose descriptor lies in a slice before
// it.
func emergencySpan(n uintptr) *Page {
	start := mapAligned((n+1)<<SliceShift, SliceSize)
	if start == 0 || !mapReserve(start, (n+1)<<SliceShift) {
		return nil
	}
	p := (*Page)(raw.Ptr(start))
	p.Start = start + SliceSize
	p.slices = uint32(n)
	p.state = spanInUse
	p.zero = 1
	return p
}

// emergencyHuge makes a huge block of a fresh mapping.
func emergencyHuge(start, size uintptr) *Page {
	own := mapAligned(SliceSize, SliceSize)
	if own == 0 || !mapReserve(start, SliceSize) {
		return nil
	}
	p := (*Page)(raw.Ptr(own))
	p.Start, p.Size = start, size
	p.Owner = OwnerHuge
	p.state = spanHugeAlone
	mapSet(start, p)
	return p
}

// emergencyHeap is a heap on no list.
func emergencyHeap(token uintptr) *Heap {
	h := (*Heap)(raw.Ptr(raw.Map((unsafe.Sizeof(Heap{}) + raw.Page - 1) &^ (raw.Page - 1))))
	if h != nil {
		h.init(token)
	}
	return h
}
