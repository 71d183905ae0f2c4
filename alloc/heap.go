package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// Heap is one thread's set of pages for one hint. For each class it keeps a list of
// pages that have, or may have, free blocks; the head is the current page.
//
//	cur[c] == pageNone ⇔ the class has no page on its list
//	Cur[c] == cur[c], or &none: for pageNone, where fastPathDisabled(c), or by the ration
//	Direct[(n+15)/16] == Cur[sizeclass.Of(n)] for 0 <= n <= sizeclass.DirectMax
//
// The fast path pops from the pages in Cur and Direct.
//
// Full pages are on no list; their owner word carries OwnerFull. The fields that
// the fast path knows come first (interpose/layout.h is generated from them).
type Heap struct {
	_ raw.OffHeap

	// The first cache line is seldom written, because threads that free blocks of other heaps read
	// it.
	Thread *Thread // its thread
	Hint   uint32  // the hint of its blocks

	ruledHint uint32 // the thread's default hint and rules that ruled was made for
	ruledBy   uint64
	ruled     sizeclass.Set // classes for which a rule may choose another tier
	slow      sizeclass.Set // classes that may have pages of a throttled tier
	Number    uint64        // its number in the order of creation

	Out [OutSlots]*RemoteQueue // by the Number of the heap that it leads to

	Direct      [sizeclass.DirectCount]*Page
	Cur         [sizeclass.Count]*Page
	AlignedHeap *Heap             // its thread's heap for aligned blocks, or nil: see unspreadHeap
	Remotes     uint64            // blocks of other heaps freed by this thread
	Calls       [CallKinds]uint64 // calls that count themselves
	// a list is not touched before its class is opened; large classes are last
	CacheLists [sizeclass.Count]CacheList

	cur              [sizeclass.Count]*Page
	opened           sizeclass.Set // classes that ever had a page: see open
	kept             sizeclass.Set // those whose empty current page stays: see keepCurrent
	pending          uintptr       // *Page: full pages in which other threads freed blocks
	remoteQueues     uintptr       // *RemoteQueue: those that lead to the heap
	remoteQueueCount uintptr       // their number; guarded by poolLock
	hiddenBlocks     uintptr       // taken off thread-cache free lists: see fastpath.go

	Rations *Rations // while Profiling
	until   int64    // the bytes of huge blocks up to the next sample
	sampled bool     // its blocks are sampled ones

	untilLevel uint8 // at which until was drawn: see thinning

	offered  *Page  // the page that offerKept gave last
	grown    uint32 // the class that realloc last asked of growInPlace: see retireCurrent
	unspread bool   // its pages are not spread (sizeclass.Spread)
	sibling  *Heap  // the next in Thread.heaps

	// pages that were left empty on their lists, the latest before retiredAt: see retire.go
	retiredPages [retiredKnown]*Page
	retiredAt    uintptr

	granules granuleCounts
	nursery  *Page // see nursery.go
	nursed   [granuleClasses]uint8

	// What the fast path has where it has no page. Threads that share pageNone would wait for each
	// other: a processor that expects a block there takes the cache line to write to it.
	none Page

	// In these arrays, too, a class's entry is not touched before the class is opened.
	gone       [placementSlots]tally // blocks allocated and freed in returned pages, by tier
	tail       [sizeclass.Count]*Page
	fresh      [sizeclass.Count]uint8  // see freshPages
	goneBlocks [sizeclass.Count]uint64 // blocks allocated and freed in returned pages
}

// ZeroBit is set in an address returned by Malloc: the block reads as zero.
const ZeroBit = 1

var heaps uint64 // ever made

var pageNone *Page // a page without blocks that stands for "no page"

// Boot records the addresses of the structures that the C side owns: the page
// map's root and the page that never has a block, and asks the kernel for the limit of addresses.
func Boot(root, none uintptr) {
	mapRoot = root
	pageNone = (*Page)(raw.Ptr(none))
	askAddressLimit()
}

// init makes a heap of zero memory.
func (h *Heap) init(t *Thread, hint uintptr) {
	h.Thread = t
	h.Hint = uint32(hint)
	h.Number = atomic.AddUint64(&heaps, 1)
	h.ruledHint = ^uint32(0)
	for i := range h.Direct {
		h.Direct[i] = &h.none
	}
	for c := range h.Cur {
		h.Cur[c], h.cur[c] = &h.none, pageNone
	}
	if Profiling {
		h.profile()
	}
	if tiers.Throttled(homeOf(hint)) {
		h.slow = sizeclass.All()
		h.disableFastPaths()
	}
	if secure {
		h.disableFastPaths()
	}
}

