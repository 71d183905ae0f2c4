package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/tiers"
)

// Before a class above 1 KiB uses fresh memory, a free block of the next two classes serves the
// request. The classes of a thread do not peak at the same time, so together they hold much more
// free memory than the thread needs at once.
//
// Such a block costs a call of the slow path, and when it is freed it returns to its own class. So
// the rate of fallbacks is limited, and a class that is always short gets memory of its own. (The
// rate is a GCRA, as in package throttle.)
//
//	fallbackTime <= Now + fallbackBurst + fallbackEvery
//
// A page that may soon be empty does not serve, because a long-lived block would keep it.
const (
	fallbackReach = 2    // classes: blocks up to a quarter larger
	fallbackEvery = 5e3  // nanoseconds between two: a hundredth of the time
	fallbackBurst = 10e6 // nanoseconds' worth of fallbacks at once
)

// fallbackNear returns a free block of a slightly larger class than c whose size is a multiple of
// align, or 0.
func (h *Heap) fallbackNear(c, align uintptr) uintptr {
	t := h.Thread
	if c < warmFirst || secure || tiers.Migrating() || t.fallbackTime > t.Now+fallbackBurst {
		return 0
	}
	for k := c + 1; k <= c+fallbackReach && k < sizeclass.Count; k++ {
		current, cached := h.current(k), h.cacheList(k).Head
		p := current
		if cached != 0 {
			p = Lookup(cached)
		}
		if !h.aligns(k, align) || p == nil || !p.servesFallback(p == current) {
			continue
		}
		b := h.popCached(k)
		if b == 0 {
			b = p.pop()
		}
		if b != 0 {
			t.fallbackTime = max(t.fallbackTime, t.Now) + fallbackEvery
			return b
		}
	}
	return 0
}

// servesFallback reports whether a page may serve another class. It must be in the hint's tier.
// Unless it is current, and so stays anyway, most of it must be in use.
func (p *Page) servesFallback(current bool) bool {
	return !p.away() && (current || 4*(p.Allocs-p.Frees) >= 3*uint64(p.blocks))
}

// When there is no memory for another page of a class, free blocks of any larger class serve too: a
// request must not fail while the thread has free memory. glibc's tests fill the heap with small
// blocks until an allocation fails, and expect that nothing is left.

// fallbackAny returns the next class above c whose size is a multiple of align and of which h has a
// page on its list or a block on its thread-cache free list. It returns sizeclass.Count if there is
// none.
func (h *Heap) fallbackAny(c, align uintptr) uintptr {
	for c++; c < sizeclass.Count; c++ {
		if h.aligns(c, align) && (h.current(c) != pageNone || h.cacheList(c).Head != 0) {
			break
		}
	}
	return c
}

// fallbackUnspread is fallbackAny for a multiple of align from class c on, by the pages: not all of
// them are spread. It returns a block or 0.
func (h *Heap) fallbackUnspread(c, align uintptr) uintptr {
	for ; c < sizeclass.Count; c++ {
		p := h.current(c)
		if sizeclass.Size(c)&(align-1) != 0 || p == pageNone || p.Gap != 0 {
			continue
		}
		b := p.pop()
		if b == 0 {
			b = p.popUntouched()
		}
		if b != 0 {
			return b
		}
	}
	return 0
}

// aligns reports whether the blocks of class c lie at multiples of align, a power of two.
func (h *Heap) aligns(c, align uintptr) bool {
	return sizeclass.Size(c)&(align-1) == 0 &&
		(align <= sizeclass.Line || h.unspread || secure || !sizeclass.Spread(c))
}
