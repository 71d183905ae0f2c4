package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// The page map leads from an address to its page's descriptor in two loads: a
// root with one entry for each 4 GiB of the 47-bit address space, in the
// library's .bss, and leaves with one entry for each slice, mapped when first
// needed and never given back. An entry is 0 where there is no page, so a foreign
// address is refused without touching its memory.
//
// Of a span in use every slice has an entry; of a free span the first and the
// last; of a huge block the first. Behind its entries a leaf has the summaries of
// pages, one for each slice.
const (
	RootEntries = 1 << (47 - RootShift)
	RootShift   = 32
	LeafEntries = 1 << (RootShift - SliceShift)
	leafBytes   = 2 * LeafEntries * 8
)

// mapRoot is the address of the root. The fast path in C owns it.
var mapRoot uintptr

// Lookup is the descriptor that the page map has for addr, or nil.
func Lookup(addr uintptr) *Page {
	if addr>>RootShift >= RootEntries {
		return nil
	}
	leaf := atomic.LoadUintptr((*uintptr)(raw.Ptr(mapRoot + addr>>RootShift*8)))
	if leaf == 0 {
		return nil
	}
	return (*Page)(raw.Ptr(raw.Load(leafEntry(leaf, addr))))
}

func leafEntry(leaf, addr uintptr) uintptr {
	return leaf + (addr>>SliceShift)%LeafEntries*8
}

// summaryEntry is where the summary of the page that begins at addr is. Precondition: its leaf
// exists.
func summaryEntry(addr uintptr) uintptr {
	leaf := atomic.LoadUintptr((*uintptr)(raw.Ptr(mapRoot + addr>>RootShift*8)))
	return leafEntry(leaf, addr) + LeafEntries*8
}

// mapReserve makes sure that n bytes at start have leaves. It reports false when
// the kernel gives no memory for them. It may be called without poolLock.
func mapReserve(start, n uintptr) bool {
	for a := start >> RootShift; a <= (start+n-1)>>RootShift; a++ {
		if a >= RootEntries {
			return false
		}
		entry := (*uintptr)(raw.Ptr(mapRoot + a*8))
		if atomic.AddUintptr(entry, 0) != 0 { // see raw.FaultIn
			continue
		}
		leaf := raw.Map(leafBytes)
		if leaf == 0 {
			return false
		}
		if !mapInstall(a, leaf) {
			unmapFresh(leaf, leafBytes)
		}
	}
	return true
}

// mapInstall makes fresh memory the leaf of entry a of the root, or reports false when that has
// one.
func mapInstall(a, leaf uintptr) bool {
	if !atomic.CompareAndSwapUintptr((*uintptr)(raw.Ptr(mapRoot+a*8)), 0, leaf) {
		return false
	}
	mapped(leafBytes)
	return true
}

// mapSet writes one entry. A thread that finds it sees all earlier writes to the descriptor:
// amd64 makes stores visible in their order, and a locked one would cost as much as all the
// rest of a page of 16 slices. Precondition: its leaf exists.
func mapSet(addr uintptr, p *Page) {
	leaf := raw.Load(mapRoot + addr>>RootShift*8)
	raw.Store(leafEntry(leaf, addr), addrOf(p))
}

// mapFill gives every slice of a span the same entry.
func mapFill(p *Page, entry *Page) {
	for a, i := p.Start, uint32(0); i < p.slices; i++ {
		mapSet(a, entry)
		a += SliceSize
	}
}

// mapEnds marks a free span at its ends.
func mapEnds(p *Page) {
	mapSet(p.Start, p)
	mapSet(p.Start+p.bytes()-SliceSize, p)
}

// Descriptors and heaps are cut from chunks mapped for them alone. Freed page
// and segment descriptors are kept on lists; nothing is unmapped, because a
// thread that lost a race may still read one. The first chunk is a variable, so small
// programs need no mapping and no page table for it.
const (
	metaChunk = 256 << 10
	metaFirst = 64 << 10
	pageBytes = unsafe.Sizeof(Page{})
	segBytes  = (unsafe.Sizeof(segment{}) + 63) &^ 63
)

func addrOf(p *Page) uintptr { return uintptr(unsafe.Pointer(p)) }

// metaArea is what is left of a chunk.
type metaArea struct{ next, left uintptr }

var (
	firstMeta      [metaFirst]byte
	firstMetaTaken bool
)

// cut cuts n zero bytes, a multiple of a cache line, from the current chunk.
// It returns 0 when the kernel has no memory. Precondition: poolLock is held.
func (m *metaArea) cut(n uintptr) uintptr {
	if m.left < n && !m.renew(n) {
		return 0
	}
	a := m.next
	m.next += n
	m.left -= n
	return a
}

// renew gives the area a chunk of at least so many bytes, or reports false when the kernel has no
// memory.
func (m *metaArea) renew(least uintptr) bool {
	if !firstMetaTaken {
		firstMetaTaken = true
		m.next = (uintptr(unsafe.Pointer(&firstMeta)) + 63) &^ 63
		m.left = metaFirst - 64
		return true
	}
	for n := uintptr(metaChunk); n >= least; n /= 4 {
		chunk := raw.Map(n)
		if chunk == 0 && dropGuardPages(n) {
			chunk = raw.Map(n)
		}
		if chunk != 0 {
			mapped(n)
			m.next, m.left = chunk, n
			return true
		}
	}
	return false
}

// mayCut reports whether n bytes can be cut, now or from a chunk that the kernel would map.
// Precondition: poolLock is held.
func (m *metaArea) mayCut(n uintptr) bool { return m.left >= n || reservable(n) }

// metaAlloc is cut from the chunk that descriptors of all kinds share.
func metaAlloc(n uintptr) uintptr { return pool.meta.cut(n) }

// newDescriptor is a page descriptor with unknown contents, or nil.
// Precondition: poolLock is held.
func newDescriptor() *Page {
	if p := pool.freePages; p != nil {
		pool.freePages = p.next
		return p
	}
	return (*Page)(raw.Ptr(metaAlloc(pageBytes)))
}

// freeDescriptor keeps a descriptor for reuse. It reads as no one's page from
// now on. Precondition: poolLock is held.
func freeDescriptor(p *Page) {
	p.Owner = ownerNone
	p.state = spanClean
	p.segment = nil
	p.Start, p.Size, p.slices, p.blocks, p.Carved = 0, 0, 0, 0, 0
	p.next = pool.freePages
	pool.freePages = p
}

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
