package alloc

import "tieralloc/alloc/sizeclass"

// When there is no memory for another page of a class, free blocks of any larger class serve too: a
// request must not fail while the thread has free memory. glibc's tests fill the heap with small
// blocks until an allocation fails, and expect that nothing is left.

// fallbackAny returns the next class above c whose size is a multiple of align and of which h has a
// page on its list or a block on its thread-cache free list. It returns sizeclass.Count if there is
// none.
func (h *Heap) fallbackAny(c, align uintptr) uintptr {
	for c++; c < sizeclass.Count; c++ {
		if sizeclass.Size(c)&(align-1) == 0 && (h.current(c) != pageNone ||
			h.cacheList(c).Head != 0) {
			break
		}
	}
	return c
}
