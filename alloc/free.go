package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// Outcomes of Free and Check.
const (
	FreeOK      = iota
	FreeForeign // no page of this heap has the address
	FreeStale   // its page is free: the block was freed before
	FreeInside  // not the start of a block
	FreeDouble  // on a free list already
	FreeUsed    // likewise, and looked at: of Usable alone
	FreeDamaged // its canary is written over. This and the next only with TA_SECURE=1
	FreeKind    // made by another family of functions
	FreeSize    // of another size than the caller says
)

// Free takes back what the fast path cannot: blocks of full pages and of other
// heaps, huge blocks, and whatever is suspicious. Nothing is changed unless the
// outcome is FreeOK. h is owned by the calling thread. how is the function that frees
// (see howCall), size what it says of the block, or NoSize, and name the function's name, a C
// string.
func Free(h *Heap, addr, how, size, name uintptr) uintptr {
	if secure {
		h.Thread.running = running{name: name, arg: addr}
		h.Thread.audit(addr)
	}
	p := Lookup(addr)
	if why := check(p, addr); why != FreeOK {
		return why
	}
	owner := atomic.LoadUintptr(&p.Owner)
	switch {
	case owner == OwnerZero:
		return zeroFree(h.Thread.token, p, addr)
	case owner == OwnerHuge:
		if secure {
			if why := p.guardPagesFree(&h.Thread.running, how, size); why != FreeOK {
				return why
			}
		}
		h.Thread.tick()
		if !hugeFree(h.Thread.token, p, h.Thread.Now) {
			return FreeStale
		}
	case secure:
		if why := p.freeSlot(&h.Thread.running, addr, how, size); why != FreeOK {
			return why
		}
		h.keep(p, addr)
		h.Thread.tick()
	case freeInner(h, p, addr):
		h.Thread.tick()
	}
	return FreeOK
}

// FreePoor is Free for the thread named token that gets no heap, because the kernel has no
// memory for one. The block goes to its owner, as another thread's does.
func FreePoor(token, addr, how, size, name uintptr) uintptr {
	in := running{name: name, arg: addr}
	p := Lookup(addr)
	if why := check(p, addr); why != FreeOK {
		return why
	}
	switch owner := atomic.LoadUintptr(&p.Owner); {
	case owner == OwnerZero:
		return zeroFree(token, p, addr)
	case owner == OwnerHuge:
		if secure {
			if why := p.guardPagesFree(&in, how, size); why != FreeOK {
				return why
			}
		}
		if !hugeFree(token, p, 0) { // as the oldest: the time is not known
			return FreeStale
		}
		return FreeOK
	case secure:
		if why := p.freeSlot(&in, addr, how, size); why != FreeOK {
			return why
		}
		p.enlist(addr)
	}
	if poolLock.Take(token) {
		freeRemote(&pool.count.granules, p, addr)
		poolLock.Release()
	} else {
		freeRemote(nil, p, addr)
	}
	return FreeOK
}

// freeInner puts a block of p on a list of the page's, and reports whether the page is one
// of the thread's own.
func freeInner(h *Heap, p *Page, addr uintptr) bool {
	owner := atomic.LoadUintptr(&p.Owner)
	o := heapOf(owner)
	if o.Thread != h.Thread {
		freeRemote(&h.granules, p, addr)
		if !secure { // else it counted when it came into quarantine
			h.Remotes++
		}
		return false
	}
	if owner&OwnerFull != 0 {
		o.flushCached(uintptr(p.Class)) // the fast path has found it full
	}
	o.freeLocal(p, addr)
	return true
}

// heapOf is the heap of an owner word that is one.
func heapOf(owner uintptr) *Heap { return (*Heap)(raw.Ptr(owner &^ ownerFlags)) }

// freeLocal frees a block of one of the heap's own pages.
func (h *Heap) freeLocal(p *Page, b uintptr) {
	if p.isNursery() {
		h.freeNursery(p, b)
		return
	}
	if p.Owner&OwnerFull != 0 && !h.unfull(p, b) {
		return
	}
	if p.subreleased != 0 && h.current(p.class()) == p {
		p.relist()
	}
	p.push(b)
	switch {
	case p.Frees == p.Allocs:
		h.emptied(p)
	case p.fired():
		p.arm()
	}
}

// Check tells what addr is, as Free would, and changes nothing.
func Check(addr uintptr) uintptr { return check(Lookup(addr), addr) }

func check(p *Page, addr uintptr) uintptr {
	if p == nil {
		return FreeForeign
	}
	owner := atomic.LoadUintptr(&p.Owner)
	switch owner {
	case ownerNone:
		return FreeStale
	case OwnerZero:
		return p.zeroCheck(addr)
	case OwnerHuge:
		if addr < p.Start { // a block may begin within a slice
			return FreeForeign
		}
		if addr != p.Start {
			return FreeInside
		}
		return FreeOK
	}
	if p.Magic == 0 {
		return p.checkSlot(addr)
	}
	if !p.isBlock(addr) {
		return FreeInside
	}
	if p.isNursery() {
		switch t, u := p.table(), p.granule(addr); {
		case t.free.has(u):
			return FreeDouble
		case t.cont.has(u):
			return FreeInside
		}
	}
	if p.isSubreleased(addr) || raw.Load(addr+8) == FreeKey && p.isFree(owner, addr) {
		return FreeDouble
	}
	return FreeOK
}

