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

// The thread-cache free list of a class takes blocks that the owner frees into full pages, and
// hands them out again when the current page has none. Both happen in C. So a thread whose pages
// are all full, and that frees and allocates in turn, neither relinks pages nor takes the slow
// path. For its page a cached block is in use.
//
// The lists of the warm classes also take blocks of pages that are not full, and malloc tries them
// before the page: such pages have few blocks each, and a block that was freed recently is still in
// the processor's cache.
//
//	blocks on the list = cacheLimit - Room; none in a class
//	whose fast path is disabled, or that is not open
//	Pops = blocks ever given out from it
//
// It fits half a cache line, because each call uses it while pages are full.
type CacheList struct {
	Head uintptr // linked by their first words
	Room uint64
	Pops uint64
	// in a warm class: how many more blocks of pages that are not full it takes before the thread
	// reads the clock (purgeticker.go)
	Credit int64
}

const (
	cacheListBytes = 128 << 10
	cacheListMin   = 1
	cacheListMax   = 64

	warmFirst = 32 // the class after that of sizeclass.DirectMax
	warmEnd   = 64 // the first class after the warm ones: above 16 KiB
)

// isWarm reports whether the thread-cache free list of class c takes blocks of pages that are not
// full. If spans are demoted none does, because blocks of a span that is away must not be handed
// out again (emptied).
func isWarm(c uintptr) bool { return c >= warmFirst && c < warmEnd && !tiers.Migrating() }

func cacheLimit(c uintptr) uint64 {
	size := sizeclass.Size(c)
	if size == 0 { // never; it tells the compiler that size is not 0
		return 0
	}
	return min(max(uint64(cacheListBytes/size), cacheListMin), cacheListMax)
}

// cached returns the number of blocks on the list of class c.
func (h *Heap) cached(c uintptr) uint64 {
	if h.fastPathDisabled(c) || !h.opened.Has(c) {
		return 0
	}
	return cacheLimit(c) - h.cacheList(c).Room
}

// popCached takes a block from the list of class c, or returns 0.
func (h *Heap) popCached(c uintptr) uintptr {
	s := h.cacheList(c)
	b := s.Head
	if b != 0 {
		s.Head = raw.Load(b)
		s.Room++
		s.Pops++
		raw.Store(b+8, 0)
	}
	return b
}

// flushCached returns the cached blocks of class c to their pages.
func (h *Heap) flushCached(c uintptr) {
	s := h.cacheList(c)
	b := s.Head
	if b == 0 {
		return
	}
	s.Head = 0
	if !h.fastPathDisabled(c) {
		s.Room = cacheLimit(c)
	}
	h.freeAll(b)
}

// flushLarge returns the cached blocks of large classes to their pages before the heap takes fresh
// memory, and reports whether there were any. A program that grows an array by copying it passes
// through all of these classes. Otherwise a block would stay on the list of each.
func (h *Heap) flushLarge() (some bool) {
	c := sizeclass.Of(cacheListBytes) + 1
	for c = h.opened.Next(c); c < sizeclass.Count; c = h.opened.Next(c + 1) {
		some = some || h.cacheList(c).Head != 0
		h.flushCached(c)
	}
	return some
}

// freeAll frees the blocks of the heap's own pages on the list that begins at b.
func (h *Heap) freeAll(b uintptr) {
	for b != 0 {
		next := raw.Load(b)
		h.freeLocal(Lookup(b), b)
		b = next
	}
}

// isCached reports whether b is on the thread-cache free list of class c of a heap, which may
// be another thread's.
func (h *Heap) isCached(b, c uintptr) bool {
	at := h.cacheList(c).Head
	for i := 0; i < cacheListMax && at != 0; i++ {
		if at == b {
			return true
		}
		if p := Lookup(at); p == nil || !p.isBlock(at) {
			return false
		}
		at = raw.Load(at)
	}
	return false
}
