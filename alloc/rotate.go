package alloc

// Page rotation: when the current page of a class has no free block, it goes to the end of the
// list, and the next page becomes current.

// rotateFreed rotates the current page, which has no free block, if blocks of it were freed since
// it became current, and reports whether it did. Such a page is not taken off the list: its next
// frees would then go to the thread-cache free list, and alternating between the two lists would
// cost mispredicted branches.
func (h *Heap) rotateFreed(p *Page) bool {
	if p.next == nil || !p.freedSinceRotation() {
		return false
	}
	h.rotate(p)
	return true
}

// rotateLeast is the least number of free bytes for which a rotation is worth while.
const rotateLeast = 1 << 10

// rotateToFreed rotates the current page, which has no free block but may be carved further, if the
// next page has free blocks, and reports whether it did: memory that was in use is preferred to
// fresh memory. (For a page of slots this is not known.)
func (h *Heap) rotateToFreed(p *Page) bool {
	q := p.next
	if q == nil || p.Magic == 0 || q.freeBytes() < rotateLeast ||
		q.Free == 0 && q.subreleased == 0 {
		// only the list counts: a program that writes to free blocks may have cut it short
		return false
	}
	h.rotate(p)
	return true
}

// rotate puts the current page at the end of its list. Precondition: the list has other pages.
func (h *Heap) rotate(p *Page) {
	p.noteRotation()
	h.unlink(p)
	h.append(p)
}

// freeBytes returns the bytes of free blocks in the page, including those in subreleased parts. It
// excludes blocks that other threads have freed: they are still in other processors' caches, and
// taking many back at once is cheaper. Precondition: the caller owns the page, which is not of
// slots.
func (p *Page) freeBytes() uintptr {
	return uintptr(p.carved) - p.Size*uintptr(p.Allocs-p.Frees)
}