// unfull puts a full page that is about to get back its block b on its list. It reports
// false where the page waits on the pending list: there another thread may have it in
// hand and take it for its own (steal.go). The block has then joined the others that wait,
// and the page is not to be touched any more.
func (h *Heap) unfull(p *Page, b uintptr) bool {
	p.dropSummary()
	for {
		old := atomic.LoadUintptr(&p.Remote)
		next := old &^ RemoteNotify
		if old&RemoteInFlight != 0 {
			raw.Store(b+8, FreeKey)
			raw.Store(b, encodeLink(b, old&RemoteAddr))
			next = b | (old>>RemoteShift+1)<<RemoteShift | RemoteInFlight
		}
		switch {
		case !atomic.CompareAndSwapUintptr(&p.Remote, old, next):
		case old&RemoteInFlight != 0:
			return false
		default:
			atomic.StoreUintptr(&p.Owner, h.ownerOf(uintptr(p.Class)))
			h.append(p)
			return true
		}
	}
}

// PageEmpty is called when the last block of a page of the thread of h came back, and for
// a current page and a thread-cache free list as purgeticker.go says.
func PageEmpty(h *Heap, p *Page) {
	of := heapOf(p.Owner)
	if s := of.cacheList(p.class()); s.Credit <= 0 && !p.allFree() {
		h.Thread.tickWarm(s)
		return
	}
	if of.current(p.class()) == p {
		h.Thread.tickCurrent(p)
		of.retireCurrent(p)
	} else if !of.emptied(p) {
		h.Thread.tick()
	}
}

// emptied decides what becomes of an empty page. A current one is for retireCurrent. Others stay
// while the thread keeps little (retire.go); else they go to the pool. One that lies in another
// tier than its hint's goes in any case. It reports whether the page stays.
func (h *Heap) emptied(p *Page) bool {
	away := p.away() // not to be allocated from again
	if !away && h.current(p.class()) == p {
		h.retireCurrent(p)
		return true
	}
	if !away && p.isRetired() {
		return true
	}
	if !away && h.retire(p) {
		return true
	}
	return !h.release(p, h.Thread.Now)
}

// retireCurrent is called when a current page may have become empty. Of those of several slices the
// thread leaves one empty, the last, so that large blocks which come and go cost little; the one
// before it goes to the pool, where all classes can have it. Programs that let arrays grow pass
// through many of these classes.
//
//	Frees < Trigger <= max(Allocs, Frees+1) for a current page of several slices, but for
//	the one of retiredHeap and retiredClass
func (h *Heap) retireCurrent(p *Page) {
	if p.slices == 1 {
		return
	}
	if !p.allFree() {
		p.arm()
		return
	}
	t := h.Thread
	of, c := t.retiredHeap, t.retiredClass
	t.retiredHeap, t.retiredClass = h, p.Class
	if of == nil {
		return
	}
	q := of.current(uintptr(c))
	if q != p && q != pageNone && !(q.allFree() && of.release(q, t.Now)) {
		q.arm()
	}
}

// release gives an empty page of the list back to the pool. since is when it became
// empty. It reports false, and does nothing, where detach does and when the calling thread
// is itself in the middle of the pool (a signal handler).
func (h *Heap) release(p *Page, since uint64) bool {
	if poolLock.Refuses(h.Thread.token) || !h.detach(p) {
		return false
	}
	spanFree(h.Thread.token, p, since)
	return true
}

// detach takes an empty page out of the heap, which has then nothing to do with it but for what it
// remembers of the blocks it had. It reports false, and does nothing, when another thread still has
// a hand on the page and for an emergency span.
func (h *Heap) detach(p *Page) bool {
	if atomic.LoadUintptr(&p.Remote)&RemoteFlags != 0 || p.segment == nil {
		return false
	}
	h.unretire(p)
	atomic.AddUintptr(&h.Thread.pages, ^uintptr(0))
	p.disarm()
	gone := &h.gone[tierOf(p.placement)] // once: another thread may just be moving the page
	if p.isNursery() {
		gone.granules(p)
		h.endNursery()
	} else {
		h.unlink(p)
	}
	c := p.class()
	fresh := h.freshPages(c)
	*fresh -= min(*fresh, 1)
	h.goneBlocks[c] += p.Allocs
	gone.alloc(p.Allocs, p.Allocs*uint64(p.Size))
	gone.free(p.Allocs, p.Allocs*uint64(p.Size))
	p.forget()
	return true
}

// collectPages brings the heap up to date with what other threads freed and gives
// back pages that are wholly free: with all set every one, else those that have been
// so for a while, and subreleases pages that rest.
func (h *Heap) collectPages(all bool) {
	given := uintptr(0)
	if atomic.LoadUintptr(&h.pending) != 0 {
		h.drainPending()
	}
	if h.hiddenBlocks != 0 {
		h.freeHidden()
	}
	if h.remoteQueues != 0 {
		h.drainQueues(h.Thread)
	}
	for c := h.opened.Next(0); c < sizeclass.Count; c = h.opened.Next(c + 1) {
		h.flushCached(c)
		first := h.cur[c]
		if first == pageNone {
			continue
		}
		for p := first; p != nil; {
			next := p.next
			if p.allFree() {
				h.collectEmpty(p, all, p == first)
			} else if !all && p != first {
				given += h.Thread.restPage(p, false)
			}
			p = next
		}
	}
	given += h.collectNursery(all)
	countSubreleased(h.Thread.token, given)
}

// collectEmpty gives back one empty page, or lets it stay for now. A current page
// goes when nothing was allocated from it since it was looked at last.
func (h *Heap) collectEmpty(p *Page, all, current bool) {
	switch {
	case all:
		h.release(p, h.Thread.Now)
	case current && p.unused():
		h.release(p, 0) // free for longer than the delay
	case current:
		p.noteUse()
	case !p.isRetired(): // emptied by other threads
		h.release(p, h.Thread.Now)
	case h.Thread.Now >= p.freeSince()+PurgeDelay:
		h.release(p, p.freeSince())
	}
}
