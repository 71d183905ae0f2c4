package alloc

import (
	"sync/atomic"
	"unsafe"

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
	profile.Freed(t.token, from, !Holds(t.token), t.Now)
	if h.due(n) {
		t.sample(to, n)
	}
}

// hidden reports whether the fast path is to see no block of the page, whose owner is a heap.
func (p *Page) hidden() bool {
	return Profiling &&
		(p.role == roleSampled || heapOf(atomic.LoadUintptr(&p.Owner)).sampled)
}

// reveal follows the free of the last block of a page in use.
func (p *Page) reveal() {
	if p.role != roleSampled {
		return
	}
	p.role = 0
	if p.subreleased == 0 && p.Magic != 0 {
		p.Carved = uint64(p.carved)
	}
}

// sampleFreed tells the profile that the block at addr of p is about to be free. now is by the
// exact clock.
//
//go:noinline
func (p *Page) sampleFreed(token uintptr, now uint64, addr uintptr) {
	owner := atomic.LoadUintptr(&p.Owner)
	if owner == OwnerHuge || owner > OwnerHuge && p.hidden() {
		profile.Freed(token, addr, !Holds(token), now)
	}
}

// sample has C note the stack of the block at b, of n bytes, when the thread leaves the slow path.
func (t *Thread) sample(b, n uintptr) {
	t.Sampled, t.sampledBytes = b&^ZeroBit, max(n, 1)
	p := Lookup(t.Sampled)
	if p == nil || p.Owner <= OwnerHuge || heapOf(p.Owner).sampled || p.isNursery() {
		return
	}
	p.role = roleSampled
	if p.Magic != 0 {
		p.Carved = 0
	}
}

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
	b := profile.Block{Addr: t.Sampled, Size: uint64(t.sampledBytes), Hint: h.Hint, Now: t.Now,
		Level: t.sampledLevel}
	if p := Lookup(b.Addr); p != nil {
		b.Hint, b.Tier = p.Hint, uint32(tierOf(p.placement))
	}
	t.Sampled = 0
	profile.Note(t.token, !Holds(t.token), &b, t.stack, how)
	t.WalkEnd()
}

// While Profiling, the blocks of a class up to the next sample are drawn as a number (left). The
// fast path does not count; so it is shown no more blocks than that, a ration: the current page,
// with a trigger on the blocks that come back to it, and the thread-cache free list, which takes
// Credit blocks, because while Profiling the owner word of every full page has OwnerWarm.
//
//	a class that is shown:
//		blocks on the list + Credit + of the page < left - popped
//		of the page = its free blocks + Trigger - Frees, or Budget if it is not in Cur
//	any other:
//		Cur[c] == &none, CacheLists[c].Room == CacheLists[c].Head == 0
//		Budget < left - popped
//	popped = From.Allocs + pops from the list - seen
//
// Near the sample nothing is shown, and C pops from the page and the list, Budget times
// (interpose/libc_profile.h). When a slow path runs, countPops subtracts what was popped, and
// ration shows what is left.

// Rations is the rations of a heap, by class.
type Rations struct {
	_        raw.OffHeap
	Of       [sizeclass.Count]Ration
	thinning thinning // of a thread's base heap
}

// Ration is what may be used of a class before the next sample.
type Ration struct {
	From   *Page // the current page of the class; pageNone, or nil, where its fast path is disabled
	Budget uint64
	List   CacheList // the thread-cache free list of a class that is not shown
	left   int64     // blocks up to and including the next one sampled; 0: not drawn
	seen   uint64
	forks  uint32 // profile.Forks when left was drawn
	shown  bool
	level  uint8 // at which left was drawn: see thinning
}

// A class is shown if at least so many frees may follow.
const rationLeast = 16

// profile prepares a new heap for samples. If there is no memory for its rations, every call takes
// the slow path. What a class needs is not touched before the class is.
func (h *Heap) profile() {
	if h.sampled {
		return
	}
	h.distance()
	bytes := raw.RoundUp(unsafe.Sizeof(Rations{}), raw.Page)
	h.Rations = (*Rations)(raw.Ptr(raw.Map(bytes)))
	h.sampled = h.Rations == nil
}

// rationOf is the ration of class c. Precondition: h.Rations != nil.
func (h *Heap) rationOf(c uintptr) *Ration { return &h.Rations.Of[sizeclass.Index(c)] }

func (r *Ration) page() *Page {
	if r.From == nil {
		return pageNone
	}
	return r.From
}

// dueOf counts a block of class c, and reports whether it is to be sampled.
func (h *Heap) dueOf(c uintptr) bool {
	due := h.dueNext(c)
	r := h.rationOf(c)
	if r.left--; due {
		h.Thread.sampledLevel = r.level
		h.draw(r, c)
	}
	return due
}

// dueNext reports whether the next block of class c is to be sampled.
func (h *Heap) dueNext(c uintptr) bool {
	h.countPops(c)
	r := h.rationOf(c)
	if r.left == 0 {
		h.draw(r, c)
	}
	return r.left <= 1
}

