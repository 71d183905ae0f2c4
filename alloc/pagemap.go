package alloc

import (
	"sync/atomic"
	"unsafe"

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
// pages (summary.go), one for each slice.
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
