package alloc

import (
	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/unwind"
	"tieralloc/stats/profile"
)

// With TA_PROFILE the heap samples blocks: one in so many bytes, as package profile draws it.
//
// The blocks of a class up to the next sample are counted where the fast path does not run
// (ration.go), huge blocks by their bytes. Without TA_PROFILE nothing is counted.
//
// A sampled block is in a heap of its own for each thread and hint. The pages of that heap show the
// fast path no blocks, so that every free of a sampled block takes the slow path, which tells
// package profile. The frees of other blocks are as without a profile.
//
//	a page of a sampled heap: Carved == 0

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
	h.until -= int64(profile.Unit(uint64(n)))
	if h.until > 0 {
		return false
	}
	h.until = profile.Distance()
	return true
}

// serveProfiled is serve while Profiling.
//
//go:noinline
func (h *Heap) serveProfiled(n, how uintptr) (b uintptr) {
	if h == nil {
		return 0
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

// sampling returns the heap for a sampled block of n bytes with the hint of h. A huge block needs
// none of its own.
func (h *Heap) sampling(n uintptr) *Heap {
	if n <= sizeclass.MaxSize {
		if s := h.Thread.heapIn(sampledSlot|uintptr(h.Hint), uintptr(h.Hint)); s != nil {
			return s
		}
	}
	return h
}

// hidden reports whether the fast path is to see no block of the page, whose owner is a heap.
func (p *Page) hidden() bool { return Profiling && heapOf(p.Owner).sampled }

// sampleFreed tells the profile that the block at addr of p, whose owner word is given, is about to
// be free. now is by the exact clock.
//
//go:noinline
func sampleFreed(token uintptr, now uint64, owner, addr uintptr) {
	if owner == OwnerHuge || owner > OwnerHuge && heapOf(owner).sampled {
		profile.Freed(token, addr, !Holds(token), now)
	}
}

// sample has C note the stack of the block at b, of n bytes, when the thread leaves the slow path.
func (t *Thread) sample(b, n uintptr) { t.Sampled, t.sampledBytes = b&^ZeroBit, max(n, 1) }

// Thread.Now is by the exact clock while Profiling: most lifetimes are shorter than a tick of the
// other.
//
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
	b := profile.Block{Addr: t.Sampled, Size: uint64(t.sampledBytes), Hint: h.Hint, Now: t.Now}
	if p := Lookup(b.Addr); p != nil {
		b.Hint, b.Tier = p.Hint, uint32(tierOf(p.placement))
	}
	t.Sampled = 0
	profile.Note(t.token, !Holds(t.token), &b, t.stack, how)
	t.WalkEnd()
}
