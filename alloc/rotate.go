package alloc

// Which page of a class's list is the current one. Pages take turns: the current one goes to the
// end of the list when it has no free block.

// rotateFreed ends the turn of the current page, which has no free block, where blocks of it were
// freed since its last one, and reports whether it did. To take it off the list does not pay: each
// of the next frees would go to the thread-cache free list, and many calls, here and there, would
// find out by a branch which list it is.
func (h *Heap) rotateFreed(p *Page) bool {
	if p.next == nil || !p.freedSinceRotation() {
		return false
	}
	h.rotate(p)
	return true
}

// rotateLeast is how many bytes of free blocks make a turn worth while.
const rotateLeast = 1 << 10

// rotateToFreed ends the turn of the current page, which has no free block but may be carved
// further, where the next one has some, and reports whether it did: memory that was in use goes
// before memory that never was. (Of a page of slots it is not known.)
func (h *Heap) rotateToFreed(p *Page) bool {
	q := p.next
	if q == nil || p.Magic == 0 || q.freeBytes() < rotateLeast ||
		q.Free == 0 && q.subreleased == 0 {
		// the list alone tells: a program that writes to free blocks may have cut it short
		return false
	}
	h.rotate(p)
	return true
}

// rotate puts the current page at the end of its list, which has others.
func (h *Heap) rotate(p *Page) {
	p.noteRotation()
	h.unlink(p)
	h.append(p)
}

// freeBytes is how many bytes of the page are free blocks, those in subreleased parts included and
// those that other threads have freed left out: these are in other caches yet, and the more of them
// come back at once the better. Preconditions: the caller owns the page, which is not of slots.
func (p *Page) freeBytes() uintptr {
	return uintptr(p.carved) - p.Size*uintptr(p.Allocs-p.Frees)
}
