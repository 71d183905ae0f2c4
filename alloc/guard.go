package alloc

import "tieralloc/tiers"

// A class of a heap is guarded when the fast path must not serve it: because a rule
// may send the request elsewhere, or because its pages may lie in a throttled tier.
// The fast path then finds no page and no spilled block, and every request comes to
// Malloc, which knows what to ask.
//
//	c guarded ⇒ Cur[c] == pageNone and SpillRoom[c] == 0 and SpillHead[c] == 0
func (h *Heap) guarded(c uintptr) bool {
	i := c >> 6 & 1
	return (h.ruled[i]|h.slow[i])>>(c&63)&1 != 0
}

// guard shuts the fast path out of a class.
func (h *Heap) guard(c uintptr) {
	h.flush(c)
	h.SpillRoom[c&(Classes-1)] = 0
	h.publish(c, pageNone)
}

// unguard lets it in again.
func (h *Heap) unguard(c uintptr) {
	h.SpillRoom[c&(Classes-1)] = spillLimit(c)
	h.publish(c, h.cur[c&(Classes-1)])
}

func (h *Heap) guardAll() {
	for c := uintptr(0); c < Classes; c++ {
		h.guard(c)
	}
}

// guardSlow guards class c, which got a page of a throttled tier. It stays so.
func (h *Heap) guardSlow(c uintptr) {
	if !h.guarded(c) {
		h.guard(c)
	}
	h.slow[c>>6&1] |= 1 << (c & 63)
}

// rule guards the classes of a thread's base of which a rule may want some requests
// elsewhere, and no others.
func (h *Heap) rule() {
	t := h.Thread
	lo := uintptr(0)
	for c := uintptr(0); c < Classes; c++ {
		hi := ClassSize(c)
		hint, same := tiers.Uniform(t.rules, lo, hi)
		if hint == tiers.NoHint {
			hint = uintptr(t.hint)
		}
		h.setRuled(c, !same || hint != uintptr(h.Hint))
		lo = hi + 1
	}
}

func (h *Heap) setRuled(c uintptr, ruled bool) {
	was := h.guarded(c)
	i, bit := c>>6&1, uint64(1)<<(c&63)
	h.ruled[i] &^= bit
	if ruled {
		h.ruled[i] |= bit
	}
	switch is := h.guarded(c); {
	case is && !was:
		h.guard(c)
	case was && !is:
		h.unguard(c)
	}
}
