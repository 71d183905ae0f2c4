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
	FreeUsed    // the same, as a result of Usable
	FreeDamaged // its canary was overwritten. This and the next only with TA_SECURE=1
	FreeKind    // allocated by another family of functions
	FreeSize    // of another size than the caller states
)

// Free frees what the fast path cannot: blocks of full pages and of other heaps, huge blocks, and
// invalid addresses. Nothing is changed unless the outcome is FreeOK. h is owned by the calling
// thread. how identifies the function that frees (see howCall), size is the size that it states, or
// NoSize, and name is its name, a C string.
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
	if Profiling {
		p.sampleFreed(h.Thread.token, addr)
	}
	switch {
	case owner == OwnerZero:
		return zeroFree(h.Thread.token, p, addr)
	case owner == OwnerHuge:
		if secure {
			if why := p.guardPagesFree(&h.Thread.running, how, size); why != FreeOK {
				return why
			}
		}
		if !hugeFree(h.Thread.token, p, h.Thread.Now) {
			return FreeStale
		}
		h.Thread.tick()
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

// FreePoor is Free for a thread, named token, that gets no heap, because the kernel has no memory
// for one. The block goes to its owner, as a block of another thread does.
func FreePoor(token, addr, how, size, name uintptr) uintptr {
	in := running{name: name, arg: addr}
	p := Lookup(addr)
	if why := check(p, addr); why != FreeOK {
		return why
	}
	owner := atomic.LoadUintptr(&p.Owner)
	if Profiling {
		p.sampleFreed(token, addr)
	}
	switch {
	case owner == OwnerZero:
		return zeroFree(token, p, addr)
	case owner == OwnerHuge:
		if secure {
			if why := p.guardPagesFree(&in, how, size); why != FreeOK {
				return why
			}
		}
		if !hugeFree(token, p, 0) { // time 0: the time is not known, so it counts as the oldest
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
		freeRemote(&pool.bySize.granules, p, addr)
		poolLock.Release()
	} else {
		freeRemote(nil, p, addr)
	}
	return FreeOK
}

// freeInner puts a block of p on a list of the page, and reports whether the page is the thread's
// own.
func freeInner(h *Heap, p *Page, addr uintptr) bool {
	owner := atomic.LoadUintptr(&p.Owner)
	o := heapOf(owner)
	if o.Thread != h.Thread {
		freeRemote(&h.granules, p, addr)
		if !secure { // else it was counted when it entered the quarantine
			h.Remotes++
		}
		return false
	}
	if owner&OwnerFull != 0 {
		o.flushCached(uintptr(p.Class)) // the fast path has found the list full
	}
	o.freeLocal(p, addr)
	return true
}

// heapOf returns the heap of an owner word. Precondition: the word has one.
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
	if Profiling && p.fired() {
		h.conceal(p)
	}
	switch {
	case p.Frees == p.Allocs:
		p.reveal()
		h.emptied(p)
	case p.fired():
		p.arm()
	}
}

// Check returns what Free would return for addr, and changes nothing.
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
		if addr < p.Start { // the first block may begin within a slice
			return FreeForeign
		}
		if addr != p.block() {
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

// unfull puts a full page, to which block b is about to return, on its class's list. It reports
// false if the page is on the pending list, where another thread may be taking it (abandoned.go).
// The block then goes on the page's remote list, and the caller must not touch the page any more.
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

// PageEmpty is called when the last block of a page of h's thread was freed, and for a current page
// and a thread-cache free list as purgeticker.go says.
func PageEmpty(h *Heap, p *Page) {
	of := heapOf(p.Owner)
	if s := of.cacheList(p.class()); s.Credit <= 0 && !p.allFree() {
		h.Thread.tickWarm(s)
		if Profiling {
			of.ration(p.class())
		}
		return
	}
	if c := p.class(); of.current(c) == p {
		h.Thread.tickCurrent(p)
		if of.current(c) == p { // the tick may have given it back
			of.retireCurrent(p)
		}
		if Profiling {
			of.ration(c)
		}
	} else if !of.emptied(p) {
		h.Thread.tick()
	}
}

// emptied decides whether an empty page stays in its heap, and reports that. A current page is
// retireCurrent's. Other pages stay while the thread keeps little (retire.go); otherwise they go to
// the pool. A page that is away from its hint's tier always goes.
func (h *Heap) emptied(p *Page) bool {
	away := p.away() // the page must not be allocated from again
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

// release returns an empty page on the list to the pool. since is when it became empty. It reports
// false, and does nothing, if detach does, and in a signal handler that interrupted the pool on its
// own thread.
func (h *Heap) release(p *Page, since uint64) bool {
	if poolLock.Refuses(h.Thread.token) || !h.detach(p) {
		return false
	}
	spanFree(h.Thread.token, p, since)
	return true
}

// detach removes an empty page from the heap, which only keeps the counts of its blocks. It reports
// false, and does nothing, if another thread still uses the page, and for an emergency span.
func (h *Heap) detach(p *Page) bool {
	if atomic.LoadUintptr(&p.Remote)&RemoteFlags != 0 || p.segment == nil {
		return false
	}
	h.unretire(p)
	atomic.AddUintptr(&h.Thread.pages, ^uintptr(0))
	p.disarm()
	gone := &h.gone[tierOf(p.placement)] // read once: another thread may be moving the page
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

// collectPages takes back blocks that other threads freed, and returns empty pages to the pool:
// with all set all of them, otherwise those that have been empty for a while. It also subreleases
// pages that rest.
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

// collectEmpty returns one empty page to the pool, or keeps it for now. It returns a current page
// if nothing was allocated from it since the last call.
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
	case h.Thread.Now >= p.freeSince()+purgeDelay():
		h.release(p, p.freeSince())
	}
}
