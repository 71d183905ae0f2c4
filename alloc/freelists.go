package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A free block is on one of three lists: that of its page, the page's list of blocks that other
// threads have freed (the remote list), or the thread-cache free list of its class.
//
// The owner of a page takes blocks off the page's list (pop), puts them back (push), cuts them from
// memory that was never put to use (carve), and takes what is on the remote list (takeRemote).

// FreeKey is the second word of every free block that has been on a list, so
// that freeing a block twice is seen at the price of one comparison. It is no
// canonical address and no likely number; where a live block holds it all the
// same, the free lists are searched before anything is said.
const FreeKey = 0xf4ee_b10c_5a1e_d0b5

// pop takes a block from the free list, or returns 0.
func (p *Page) pop() uintptr {
	b := p.Free
	if b != 0 {
		p.Free = encodeLink(b, raw.Load(b))
		if p.Magic == 0 && p.Free != 0 && !p.isSlot(p.Free) {
			corrupt(p.caller(), p, b, foundLink)
		}
		p.Allocs++
		raw.Store(b+8, 0)
	}
	return b
}

// listed is how many blocks the free list has, at most: with parts subreleased it has fewer.
func (p *Page) listed() uint64 {
	stride := uint64(p.stride())
	if stride == 0 { // pageNone
		return 0
	}
	return uint64(p.carved)/stride - (p.Allocs - p.Frees)
}

// push puts a block on the free list. Precondition: the caller owns the page.
func (p *Page) push(b uintptr) {
	raw.Store(b, encodeLink(b, p.Free))
	raw.Store(b+8, FreeKey)
	p.Free = b
	p.Frees++
}

// carveDirty is how many blocks of a memory page or more are put on a page's list at once, at most,
// where its memory has been in use before: then their first words are worth a call less. Not more
// than have been handed out already, for some of the memory may be untouched all the same.
const carveDirty = 8

// carve puts never-used blocks on the free list, which must be empty, and takes
// one. A fresh block of a memory page or more is handed out alone and untouched; zero
// tells whether it reads as zero.
func (p *Page) carve() (b uintptr, zero bool) {
	if p.Magic == 0 {
		return p.carveSlots(), false
	}
	size := p.stride()
	end := size * uintptr(p.blocks)
	at := uintptr(p.carved)
	if at >= end {
		return 0, false
	}
	b = p.Start + at
	n := sizeclass.CarveCount(size)
	if n == 1 && p.zero == 0 {
		n = min(carveDirty, 1+uintptr(p.Allocs))
	}
	if at+n*size > end {
		n = 1 // one by one towards the end: a division to find how many is not worth it
	}
	p.carved = uint32(at + n*size)
	if p.zero == zeroPrefault {
		p.prefault(at, at+n*size)
	}
	if p.subreleased == 0 && !p.hidden() {
		p.Carved = uint64(p.carved)
	}
	p.Allocs++
	if n == 1 && p.zero != 0 {
		return b, true
	}
	raw.Store(b+8, 0)
	if n == 1 {
		return b, false
	}
	next := b + size
	p.Free = next
	for ; n > 2; n-- {
		raw.Store(next, next+size)
		raw.Store(next+8, FreeKey)
		next += size
	}
	raw.Store(next, 0)
	raw.Store(next+8, FreeKey)
	return b, false
}

// popUntouched is carve with ZeroBit added to a block that reads as zero.
func (p *Page) popUntouched() uintptr {
	b, zero := p.carve()
	if zero {
		b |= ZeroBit
	}
	return b
}

// fresh reports whether the memory that carve hands out next was never used. For slots
// it cannot tell.
func (p *Page) fresh() bool {
	return p.zero != 0 && uintptr(p.carved) < p.stride()*uintptr(p.blocks)
}

// freeRemote returns a block to the heap that owns its page, by one push on the page's remote list.
// If the owner asked for a notification, the page also goes on the owner's pending list, once:
// RemoteNotify becomes RemoteInFlight in the same swap, and only the owner clears that flag.
//
// The page cannot return to the pool in between: before the push the block is in use, and after it
// the flag keeps the page.
func freeRemote(r *granuleCounts, p *Page, b uintptr) {
	if p.isNursery() {
		freeNurseryRemote(r, p, b)
		return
	}
	pushRemote(p, b, b, 1)
}

