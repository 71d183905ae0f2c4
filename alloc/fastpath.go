package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// fastPathDisabled reports whether the fast path must not serve a class of the heap: because a rule
// may send the request to another tier, because its pages may lie in a throttled tier, because of
// TA_SECURE=1, or because its blocks are sampled. The fast path then finds no page and no cached
// block, and every request takes the slow path.
//
//	fastPathDisabled(c) ⇒ Cur[c] == pageNone and CacheLists[c].Room == CacheLists[c].Head == 0
func (h *Heap) fastPathDisabled(c uintptr) bool {
	return secure || h.sampled || h.ruled.Has(c) || h.slow.Has(c)
}

// disableFastPath disables the fast path for a class.
func (h *Heap) disableFastPath(c uintptr) {
	h.flushCached(c)
	h.cacheList(c).Room = 0
	h.publish(c, pageNone)
}

// enableFastPath enables it again.
func (h *Heap) enableFastPath(c uintptr) {
	if h.opened.Has(c) {
		h.cacheList(c).Room = cacheLimit(c)
	}
	h.publish(c, h.current(c))
	h.ration(c)
}

func (h *Heap) disableFastPaths() {
	for c := uintptr(0); c < sizeclass.Count; c++ {
		h.disableFastPath(c)
	}
}

// disableThrottled disables the fast path of class c permanently, because its page is in a
// throttled tier. The page may be moving between lists, so no block is freed now: cached blocks are
// hidden, and freed later (freeHidden).
func (h *Heap) disableThrottled(c uintptr) {
	if h.slow.Has(c) {
		return
	}
	h.slow.Add(c)
	s := h.cacheList(c)
	for b := s.Head; b != 0; {
		next := raw.Load(b)
		raw.Store(b, h.hiddenBlocks)
		h.hiddenBlocks = b
		b = next
	}
	s.Head = 0
	s.Room = 0
	h.publish(c, pageNone)
}

// freeHidden frees the hidden blocks.
func (h *Heap) freeHidden() {
	b := h.hiddenBlocks
	h.hiddenBlocks = 0
	h.freeAll(b)
}

// rule disables the fast path for exactly those classes of a thread's base heap for which a rule
// may send a request to another tier.
func (h *Heap) rule() {
	t := h.Thread
	lo := uintptr(0)
	for c := uintptr(0); c < sizeclass.Count; c++ {
		hi := sizeclass.Size(c)
		hint, same := tiers.Uniform(t.rules, lo, hi)
		if hint == tiers.NoHint {
			hint = uintptr(t.hint)
		}
		h.setRuled(c, !same || hint != uintptr(h.Hint))
		lo = hi + 1
	}
}

func (h *Heap) setRuled(c uintptr, ruled bool) {
	was := h.fastPathDisabled(c)
	if ruled {
		h.ruled.Add(c)
	} else {
		h.ruled.Remove(c)
	}
	switch is := h.fastPathDisabled(c); {
	case is && !was:
		h.disableFastPath(c)
	case was && !is:
		h.enableFastPath(c)
	}
}
