package cudahook

import "math/bits"

// Exact-size bins hold the blocks that a stream has freed, unmerged, by the rounded size that was
// asked for. A stream that repeats its sizes allocates and frees here in a few instructions.

func exactPlace(n uint64) uint64 { return n * 0x9e3779b97f4a7c15 >> 58 }

// pushExact puts a block in its exact-size bin. Precondition: the block is on no list.
func (h *heap) pushExact(t *streamCache, b *block) {
	i := exactPlace(rounded(b.asked)) & 63
	head := &t.exact[i]
	t.exactMap |= 1 << i
	b.state, b.cache = stateExact, t
	b.next = *head
	*head = b
	t.exacts++
	t.free += b.bytes
	t.count(b.bytes)
}

const exactLook = 4 // blocks examined in a bin; several sizes may share one

// popExact takes a block that was used for n bytes, a rounded size, or returns nil.
func (h *heap) popExact(t *streamCache, n uint64) *block {
	place := exactPlace(n) & 63
	at := &t.exact[place]
	for i := 0; i < exactLook; i++ {
		b := *at
		if b == nil {
			return nil
		}
		if rounded(b.asked) == n {
			*at = b.next
			if t.exact[place] == nil {
				t.exactMap &^= 1 << place
			}
			t.exacts--
			t.free -= b.bytes
			t.count(-b.bytes)
			return b
		}
		at = &b.next
	}
	return nil
}

// flush merges the exact-size bins of a stream cache into its bins.
func (h *heap) flush(t *streamCache) {
	if t.exacts == 0 {
		return
	}
	for ; t.exactMap != 0; t.exactMap &= t.exactMap - 1 {
		head := &t.exact[bits.TrailingZeros64(t.exactMap)&63]
		for *head != nil {
			b := *head
			*head = b.next
			t.free -= b.bytes
			t.count(-b.bytes)
			h.give(b, t)
		}
	}
	t.exacts = 0
}

// flushAll flushes all stream caches, and reports whether there was anything to merge.
func (h *heap) flushAll() (some bool) {
	h.flushed = h.now
	for t := h.allCaches; t != nil; t = t.all {
		if t.exacts != 0 {
			h.flush(t)
			some = true
		}
	}
	return some
}
