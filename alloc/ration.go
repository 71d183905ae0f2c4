package alloc

import (
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/stats/profile"
)

// While Profiling, the blocks of a class up to the next sample are drawn as a number (left). The
// fast path does not count; so it is shown no more blocks than that, a ration: the current page,
// with a trigger on the blocks that come back to it, and the thread-cache free list, which takes
// Credit blocks, because while Profiling the owner word of every full page has OwnerWarm.
//
//	a class that is shown:
//		blocks on the list + Credit + of the page + slack/stride < left - popped
//		of the page = its free blocks + Trigger - Frees, or Budget if it is not in Cur
//	any other:
//		Cur[c] == &none, CacheLists[c].Room == CacheLists[c].Head == 0
//		Budget < left - popped
//	popped = From.Allocs + pops from the list - seen
//
// A slow path takes the blocks that it puts in reach of the fast path off the slack. While some is
// left, what was popped need not be counted.
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
	slack  int64     // bytes; 0 unless From is shown
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

// serveWithin is serve while the slack of the class lasts. It reports false, and does nothing, if
// the request is to be counted first.
func (h *Heap) serveWithin(n, how uintptr) (b uintptr, ok bool) {
	if n > sizeclass.MaxSize || h.Rations == nil {
		return 0, false
	}
	c := sizeclass.Of(n)
	r := h.rationOf(c)
	if r.slack <= 0 {
		return 0, false
	}
	p := r.From
	pops, carved, frees := p.Allocs+h.pops(c), p.carved, p.Frees
	b = h.serve(n, how)
	if r.From == p {
		r.slack -= int64(p.carved-carved) + int64(p.Frees-frees)*int64(p.stride())
	}
	if r.slack <= 0 || p.Allocs+h.pops(c) != pops+1 {
		r.left--
		h.served(b, n)
	}
	return b, true
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
	r.From, r.Budget, r.slack = p, 0, 0
	h.show(c, pageNone)
}

// conceal hides p if it is shown: its trigger is gone.
func (h *Heap) conceal(p *Page) {
	if h.Rations == nil {
		return
	}
	if r := h.rationOf(p.class()); r.From == p {
		r.slack = 0
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
	r.slack = 0
	if p != pageNone {
		r.slack = spare / 4 * int64(p.stride())
		spare -= spare / 4
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
	r.Budget, r.slack = budget, 0
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
			h.rationOf(c).Budget, h.rationOf(c).slack = 0, 0
			h.cacheList(c).Credit = 1
			h.show(c, pageNone)
		}
	}
}
