package alloc

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// Memory of threads, heaps and remote-free queues, from the memory for descriptors (meta.go).
const (
	// The room behind a heap keeps the descriptors that follow it, whose lists the fast path
	// writes, from having the same lowest 12 address bits as the heap's table of pages: the
	// processor would take a load from one for a load of what was just stored to the other.
	heapBytes = (unsafe.Sizeof(Heap{}) + 640 + raw.Page - 1) &^ (raw.Page - 1)

	threadBytes      = (unsafe.Sizeof(Thread{}) + 63) &^ 63
	remoteQueueBytes = unsafe.Sizeof(RemoteQueue{})
)

// If there are many threads, each has memory pages of its own, so that the untouched end of its
// heap does not share a page with the beginning of the next thread.
const crowdBytes = (threadBytes + unsafe.Sizeof(Heap{}) + raw.Page - 1) &^ (raw.Page - 1)

// metaHeap returns zero memory for a heap, and, with thread set, for a thread before it; or 0.
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
