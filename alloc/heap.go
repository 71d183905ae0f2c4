package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Heap is one thread's set of pages. For each class it keeps a list of pages that
// have, or may have, free blocks; the head is the current page, from which the
// fast path pops.
//
//	Cur[c] == pageNone ⇔ the class has no page on its list
//	Direct[(n+15)/16] == Cur[Class(n)] for n <= DirectMax
//	kept = Σ bytes of the pages on lists that were left there empty
//
// Full pages are on no list; their owner word carries OwnerFull. The fields that
// the fast path knows come first (interpose/layout.h is generated from them).
type Heap struct {
	_ raw.OffHeap

	Direct    [DirectCount]*Page
	Cur       [Classes]*Page
	SpillHead [Classes]uintptr // see spill.go
	SpillRoom [Classes]uint64
	SpillPops [Classes]uint64
	Remotes   uint64            // blocks of other heaps freed by this thread
	Calls     [CallKinds]uint64 // calls that count themselves
	Busy      uintptr           // 1 while the owner is in the slow path
	Now       uint64            // monotonic time in nanoseconds, set on entry to the slow path

	tail    [Classes]*Page
	retired [Classes]uint64 // blocks allocated and freed in pages given back
	pending uintptr         // *Page: pages that other threads have news of
	token   uintptr         // the owning thread's, for locks
	kept    uintptr
	state   uint32
	_       uint32
	collect uint64 // when to look for empty pages next
	next    *Heap  // in the list of abandoned heaps
	all     *Heap  // in the list of every heap
}

// Indices of Heap.Calls beyond the functions' own (stats.Call…), from which the
// calls of malloc and free follow: each other function that allocates or frees
// counts its calls, and these say where a call was not one block.
const (
	CallFreeNull      = 24 + iota // free of NULL or of a block not ours
	CallOtherFreeNull             // the same by delete, free_sized, …
	CallMallocFailed
	CallOtherFailed
	CallReallocFailed // part of OtherFailed
	CallReallocAllocs // blocks allocated by realloc
	CallReallocFrees
	CallKinds = 32
)

// States of a heap. A frozen one belonged to a thread that a fork left behind, in
// the middle of who knows what: its blocks stay readable and freeing them is
// safe, but nothing is ever allocated from it again.
const (
	heapOwned = iota
	heapAbandoned
	heapFrozen
)

const (
	keptMax = 4 << 20 // bytes of empty pages that a heap keeps
	ZeroBit = 1       // set in an address returned by Malloc: the block reads as zero
	// maxRequest is more than an address space holds and leaves room to round up.
	maxRequest = 1 << 46
)

var (
	pageNone  *Page // never has a block; it stands for "no page" without a test
	heapsLock raw.Lock
	abandoned *Heap // guarded by heapsLock
)

// Boot records the addresses of the structures that the C side owns: the page
// map's root and the page that never has a block.
func Boot(root, none uintptr) {
	mapRoot = root
	pageNone = (*Page)(raw.Ptr(none))
}

// Acquire gives the calling thread a heap: an abandoned one, or a new one. It
// returns nil when the kernel has no memory.
func Acquire(token uintptr) *Heap {
	var h *Heap
	if heapsLock.Take(token) {
		h = abandoned
		if h != nil {
			abandoned = h.next
			h.token = token
			atomic.StoreUint32(&h.state, heapOwned)
		}
		heapsLock.Release()
	}
	if h == nil {
		h = newHeap(token)
	}
	stats.Put1(logDebug, stats.EventThread, uintptr(unsafe.Pointer(h)), 0)
	return h
}

func newHeap(token uintptr) *Heap {
	if !poolLock.Take(token) {
		return emergencyHeap(token)
	}
	h := (*Heap)(raw.Ptr(metaAlloc(heapBytes)))
	if h != nil {
		h.init(token)
		h.all = pool.heaps
		pool.heaps = h
	}
	poolLock.Release()
	return h
}

// init makes a heap of zero memory.
func (h *Heap) init(token uintptr) {
	h.token = token
	for i := range h.Direct {
		h.Direct[i] = pageNone
	}
	for c := range h.Cur {
		h.Cur[c] = pageNone
		h.SpillRoom[c] = spillLimit(uintptr(c))
	}
}

// Abandon gives back what the heap does not need and leaves the rest to the next
// thread that wants a heap.
func Abandon(h *Heap) {
	stats.Put1(logDebug, stats.EventThreadEnd, h.self(), 0)
	h.collectPages(true)
	purgeDue(h.token, h.Now)
	Leave(h)
}

// Leave is Abandon without the tidying: for a thread that only borrowed the heap.
func Leave(h *Heap) {
	if !heapsLock.Take(h.token) {
		return
	}
	atomic.StoreUint32(&h.state, heapAbandoned)
	h.next = abandoned
	abandoned = h
	heapsLock.Release()
}

// serviceAbandoned takes back, for heaps without a thread, what other threads
// have freed into them. Each heap is detached while it is worked on, so a new
// thread cannot adopt it then.
func serviceAbandoned(token uintptr, now uint64) {
	if !heapsLock.Take(token) {
		return
	}
	list := abandoned
	abandoned = nil
	for h := list; h != nil; h = h.next {
		h.token = token
		h.Now = now
		atomic.StoreUint32(&h.state, heapOwned)
	}
	heapsLock.Release()
	for h := list; h != nil; {
		next := h.next
		h.collectPages(true)
		Leave(h)
		h = next
	}
}

// setCur makes p the current page of class c, or pageNone.
func (h *Heap) setCur(c uintptr, p *Page) {
	h.Cur[c&(Classes-1)] = p
	size := ClassSize(c)
	if size > DirectMax {
		return
	}
	first := uintptr(0)
	if c > 0 {
		first = ClassSize(c-1)/Granule + 1
	}
	for i := first; i <= size/Granule && i < DirectCount; i++ {
		h.Direct[i] = p
	}
}

// makeCurrent prepares the head of a list to be popped from.
func (h *Heap) makeCurrent(c uintptr, p *Page) {
	if p != pageNone {
		h.unkeep(p)
		p.Trigger = neverEmpty
	}
	h.setCur(c, p)
}

// unkeep ends a page's time as one that was left empty on its list.
func (h *Heap) unkeep(p *Page) {
	if p.Trigger == keptEmpty {
		h.kept -= p.bytes()
	}
}

// keptEmpty as a Trigger marks an empty page that stays on its list. No count of
// frees gets there.
const keptEmpty = ^uint64(1)

// append puts p at the end of its class's list.
func (h *Heap) append(p *Page) {
	c := uintptr(p.Class)
	p.next = nil
	if h.Cur[c&(Classes-1)] == pageNone {
		p.prev = nil
		h.tail[c&(Classes-1)] = p
		p.Trigger = neverEmpty
		h.setCur(c, p)
		return
	}
	t := h.tail[c&(Classes-1)]
	t.next = p
	p.prev = t
	h.tail[c&(Classes-1)] = p
	p.Trigger = p.Allocs
}

// unlink takes p from its class's list.
func (h *Heap) unlink(p *Page) {
	c := uintptr(p.Class)
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		h.tail[c&(Classes-1)] = p.prev
	}
	if p.prev != nil {
		p.prev.next = p.next
		return
	}
	next := p.next
	if next == nil {
		next = pageNone
	}
	h.makeCurrent(c, next)
}

func (h *Heap) self() uintptr { return uintptr(unsafe.Pointer(h)) }
