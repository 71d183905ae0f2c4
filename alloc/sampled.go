package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
	"tieralloc/stats/profile"
)

// With TA_PROFILE the heap samples blocks: one in so many bytes, as package profile draws it.
//
// The blocks of a class up to the next sample are counted where the fast path does not run
// ([Rations]), huge blocks by their bytes. Without TA_PROFILE nothing is counted.
//
// A sampled block is in a heap of its own for each thread and hint, unless its class is large. The
// pages of that heap, and a page of a large class until the owner finds it empty (reveal), show the
// fast path no blocks, so that every free of a sampled block takes the slow path, which tells
// package profile. The frees of other blocks are as without a profile.
//
//	a page of a heap of sampled blocks, or with roleSampled: Carved == 0

// Profiling is set at boot if the heap samples blocks.
var Profiling bool

const sampledSlot = hintSlots // of Thread.Heaps

// due counts a request of n bytes, and reports whether it is to be sampled.
func (h *Heap) due(n uintptr) bool {
	if n <= sizeclass.MaxSize && h.Rations != nil {
		return h.dueOf(sizeclass.Of(n))
	}
	if n > maxRequest {
		return false
	}
	h.until -= int64(sizeclass.Rounded(n))
	if h.until > 0 {
		return false
	}
	h.Thread.sampledLevel = h.untilLevel
	h.distance()
	return true
}

// serveProfiled is serve while Profiling.
//
//go:noinline
func (h *Heap) serveProfiled(n, how uintptr) (b uintptr) {
	if h == nil {
		return 0
	}
	if b, ok := h.serveWithin(n, how); ok {
		return b
	}
	if h.due(n) {
		b = h.sampling(n).serve(n, how)
		h.Thread.sample(b, n)
	} else {
		b = h.serve(n, how)
	}
	h.served(b, n)
	return b
}

// alignedProfiled is aligned while Profiling.
//
//go:noinline
func (h *Heap) alignedProfiled(align, n, how uintptr) (b uintptr) {
	if h == nil {
		return 0
	}
	if h.due(n) {
		b = h.sampling(max(n, align)).aligned(align, n, how)
		h.Thread.sample(b, n)
	} else {
		b = h.aligned(align, n, how)
	}
	h.served(b, n)
	return b
}

// large reports whether sampled blocks of class c are in the heap of the others. Of large blocks
// many are sampled, and few lie in a page: two heaps would keep twice the memory, and a block that
// grows would leave the pages that stay for it (retire.go).
func large(c uintptr) bool { return c > sizeclass.LastShort }

// sampling returns the heap for a sampled block of n bytes with the hint of h. A huge block needs
// none of its own.
func (h *Heap) sampling(n uintptr) *Heap {
	if n <= sizeclass.MaxSize && !large(sizeclass.Of(n)) {
		if s := h.Thread.heapIn(sampledSlot|uintptr(h.Hint), uintptr(h.Hint)); s != nil {
			return s
		}
	}
	return h
}

// resized notes that the block at from is at to now, n bytes long. h counts that as a request.
func (h *Heap) resized(from, to, n uintptr) {
	t := h.Thread
	profile.Freed(t.token, from, !Holds(t.token))
	if h.due(n) {
		t.sample(to, n)
	}
}

// hidden reports whether the fast path is to see no block of the page, whose owner is a heap.
func (p *Page) hidden() bool {
	return Profiling &&
		(p.role == roleSampled || heapOf(atomic.LoadUintptr(&p.Owner)).sampled)
}

// reveal shows the fast path the blocks of a page again. Precondition: none of them is in use.
func (p *Page) reveal() {
	if p.role != roleSampled {
		return
	}
	p.role = 0
	if p.subreleased == 0 {
		p.Carved = uint64(p.carved)
	}
}

// sampleFreed tells the profile that the block at addr of p is about to be free.
//
//go:noinline
func (p *Page) sampleFreed(token, addr uintptr) {
	owner := atomic.LoadUintptr(&p.Owner)
	if owner == OwnerHuge || owner > OwnerHuge && p.hidden() {
		profile.Freed(token, addr, !Holds(token))
	}
}

// sample has C note the stack of the block at b, of n bytes, when the thread leaves the slow path,
// and hides its page.
func (t *Thread) sample(b, n uintptr) {
	t.Sampled, t.sampledBytes = b&^ZeroBit, max(n, 1)
	p := Lookup(t.Sampled)
	if p == nil || p.Owner <= OwnerHuge || heapOf(p.Owner).sampled || p.isNursery() {
		return
	}
	p.role, p.Carved = roleSampled, 0
}

// A thread that is in a signal handler, and whose interrupted code has a lock of the heap, does not
// wait for the profile: the thread that has that may wait for the lock, in a signal handler too.

// SampleBegin begins the note of the block that the thread of h has sampled. It returns the walk in
// which the caller is to find its stack before it calls SampleEnd, or nil if the sample is lost.
func SampleBegin(h *Heap) *unwind.Stack {
	stack := h.Thread.WalkBegin()
	if stack == nil {
		h.Thread.Sampled = 0
		profile.Miss()
	}
	return stack
}

// SampleEnd ends the note. how is how the walk has ended.
func SampleEnd(h *Heap, how uintptr) {
	t := h.Thread
	b := profile.Block{Addr: t.Sampled, Size: uint64(t.sampledBytes), Hint: h.Hint,
		Now: raw.Clock(raw.ClockMono), Level: t.sampledLevel}
	if p := Lookup(b.Addr); p != nil {
		b.Hint, b.Tier = p.Hint, uint32(tierOf(p.placement))
	}
	t.Sampled = 0
	profile.Note(t.token, !Holds(t.token), &b, t.stack, how)
	t.WalkEnd()
}
