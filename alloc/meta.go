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
	heapBytes = (unsafe.Sizeof(Heap{}) + 640 + raw.Page - 1) &^ (raw.Page - 1)

	threadBytes      = (unsafe.Sizeof(Thread{}) + 63) &^ 63
	remoteQueueBytes = unsafe.Sizeof(RemoteQueue{})
	segBytes         = (unsafe.Sizeof(segment{}) + 63) &^ 63
)

func addrOf(p *Page) uintptr { return uintptr(unsafe.Pointer(p)) }

// metaArea is what is left of a chunk.
type metaArea struct{ next, left uintptr }

// cut cuts n zero bytes, a multiple of a cache line, from the current chunk.
// It returns 0 when the kernel has no memory. Precondition: poolLock is held.
func (m *metaArea) cut(n uintptr) uintptr {
	if m.left < n {
		chunk := raw.Map(metaChunk)
		if chunk == 0 && dropGuardPages(metaChunk) {
			chunk = raw.Map(metaChunk)
		}
		if chunk == 0 {
			return 0
		}
		mapped(metaChunk)
		m.next, m.left = chunk, metaChunk
	}
	a := m.next
	m.next += n
	m.left -= n
	return a
}

// metaAlloc is cut from the chunk that descriptors of all kinds share.
func metaAlloc(n uintptr) uintptr { return pool.meta.cut(n) }

// Where there are many threads, each has its memory pages for itself, with its heap's untouched end
// on the last of them. (Else these pages would be shared with the beginning of the next thread's.)
const crowdBytes = (threadBytes + unsafe.Sizeof(Heap{}) + raw.Page - 1) &^ (raw.Page - 1)

// metaHeap is zero memory for a heap, and before it for a thread if there is to be one; or 0.
// Precondition: poolLock is held.
func metaHeap(thread bool) (t, h uintptr) {
	switch {
	case heaps >= nurseryAfter:
		if t = pool.crowd.cut(crowdBytes); t != 0 {
			h = t + threadBytes
		}
	case thread:
		if t = metaAlloc(threadBytes); t != 0 {
			h = metaAlloc(heapBytes)
		}
	default:
		h = metaAlloc(heapBytes)
	}
	return t, h
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
