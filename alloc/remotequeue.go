package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// A RemoteQueue carries blocks that one thread frees to the heap of another that owns them. It is a
// bounded queue with one producer. The producer neither swaps nor waits. The owner gets the blocks'
// addresses without reading the blocks, which are in the other processor's cache.
//
//	0 <= Tail - Head <= RemoteQueueSlots
//	Slots[i % RemoteQueueSlots] for Head <= i < Tail are blocks, in use to their pages
//	Seen <= Head
//
// Only the producer, the thread whose Heap.Out has the queue, writes Tail, Seen and Slots. The
// thread that advances Head gets the blocks that it passes: the owner, or a thread that is short of
// memory (abandoned.go). A block for which there is no room goes to its page (freeRemote).
//
// Remote-free queues are made for pairs of heaps that exchange many blocks. They are never
// unmapped, nor are heaps.
type RemoteQueue struct {
	_ raw.OffHeap

	Owner *Heap
	Tail  uint64 // blocks ever put in
	Seen  uint64 // Head when the producer read it last
	_     [5]uint64

	Head uint64       // blocks ever taken out
	next *RemoteQueue // in the owner's list
	_    [6]uint64

	Slots [RemoteQueueSlots]uintptr
}

const (
	RemoteQueueSlots = 256
	OutSlots         = 16 // the remote-free queues that a heap puts into
	remoteQueuesMost = 16 // that lead to a heap: each call of its slow path reads all of them
	RemoteQueueAfter = 32 // frees of other threads' blocks before a thread gets another queue

	remoteQueueBatch = 32 // blocks taken out at once
)

// Connect makes the remote-free queue from the heap h to the owner of the page p, unless h has a
// queue in that slot.
func Connect(h *Heap, p *Page) {
	owner := atomic.LoadUintptr(&p.Owner)
	if owner <= OwnerHuge {
		return
	}
	o := heapOf(owner)
	at := &h.Out[o.Number&(OutSlots-1)]
	if o.Thread == h.Thread || *at != nil {
		return
	}
	*at = o.newRemoteQueue(h.Thread.token)
}

// newRemoteQueue returns a new remote-free queue that leads to the heap, or nil.
func (h *Heap) newRemoteQueue(token uintptr) *RemoteQueue {
	if !poolLock.Take(token) {
		return nil
	}
	r := (*RemoteQueue)(nil)
	if h.remoteQueueCount < remoteQueuesMost {
		r = (*RemoteQueue)(raw.Ptr(metaAlloc(remoteQueueBytes)))
	}
	if r != nil {
		h.remoteQueueCount++
		r.Owner = h
		r.next = h.firstRemoteQueue()
		atomic.StoreUintptr(&h.remoteQueues, uintptr(unsafe.Pointer(r)))
	}
	poolLock.Release()
	return r
}

func (h *Heap) firstRemoteQueue() *RemoteQueue {
	return (*RemoteQueue)(raw.Ptr(atomic.LoadUintptr(&h.remoteQueues)))
}

// drainQueues frees, for the thread t, the blocks on the heap's remote-free queues.
func (h *Heap) drainQueues(t *Thread) {
	var blocks [remoteQueueBatch]uintptr
	for r := h.firstRemoteQueue(); r != nil; r = r.next {
		for n := uint64(remoteQueueBatch); n == remoteQueueBatch; {
			n = r.take(&blocks)
			for i := uint64(0); i < n; i++ {
				t.freeDrained(h, blocks[i&(remoteQueueBatch-1)])
			}
		}
	}
}

// take takes up to remoteQueueBatch blocks out of the remote-free queue.
func (r *RemoteQueue) take(blocks *[remoteQueueBatch]uintptr) (n uint64) {
	for {
		head := atomic.LoadUint64(&r.Head)
		n = min(less(atomic.LoadUint64(&r.Tail), head), remoteQueueBatch)
		for i := uint64(0); i < n; i++ {
			blocks[i&(remoteQueueBatch-1)] = r.Slots[(head+i)&(RemoteQueueSlots-1)]
		}
		if n == 0 || atomic.CompareAndSwapUint64(&r.Head, head, head+n) {
			return n
		}
	}
}

// freeDrained frees b, which is marked free and came on a queue to h: it goes to the thread-cache
// free list or to its page.
func (t *Thread) freeDrained(h *Heap, b uintptr) {
	p := Lookup(b)
	if p == nil || atomic.LoadUintptr(&p.Owner) <= OwnerHuge {
		return // a double free with a write in between: the page has gone meanwhile
	}
	o := heapOf(atomic.LoadUintptr(&p.Owner)) // not h if ta_move has passed the page on
	switch s := h.cacheList(p.class()); {
	case o.Thread != t:
		freeRemote(&t.Base.granules, p, b)
	case o == h && s.Room != 0 && isWarm(uintptr(p.Class)) && (h.Rations == nil || s.Credit > 1):
		if h.Rations != nil {
			s.Credit-- // the block may be popped before the sample
		}
		s.Room--
		raw.Store(b, s.Head)
		s.Head = b
	default:
		o.freeLocal(p, b)
	}
}

// onRemoteQueue reports whether b is on a remote-free queue to the heap.
func (h *Heap) onRemoteQueue(b uintptr) bool {
	for r := h.firstRemoteQueue(); r != nil; r = r.next {
		for at, tail := atomic.LoadUint64(&r.Head), atomic.LoadUint64(&r.Tail); at < tail; at++ {
			if r.Slots[at&(RemoteQueueSlots-1)] == b {
				return true
			}
		}
	}
	return false
}
