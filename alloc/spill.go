package alloc

import "tieralloc/internal/raw"

// The spill list of a class takes blocks that the owner frees into full pages and
// gives them out again when the current page has none, both in C. So a thread
// whose pages are all full, and that frees and allocates in turn, neither
// relinks pages nor comes here. To its page a spilled block is in use.
//
//	blocks on the list = spillLimit - SpillRoom; none in a guarded class
//	SpillPops = blocks ever given out from it
const (
	spillBytes = 128 << 10
	spillMin   = 1
	spillMax   = 64
)

func spillLimit(c uintptr) uint64 {
	size := ClassSize(c)
	if size == 0 { // it never is; the compiler wants to see it
		return 0
	}
	return min(max(uint64(spillBytes/size), spillMin), spillMax)
}

// spilled is how many blocks the list of class c holds.
func (h *Heap) spilled(c uintptr) uint64 {
	if h.guarded(c) {
		return 0
	}
	return spillLimit(c) - h.SpillRoom[c&(Classes-1)]
}

// unspill takes a block from the list of class c, or returns 0.
func (h *Heap) unspill(c uintptr) uintptr {
	b := h.SpillHead[c&(Classes-1)]
	if b != 0 {
		h.SpillHead[c&(Classes-1)] = raw.Load(b)
		h.SpillRoom[c&(Classes-1)]++
		h.SpillPops[c&(Classes-1)]++
		raw.Store(b+8, 0)
	}
	return b
}

// flush gives the spilled blocks of class c back to their pages.
func (h *Heap) flush(c uintptr) {
	b := h.SpillHead[c&(Classes-1)]
	h.SpillHead[c&(Classes-1)] = 0
	if !h.guarded(c) {
		h.SpillRoom[c&(Classes-1)] = spillLimit(c)
	}
	for b != 0 {
		next := raw.Load(b)
		h.freeLocal(Lookup(b), b)
		b = next
	}
}

// onSpill reports whether b is on the spill list of the heap at owner, which may
// be another thread's.
func onSpill(owner, b, c uintptr) bool {
	h := (*Heap)(raw.Ptr(owner))
	at := h.SpillHead[c&(Classes-1)]
	for i := 0; i < spillMax && at != 0; i++ {
		if at == b {
			return true
		}
		if p := Lookup(at); p == nil || !p.isBlock(at) {
			return false
		}
		at = raw.Load(at)
	}
	return false
}