// pushRemote puts n blocks, linked from first to last, on the page's remote list.
func pushRemote(p *Page, first, last, n uintptr) {
	raw.Store(last+8, FreeKey)
	if summariesTorn && p.summed() {
		p.settleSummary()
	}
	for {
		old := atomic.LoadUintptr(&p.Remote)
		raw.Store(last, encodeLink(last, old&RemoteAddr))
		next := first | (old>>RemoteShift+n)<<RemoteShift | old&RemoteInFlight
		if old&RemoteNotify != 0 {
			next |= RemoteInFlight
		}
		if atomic.CompareAndSwapUintptr(&p.Remote, old, next) {
			if old&RemoteNotify != 0 {
				if p.summed() {
					p.clearSummary()
				}
				notify(p)
			}
			return
		}
	}
}

func notify(p *Page) {
	owner := heapOf(atomic.LoadUintptr(&p.Owner))
	for {
		head := atomic.LoadUintptr(&owner.pending)
		p.setNextPending((*Page)(raw.Ptr(head)))
		if atomic.CompareAndSwapUintptr(&owner.pending, head, addrOf(p)) {
			return
		}
	}
}

// drainPending empties the pending list: a full page with blocks on its remote list returns to its
// class's list or to the pool.
func (h *Heap) drainPending() {
	list := atomic.SwapUintptr(&h.pending, 0)
	for list != 0 {
		p := (*Page)(raw.Ptr(list))
		list = addrOf(p.nextPending())
		heapOf(p.Owner).relinkPending(p) // of another heap where ta_move has passed it on
	}
}

// relinkPending removes p from the pending list, where it is because other threads have freed
// blocks of the full page. It returns to its class's list.
func (h *Heap) relinkPending(p *Page) {
	p.dropSummary()
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if atomic.CompareAndSwapUintptr(&p.Remote, old, old&^RemoteInFlight) {
			break
		}
	}
	p.takeRemote()
	atomic.StoreUintptr(&p.Owner, h.ownerOf(uintptr(p.Class)))
	h.append(p)
	if p.Frees == p.Allocs {
		h.emptied(p)
	}
}

// takeRemote moves the remote list to the free list, which must be empty, and
// reports whether there is a block now.
func (p *Page) takeRemote() bool {
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if old&RemoteAddr == 0 {
			return false
		}
		if atomic.CompareAndSwapUintptr(&p.Remote, old, old&RemoteFlags) {
			n := uint64(old >> RemoteShift)
			raw.Check(n <= p.Allocs-p.Frees, "a page got back more blocks than it gave")
			p.Free = old & RemoteAddr
			p.Frees += n
			return true
		}
	}
}

// popRemote takes a block that another thread freed, or returns 0. The free list must be empty.
func (p *Page) popRemote() uintptr {
	if !p.takeRemote() {
		return 0
	}
	p.arm() // its trigger may have been passed
	return p.pop()
}

// isBlock reports whether addr is the start of a block ever put to use.
func (p *Page) isBlock(addr uintptr) bool {
	off := uint64(addr - p.Start)
	return off < uint64(p.carved) && off*p.Magic < p.Magic
}

// onList reports whether b is on the list that begins at head. Every step is
// checked, so a damaged list ends the walk.
func (p *Page) onList(head, b uintptr) bool {
	for i := uint32(0); i < p.blocks && head != 0 && p.isBlock(head); i++ {
		if head == b {
			return true
		}
		head = raw.Load(head)
	}
	return false
}

// isFree reports whether b is a free block of the page, which belongs to the heap at
// owner. Its cost is bounded by
// the number of blocks; the caller has seen b's second word hold FreeKey.
func (p *Page) isFree(owner, b uintptr) bool {
	return p.onList(p.Free, b) || p.onList(atomic.LoadUintptr(&p.Remote)&RemoteAddr, b) ||
		heapOf(owner).isCached(b, uintptr(p.Class)) || heapOf(owner).onRemoteQueue(b)
}

