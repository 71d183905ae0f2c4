package alloc

import "tieralloc/stats"

// Trim returns all unused memory to the kernel: quarantined blocks and empty pages of this thread,
// of abandoned heaps, and of other threads if they can be taken, cached huge blocks and free spans.
// It returns the number of bytes.
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
	return returnFree(t.token, t.Now)
}
