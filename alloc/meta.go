package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
)

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
