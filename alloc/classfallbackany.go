package alloc

import "tieralloc/alloc/sizeclass"

// When there is no memory for another page of a class, blocks of larger classes that the
// thread has free serve as well: memory that is held must not keep a program from going
// on. glibc's tests fill the heap with small blocks until it says no and expect nothing
// to be left.

// fallbackAny is the next class above c whose size is a multiple of align and of which h has a
// page on its list or a block on its thread-cache free list, or sizeclass.Count.
func (h *Heap) fallbackAny(c, align uintptr) uintptr {
	for c++; c < sizeclass.Count; c++ {
		if sizeclass.Size(c)&(align-1) == 0 && (h.current(c) != pageNone ||
			h.cacheList(c).Head != 0) {
			break
		}
	}
	return c
}