// draw draws the number of blocks of class c up to and including the next one sampled.
func (h *Heap) draw(r *Ration, c uintptr) {
	r.level = h.Thread.thinningLevel()
	r.left = profile.Blocks(int64(sizeclass.Size(c)), r.level)
}

// countPops counts what was popped. In a forked child it draws anew. That is right at any time,
// because how far away a sample is does not depend on the one before.
func (h *Heap) countPops(c uintptr) {
	r := h.rationOf(c)
	pops := r.page().Allocs + h.pops(c)
	r.left -= int64(pops - r.seen)
	r.seen = pops
	if r.forks != profile.Forks {
		r.forks = profile.Forks
		r.left = 0
	}
}

// served follows a request of n bytes, for which the slow path has popped the block at b. It is
// counted (dueOf) for the class of the request; that of the block may be a larger one.
func (h *Heap) served(b, n uintptr) {
	if h.Rations == nil {
		return
	}
	c := sizeclass.Of(min(n, sizeclass.MaxSize))
	p := Lookup(b)
	if p != nil && p.Owner > OwnerHuge && heapOf(p.Owner) == h && !p.isNursery() {
		h.popped(p.class())
		if p.class() != c {
			h.ration(p.class())
		}
	}
	if n <= sizeclass.MaxSize {
		h.ration(c)
	}
}

// popped has countPops not count one block of class c. Where the fast path is disabled it would
// count none: nothing is on the list, and From is pageNone.
func (h *Heap) popped(c uintptr) {
	if !h.fastPathDisabled(c) {
		h.rationOf(c).seen++
	}
}

// from makes p the page that the blocks of class c come from. None is shown before the next ration.
func (h *Heap) from(c uintptr, p *Page) {
	h.countPops(c)
	r := h.rationOf(c)
	r.seen += p.Allocs - r.page().Allocs
	r.From, r.Budget = p, 0
	h.show(c, pageNone)
}

// conceal hides p if it is shown: its trigger is gone.
func (h *Heap) conceal(p *Page) {
	if h.Rations != nil && h.rationOf(p.class()).From == p {
		h.show(p.class(), pageNone)
	}
}

// ration shows the fast path the blocks of class c that are due before the next sample.
func (h *Heap) ration(c uintptr) {
	if h.Rations == nil || h.fastPathDisabled(c) || !h.opened.Has(c) {
		return
	}
	h.countPops(c)
	r := h.rationOf(c)
	if h != h.Thread.Base {
		h.withhold(c, 0)
		return
	}
	rest := r.left - 1
	spare := rest - int64(cacheLimit(c)-h.cacheList(c).Room)
	p := r.page()
	r.From = p
	if p.slices == 1 {
		spare -= int64(p.listed())
	} else {
		p = pageNone
	}
	if spare < rationLeast {
		h.withhold(c, uint64(max(rest, 0)))
		return
	}
	r.showList(&h.CacheLists[sizeclass.Index(c)])
	s := h.cacheList(c)
	if isWarm(c) {
		s.Credit = min(max(s.Credit, 1), spare/2)
	} else {
		s.Credit = spare / 2
	}
	r.Budget = uint64(spare - s.Credit)
	if p != pageNone {
		if !p.armedWithin(r.Budget) {
			p.armAfter(r.Budget)
		}
		r.Budget = 0
	}
	h.show(c, p)
}

// withhold shows the fast path nothing of class c. C may pop as many blocks as the budget says.
func (h *Heap) withhold(c uintptr, budget uint64) {
	r := h.rationOf(c)
	r.hideList(&h.CacheLists[sizeclass.Index(c)])
	r.Budget = budget
	h.show(c, pageNone)
}

func (r *Ration) showList(s *CacheList) {
	if !r.shown {
		r.List.moveTo(s)
		r.shown = true
	}
}

func (r *Ration) hideList(s *CacheList) {
	if r.shown {
		s.moveTo(&r.List)
		r.shown = false
	}
}

// moveTo moves the blocks to another list. Each list keeps its pops, because other threads add them
// up (report.go).
func (s *CacheList) moveTo(to *CacheList) {
	to.Head, to.Room, to.Credit = s.Head, s.Room, s.Credit
	s.Head, s.Room, s.Credit = 0, 0, 0
}

// pops is how many blocks of class c thread-cache free lists have given out.
func (h *Heap) pops(c uintptr) uint64 {
	n := h.CacheLists[sizeclass.Index(c)].Pops
	if h.Rations != nil {
		n += h.rationOf(c).List.Pops
	}
	return n
}

// forked has a forked child draw its next samples anew (countPops), or all children of a process
// would take theirs at the same points. The fast path is shown almost nothing until then. The
// signal handler in which the child was forked may have interrupted it, so no list is moved here.
func (t *Thread) forked() {
	for h := t.heaps; h != nil && h.Rations != nil; h = h.sibling {
		h.distance()
		for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
			h.rationOf(c).Budget = 0
			h.cacheList(c).Credit = 1
			h.show(c, pageNone)
		}
	}
}
