package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// The blocks of a page: its owner takes them off its list of free blocks (pop), puts them back
// (push), cuts them from memory that was never put to use (carve), and takes what other threads
// have freed (takeRemote).

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

// When a class of small blocks takes one fresh page after another, several memory pages are faulted
// in by one system call: a call for four takes three quarters of the time of four faults. Blocks of
// a memory page or more are not prefaulted, because the program may leave them untouched.
const (
	prefaultBytes = 16 << 10 // at once
	// fresh pages without prefault, so that the prefaulted unused memory of a class is a small part
	// of it
	prefaultAfter = 4

	zeroPrefault = 2 // Page.zero: the part not yet carved reads as zero and is prefaulted
)

var prefaultRefused bool // an old kernel (EINVAL) or a filter of system calls has refused

// prefaults notes that class c takes a fresh page of blocks of size bytes, and reports whether the
// page is to be prefaulted.
func (h *Heap) prefaults(c, size uintptr) bool {
	n := h.freshPages(c)
	if *n < prefaultAfter {
		*n++
		return false
	}
	return size < raw.Page && !prefaultRefused && !pressed()
}

// fewAddresses is the limit of the address space, in bytes, up to which waste at the ends of pages
// matters.
const fewAddresses = 512 << 20

// wantsDense reports whether the next page of class c is to be a dense one, which wastes little at
// its end and may be larger: if addresses are few and the class already has several pages.
func (h *Heap) wantsDense(c uintptr) bool {
	few := addressLimit != 0 && addressLimit < fewAddresses
	return few && !secure && !watchedAlone(c) && *h.freshPages(c) == prefaultAfter
}

// prefault is called when the page is carved between the offsets at and end. If the kernel refuses,
// the memory is faulted in when it is touched, and so are huge pages.
func (p *Page) prefault(at, end uintptr) {
	start := p.spanStart()
	from := start
	if at != 0 {
		from = raw.RoundUp(p.Start+at, prefaultBytes)
	}
	if from >= p.Start+end || p.segment.hugeAt(from) {
		return
	}
	errno := raw.Populate(from, min(prefaultBytes, start+p.bytes()-from))
	if errno != 0 && errno != uintptr(syscall.ENOMEM) && errno != uintptr(syscall.EAGAIN) {
		prefaultRefused = true
	}
}
