package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// The figures of a page for a report do not change while the page is full, and in a large heap most
// pages are full. So each page has a word beside the page map that sums up its figures. For 8 GiB a
// report reads 1 MiB of these words instead of 24 MiB of descriptors. In a forked child, where each
// page of memory is touched for the first time, that takes 1 ms instead of 7.
//
//	summary of a page's first slice = 0 or the result of summary for the page
//	it is 0 if the page is not full, is pinned, or has blocks on its remote list, and for any
//	    other slice
//
// The owner writes it, in setFull. A thread that ends that state sets it to 0 first: the owner, the
// thread that puts the first block on the remote list, or the thread that pins the page. Small
// segments have no summaries, because their pages are counted quickly, and small processes then do
// not touch the memory.
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

// pageSummary holds the figures of a full page.
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

// summary returns the summary of the page, or 0 if the page has none.
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

// summarize writes the summary of a full page.
func (p *Page) summarize() {
	if p.summed() {
		p.writeSummary()
	}
}

// writeSummary stores the summary and then checks the page again, so that either it sees a
// concurrent change of the page, or the other thread sees the summary.
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

// dropSummary makes reports read the page itself from now on. It is called before the page changes.
func (p *Page) dropSummary() {
	if p.summed() {
		p.endSummary()
	}
}

func (p *Page) endSummary() {
	p.settleSummary()
	p.clearSummary()
}

// clearSummary is dropSummary after settleSummary. Precondition: summed.
func (p *Page) clearSummary() { atomic.StoreUint64(p.summaryWord(), 0) }

// summariesTorn is set in a forked child of a process with other threads. The kernel copies memory
// page by page while these run, so the child's copy of a summary and of the page's descriptor may
// differ. The figures at the fork are those of the summary; when it is dropped they are amended.
var summariesTorn bool

// settleSummary removes an inherited summary from the figures at the fork. Precondition: summed.
func (p *Page) settleSummary() {
	if !summariesTorn || atomic.LoadUint64(p.summaryWord()) == 0 {
		return
	}
	frees := p.Frees + p.remoteCount()
	if w := atomic.SwapUint64(p.summaryWord(), 0); w != 0 { // the page is unchanged since the fork
		base.amend(pageSummary(w), p.Allocs, frees)
	}
}

// amend replaces a page's summary by its counts in the figures at the fork.
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

// dropSummaries makes reports read all pages.
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

// summaryOf returns the summary of the page that begins at addr, in a segment of summaryLeast
// slices or more, or 0.
func summaryOf(addr uintptr) pageSummary {
	return pageSummary(atomic.LoadUint64((*uint64)(raw.Ptr(summaryEntry(addr)))))
}
