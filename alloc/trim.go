package alloc

// Trim gives back to the kernel whatever is not in use: empty pages of this thread
// and of heaps without a thread, cached huge blocks, free spans. It returns the
// number of bytes given back.
func Trim(h *Heap) uintptr { return purgeAll(h.Thread) }

func purgeAll(t *Thread) uintptr {
	t.collectPages(true)
	serviceAbandoned(t.token, t.Now)
	done := hugeExpire(t.token, t.Now, anyPlace, true)
	for place := uintptr(0); place < placeSlots; place++ {
		done += purgePlace(t.token, t.Now, place, 0, true)
	}
	return done
}