// The thread-cache free list of a class takes blocks that the owner frees into full pages, and
// hands them out again when the current page has none. Both happen in C. So a thread whose pages
// are all full, and that frees and allocates in turn, neither relinks pages nor takes the slow
// path. For its page a cached block is in use.
//
// The lists of the warm classes also take blocks of pages that are not full, and malloc tries them
// before the page: such pages have few blocks each, and a block that was freed recently is still in
// the processor's cache.
//
//	blocks on the list = cacheLimit - Room; none in a class
//	whose fast path is disabled, or that is not open
//	Pops = blocks ever given out from it
//
// It fits half a cache line, because each call uses it while pages are full.
type CacheList struct {
	Head uintptr // linked by their first words
	Room uint64
	Pops uint64
	// in a warm class: how many more blocks of pages that are not full it takes before the thread
	// reads the clock (purgeticker.go)
	Credit int64
}

const (
	cacheListBytes = 128 << 10
	cacheListMin   = 1
	cacheListMax   = 64

	warmFirst = 32 // the class after that of sizeclass.DirectMax
	warmEnd   = 64 // the first class after the warm ones: above 16 KiB
)

// isWarm reports whether the thread-cache free list of class c takes blocks of pages that are not
// full. If spans are demoted none does, because blocks of a span that is away must not be handed
// out again (emptied).
func isWarm(c uintptr) bool { return c >= warmFirst && c < warmEnd && !tiers.Migrating() }

func cacheLimit(c uintptr) uint64 {
	size := sizeclass.Size(c)
	if size == 0 { // never; it tells the compiler that size is not 0
		return 0
	}
	return min(max(uint64(cacheListBytes/size), cacheListMin), cacheListMax)
}

// cached returns the number of blocks on the list of class c.
func (h *Heap) cached(c uintptr) uint64 {
	if h.fastPathDisabled(c) || !h.opened.Has(c) {
		return 0
	}
	return cacheLimit(c) - h.cacheList(c).Room
}

// popCached takes a block from the list of class c, or returns 0.
func (h *Heap) popCached(c uintptr) uintptr {
	s := h.cacheList(c)
	b := s.Head
	if b != 0 {
		s.Head = raw.Load(b)
		s.Room++
		s.Pops++
		raw.Store(b+8, 0)
	}
	return b
}

// flushCached returns the cached blocks of class c to their pages.
func (h *Heap) flushCached(c uintptr) {
	s := h.cacheList(c)
	b := s.Head
	if b == 0 {
		return
	}
	s.Head = 0
	if !h.fastPathDisabled(c) {
		s.Room = cacheLimit(c)
	}
	h.freeAll(b)
}

// flushLarge returns the cached blocks of large classes to their pages before the heap takes fresh
// memory, and reports whether there were any. A program that grows an array by copying it passes
// through all of these classes. Otherwise a block would stay on the list of each.
func (h *Heap) flushLarge() (some bool) {
	c := sizeclass.Of(cacheListBytes) + 1
	for c = h.opened.Next(c); c < sizeclass.Count; c = h.opened.Next(c + 1) {
		some = some || h.cacheList(c).Head != 0
		h.flushCached(c)
	}
	return some
}

// freeAll frees the blocks of the heap's own pages on the list that begins at b.
func (h *Heap) freeAll(b uintptr) {
	for b != 0 {
		next := raw.Load(b)
		h.freeLocal(Lookup(b), b)
		b = next
	}
}

// isCached reports whether b is on the thread-cache free list of class c of a heap, which may
// be another thread's.
func (h *Heap) isCached(b, c uintptr) bool {
	at := h.cacheList(c).Head
	for i := 0; i < cacheListMax && at != 0; i++ {
		if at == b {
			return true
		}
		if p := Lookup(at); p == nil || !p.isBlock(at) {
			return false
		}
		at = raw.Load(at)
	}
	return false
}
