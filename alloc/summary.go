package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// What a report adds up of a page does not change while the page is full, and in a large heap most
// pages are. So there is a word beside the page map that sums up the page: a report reads that, of
// 8 GiB 1 MiB of words, and not the descriptors, of which there are 24 MiB. In a forked child, to
// which all memory is new, that takes 1 ms and not 7.
//
//	summary of a page's first slice = 0 or what summary makes of the page
//	it is 0 where the page is not full, is held, or has blocks on its remote list, and for any other
//	    slice
//
// The owner writes it, in setFull. Whoever ends that makes it 0 before: the owner, the thread that
// puts the first block on the remote list, or who holds the page. Smaller segments have none: their
// pages are soon counted, and small processes do not touch the memory.
const (
	summaryLeast = 256 // slices of a segment whose pages are summed up

	// The fields of a summary begin at these bits.
	summaryClass     = 0
	summaryHint      = 7
	summaryPlacement = 10
	summarySlices    = 12
	summaryLive      = 20
	summaryFrees     = 33
)

// pageSummary is what there is to count of a page in which nothing is missing.
type pageSummary uint64

func (w pageSummary) class() uintptr { return sizeclass.Index(uintptr(w >> summaryClass)) }
func (w pageSummary) hint() uintptr  { return uintptr(w>>summaryHint) & (hintSlots - 1) }

func (w pageSummary) placement() uint32 {
	return uint32(w>>summaryPlacement) & (placementSlots - 1)
}
func (w pageSummary) bytes() uint64 {
	return uint64(w>>summarySlices) & summaryMost(summarySlices, summaryLive) << SliceShift
}
func (w pageSummary) frees() uint64 { return uint64(w >> summaryFrees) }
func (w pageSummary) allocs() uint64 {
	return w.frees() + uint64(w>>summaryLive)&summaryMost(summaryLive, summaryFrees)
}

// summaryMost is the largest value of the field from bit at on, before that from bit next on.
func summaryMost(at, next uint) uint64 { return 1<<((next-at)&63) - 1 }

// summary is 0 where the page is not to be summed up.
func (p *Page) summary() pageSummary {
	live, slices := p.Allocs-p.Frees, uint64(p.slices)
	if live > summaryMost(summaryLive, summaryFrees) || p.Frees > summaryMost(summaryFrees, 64) ||
		slices > summaryMost(summarySlices, summaryLive) {
		return 0
	}
	if atomic.LoadUint32(&p.moving) != 0 || atomic.LoadUintptr(&p.Remote)&RemoteAddr != 0 ||
		p.unmigrated != 0 || p.isNursery() {
		return 0
	}
	placement, hint, class := uint64(p.placement&(placementSlots-1)), uint64(p.Hint&(hintSlots-1)),
		uint64(p.class())
	return pageSummary(p.Frees<<summaryFrees | live<<summaryLive | slices<<summarySlices |
		placement<<summaryPlacement | hint<<summaryHint | class<<summaryClass)
}

// summarize sums a full page up.
func (p *Page) summarize() {
	if p.summed() {
		p.writeSummary()
	}
}

// writeSummary either sees what another thread is just doing to the page, or that thread sees the
// summary.
func (p *Page) writeSummary() {
	w := p.summary()
	atomic.StoreUint64(p.summaryWord(), uint64(w))
	if p.summary() != w {
		p.clearSummary()
	}
}

// summed reports whether the page's segment has summaries.
func (p *Page) summed() bool { return p.segment != nil && p.segment.slices >= summaryLeast }

func (p *Page) summaryWord() *uint64 { return (*uint64)(raw.Ptr(summaryEntry(p.Start))) }

// dropSummary has a report look at the page itself, from now on. It comes before the page changes.
func (p *Page) dropSummary() {
	if p.summed() {
		p.endSummary()
	}
}

func (p *Page) endSummary() {
	p.settleSummary()
	p.clearSummary()
}

// clearSummary is dropSummary for who has settled it. Precondition: summed.
func (p *Page) clearSummary() { atomic.StoreUint64(p.summaryWord(), 0) }

// summariesTorn is set in a forked child of a process with other threads. The kernel copies memory
// page by page while they run, so that a summary which the child has may not be of the same moment
// as the page's descriptor. The figures at the fork have gone by the summary: when it is dropped
// they are amended.
var summariesTorn bool

// settleSummary takes an inherited summary out of the figures at the fork. Precondition: summed.
func (p *Page) settleSummary() {
	if !summariesTorn || atomic.LoadUint64(p.summaryWord()) == 0 {
		return
	}
	frees := p.Frees + p.remoteCount()
	if w := atomic.SwapUint64(p.summaryWord(), 0); w != 0 { // so nothing has changed since the fork
		base.amend(pageSummary(w), p.Allocs, frees)
	}
}

// amend has the figures at the fork go by the counts of a page and not by its summary.
func (k *Counts) amend(w pageSummary, allocs, frees uint64) {
	allocs -= w.allocs()
	frees -= w.frees()
	c := w.class()
	atomic.AddUint64(&k.Allocs[c], allocs)
	atomic.AddUint64(&k.Frees[c], frees)
	t, size := &k.tier[tierOf(w.placement())], uint64(sizeclass.Size(c))
	atomic.AddUint64(&t.allocs, allocs)
	atomic.AddUint64(&t.allocBytes, allocs*size)
	atomic.AddUint64(&t.frees, frees)
	atomic.AddUint64(&t.freeBytes, frees*size)
}

// dropSummaries has a report look at all pages.
func dropSummaries() {
	for s := pool.segments; s != nil; s = s.next {
		if s.slices < summaryLeast {
			continue
		}
		for a := s.start; a != s.start+s.slices<<SliceShift; a += SliceSize {
			if summaryOf(a) != 0 {
				atomic.StoreUint64((*uint64)(raw.Ptr(summaryEntry(a))), 0)
			}
		}
	}
}

// summaryOf is the summary of the page that begins at addr, in a segment of summaryLeast slices or
// more, or 0.
func summaryOf(addr uintptr) pageSummary {
	return pageSummary(atomic.LoadUint64((*uint64)(raw.Ptr(summaryEntry(addr)))))
}

// summary counts a page at addr by its summary, and returns the page's bytes.
func (k *Counts) summary(addr uintptr, w pageSummary, e *ranges) uintptr {
	c, tier, bytes, allocs, frees := w.class(), tierOf(
		w.placement(),
	), w.bytes(), w.allocs(), w.frees()
	size := uint64(sizeclass.Size(c))
	k.Allocs[c] += allocs
	k.Frees[c] += frees
	k.Pages[c]++
	k.PageBytes[c] += bytes
	k.hints[w.hint()] += bytes
	k.tier[tier].alloc(allocs, allocs*size)
	k.tier[tier].free(frees, frees*size)
	k.charged[tier] += uintptr(bytes)
	e.add(addr, uintptr(bytes), w.placement())
	return uintptr(bytes)
}
