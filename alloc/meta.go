package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Descriptors and heaps are cut from chunks mapped for them alone. Freed page
// and segment descriptors are kept on lists; nothing is unmapped, because a
// thread that lost a race may still read one.
const (
	metaChunk = 256 << 10
	pageBytes = unsafe.Sizeof(Page{})
	// The room behind a heap keeps the descriptors that follow it, whose lists the fast path
	// writes, from having the same lowest 12 address bits as the heap's table of pages: the
	// processor would take a load from one for a load of what was just stored to the other.
	heapBytes = (unsafe.Sizeof(Heap{})+63)&^63 + 640

	threadBytes = (unsafe.Sizeof(Thread{}) + 63) &^ 63
	ringBytes   = unsafe.Sizeof(Ring{})
	runsBytes   = (unsafe.Sizeof(Runs{}) + 63) &^ 63
	segBytes    = (unsafe.Sizeof(segment{}) + 63) &^ 63
)

func addrOf(p *Page) uintptr { return uintptr(unsafe.Pointer(p)) }

// metaAlloc cuts n zero bytes, a multiple of a cache line, from the current chunk.
// It returns 0 when the kernel has no memory. Precondition: poolLock is held.
func metaAlloc(n uintptr) uintptr {
	if pool.metaLeft < n {
		chunk := raw.Map(metaChunk)
		if chunk == 0 && yieldGuards(metaChunk) {
			chunk = raw.Map(metaChunk)
		}
		if chunk == 0 {
			return 0
		}
		mapped(metaChunk)
		pool.metaNext, pool.metaLeft = chunk, metaChunk
	}
	a := pool.metaNext
	pool.metaNext += n
	pool.metaLeft -= n
	return a
}

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