// open allows class c to have pages and cached blocks. The memory of classes that a thread never
// uses stays untouched, because loops over the heap's classes skip them.
func (h *Heap) open(c uintptr) {
	if h.opened.Has(c) {
		return
	}
	h.opened.Add(c)
	s := h.cacheList(c)
	s.Credit = tickMax
	if !h.fastPathDisabled(c) {
		s.Room = cacheLimit(c)
	}
}

// current is the head of the list of class c, or pageNone.
func (h *Heap) current(c uintptr) *Page { return h.cur[sizeclass.Index(c)] }

// last is the end of the list of class c, which is not empty.
func (h *Heap) last(c uintptr) *Page { return h.tail[sizeclass.Index(c)] }

func (h *Heap) setLast(c uintptr, p *Page) { h.tail[sizeclass.Index(c)] = p }

// cacheList is the thread-cache free list of class c.
func (h *Heap) cacheList(c uintptr) *CacheList {
	if h.Rations != nil && !h.rationOf(c).shown {
		return &h.rationOf(c).List
	}
	return &h.CacheLists[sizeclass.Index(c)]
}

// freshPages points to the number of fresh pages that class c has taken, up to prefaultAfter, less
// those returned.
func (h *Heap) freshPages(c uintptr) *uint8 { return &h.fresh[sizeclass.Index(c)] }

// setCur makes p the current page of class c, or pageNone.
func (h *Heap) setCur(c uintptr, p *Page) {
	h.cur[sizeclass.Index(c)] = p
	if tiers.AnyThrottled() && p != pageNone && tiers.Throttled(tierOf(p.placement)) {
		h.disableThrottled(c)
	}
	if !h.fastPathDisabled(c) {
		h.publish(c, p)
	}
}

// publish lets the fast path have the blocks of p for class c.
func (h *Heap) publish(c uintptr, p *Page) {
	if h.Rations != nil {
		h.from(c, p)
		return
	}
	h.show(c, p)
}

// show lets the fast path pop from p, or pageNone, for class c.
func (h *Heap) show(c uintptr, p *Page) {
	if p == pageNone {
		p = &h.none
	}
	h.Cur[sizeclass.Index(c)] = p
	size := sizeclass.Size(c)
	if size > sizeclass.DirectMax {
		return
	}
	first := uintptr(0)
	if c > 0 {
		first = sizeclass.Size(c-1)/sizeclass.Granule + 1
	}
	for i := first; i <= size/sizeclass.Granule && i < sizeclass.DirectCount; i++ {
		h.Direct[i] = p
	}
}

// makeCurrent prepares the head of a list to be popped from.
func (h *Heap) makeCurrent(c uintptr, p *Page) {
	if p != pageNone {
		h.unretire(p)
		p.disarm()
		p.arm()
	}
	h.setCur(c, p)
}

// append puts p at the end of its class's list.
func (h *Heap) append(p *Page) {
	c := uintptr(p.Class)
	h.open(c)
	p.next = nil
	if h.current(c) == pageNone {
		p.prev = nil
		h.setLast(c, p)
		p.disarm()
		p.arm()
		h.setCur(c, p)
		return
	}
	t := h.last(c)
	t.next = p
	p.prev = t
	h.setLast(c, p)
	p.armEmpty()
}

// unlink takes p from its class's list.
func (h *Heap) unlink(p *Page) {
	c := uintptr(p.Class)
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		h.setLast(c, p.prev)
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

// ownerOf is the owner word of a page of class c that is not full.
func (h *Heap) ownerOf(c uintptr) uintptr {
	if isWarm(c) {
		return h.self() | OwnerWarm
	}
	return h.self()
}

// fullOwnerOf is the owner word of a page of class c that is full.
func (h *Heap) fullOwnerOf(c uintptr) uintptr {
	if Profiling {
		return h.self() | OwnerFull | OwnerWarm
	}
	return h.ownerOf(c) | OwnerFull
}

func (h *Heap) self() uintptr { return uintptr(unsafe.Pointer(h)) }

// Memory of threads, heaps and remote-free queues, from the memory for descriptors (pagemap.go).
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
		if !firstMetaTaken {
			raw.FaultIn(uintptr(unsafe.Pointer(&pool)), firstOfPool)
		}
		if t = metaAlloc(threadBytes); t != 0 {
			h = metaAlloc(heapBytes)
		}
	default:
		h = metaAlloc(heapBytes)
	}
	return t, h
}
