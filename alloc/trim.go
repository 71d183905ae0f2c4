package alloc

import "tieralloc/stats"

// Trim gives back to the kernel whatever is not in use: quarantined blocks and empty pages of this
// thread, of heaps without a thread, and of others as far as they can be had, cached huge blocks,
// free spans. It returns the number of bytes given back.
func Trim(h *Heap) uintptr {
	h.Thread.running = running{number: uintptr(stats.CallMallocTrim) + 1}
	done := purgeAll(h.Thread)
	h.Thread.rest(true)
	unmapLeftover()
	return done
}

func purgeAll(t *Thread) uintptr {
	t.release()
	t.collectPages(true)
	t.lookRound()
	done := hugeExpire(t.token, t.Now, anyPlacement, true)
	for placement := uintptr(0); placement < placementSlots; placement++ {
		done += purgePlacement(t.token, t.Now, placement, 0, false)
	}
	return done
}
