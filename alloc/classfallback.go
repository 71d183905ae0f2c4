package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/tiers"
)

// Before a class above 1 KiB uses memory that it never used, a block of the next two classes that
// the thread has free serves: at their highest the classes of a thread hold a good deal more
// together than it ever has in use at once.
//
// Such a block costs a call of the slow path, and when it is freed it is the other class's again.
// So a thread falls back at a rate, and a class that is short for good gets memory of its own. (The
// rate is a GCRA, as in package throttle.)
//
//	fallbackTime <= Now + fallbackBurst + fallbackEvery
//
// Nor does a page serve that may soon be empty: a block that lives long would keep it.
const (
	fallbackReach = 2    // classes: blocks up to a quarter larger
	fallbackEvery = 5e3  // nanoseconds between two: a hundredth of the time
	fallbackBurst = 10e6 // nanoseconds of that at once
)

// fallbackNear is a free block of a class a little larger than c whose size is a multiple of align,
// or 0.
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
		if sizeclass.Size(k)&(align-1) != 0 || p == nil || !p.servesFallback(p == current) {
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

// servesFallback reports whether a page may serve another class: not one that lies in another tier
// than the hint's. A current page stays in any case; another one must be in use for the most part.
func (p *Page) servesFallback(current bool) bool {
	return !p.away() && (current || 4*(p.Allocs-p.Frees) >= 3*uint64(p.blocks))
}
