package alloc

// Trim gives back to the kernel whatever is not in use: empty pages of this heap
// and of heaps without a thread, cached huge blocks, free spans. It returns the
// number of bytes given back.
func Trim(h *Heap) uintptr { return purgeAll(h) }

func purgeAll(h *Heap) uintptr {
	h.collectPages(true)
	serviceAbandoned(h.token, h.Now)
	done := hugeExpire(h.token, h.Now, true)
	return done + purgeWhile(h.token, h.Now, 0)
}
