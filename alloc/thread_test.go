package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// thread is one thread of a program as the heap sees it: what interpose/heap.h
// and interpose/libc_malloc.c do, step by step, on top of this package. A change of
// the C fast path has to be made here as well.
type thread struct {
	h     *Heap
	token uintptr
	now   func() uint64
}

func (t *thread) enter() *Heap {
	t.h.Thread.Now = t.now()
	return t.h
}

// leave is ta_leave, of a thread that has its heap for good.
func (t *thread) leave() { t.h = t.h.Thread.Base }

// fastPop is ta_pop.
func fastPop(p *Page) uintptr {
	b := p.Free
	if b == 0 {
		return 0
	}
	p.Free = raw.Load(b)
	p.Allocs++
	raw.Store(b+8, 0)
	return b
}

// fastPopCached is ta_pop_cached.
func fastPopCached(s *CacheList) uintptr {
	b := s.Head
	if b == 0 {
		return 0
	}
	s.Head = raw.Load(b)
	s.Room++
	s.Pops++
	raw.Store(b+8, 0)
	return b
}

// fastPushCached is ta_push_cached.
func fastPushCached(s *CacheList, b uintptr) {
	s.Room--
	raw.Store(b, s.Head)
	raw.Store(b+8, FreeKey)
	s.Head = b
}

// mallocFast is ta_malloc_fast.
func (t *thread) mallocFast(n uintptr) (b uintptr) {
	h := t.h
	switch {
	case n <= sizeclass.DirectMax:
		if b = fastPop(h.Direct[(n+15)>>4]); b == 0 {
			b = fastPopCached(&h.CacheLists[sizeclass.Of(n)])
		}
	case n <= sizeclass.MaxSize:
		if b = fastPopCached(&h.CacheLists[sizeclass.Of(n)]); b == 0 {
			b = fastPop(h.Cur[sizeclass.Of(n)])
		}
	}
	return b
}

// mallocRation is ta_profile_malloc.
func (t *thread) mallocRation(n uintptr) (b uintptr) {
	if n > sizeclass.MaxSize || t.h.Rations == nil {
		return 0
	}
	r := &t.h.Rations.Of[sizeclass.Of(n)]
	if r.Budget == 0 {
		return 0
	}
	if n > sizeclass.DirectMax {
		b = fastPopCached(&r.List)
	}
	if b == 0 {
		b = fastPop(r.From)
	}
	if b == 0 {
		b = fastPopCached(&r.List)
	}
	if b != 0 {
		r.Budget--
	}
	return b
}

// freeRation is ta_profile_free.
func (t *thread) freeRation(p *Page, b uintptr) bool {
	if heapOf(atomic.LoadUintptr(&p.Owner)) != t.h || t.h.Rations == nil {
		return false
	}
	s := &t.h.Rations.Of[p.Class].List
	if s.Room == 0 || !sane(p, b) {
		return false
	}
	fastPushCached(s, b)
	return true
}

// malloc is malloc, with the knowledge that calloc has: whether the block reads
// as zero.
func (t *thread) malloc(n uintptr) (b uintptr, zero bool) {
	if b = t.mallocFast(n); b != 0 {
		return b, false
	}
	if b = t.mallocRation(n); b != 0 {
		return b, false
	}
	b = Malloc(t.enter(), n, uintptr(tiers.CallerSet(0, 0, 0)), 0)
	t.leave()
	return b &^ ZeroBit, b&ZeroBit != 0
}

// alignedFast is memalign_fast.
func (t *thread) alignedFast(align, n uintptr) uintptr {
	if align > SliceSize || n-1 >= sizeclass.MaxSize || tiers.RulesOn() || Profiling || secure {
		return 0
	}
	n = raw.RoundUp(n, align)
	if align <= sizeclass.Line || n <= sizeclass.SpreadAbove {
		return t.mallocFast(n)
	}
	if t.h.AlignedHeap == nil {
		return 0
	}
	return fastPop(t.h.AlignedHeap.Cur[sizeclass.Of(n)])
}

// aligned is ta_memalign; the address has ZeroBit where the block reads as zero.
func (t *thread) aligned(align, n uintptr) (b uintptr) {
	if b = t.alignedFast(align, n); b != 0 {
		return b
	}
	b = Aligned(t.enter(), align, n, uintptr(tiers.CallerSet(0, 0, 0)), 0)
	t.leave()
	return b
}

// sane is ta_sane.
func sane(p *Page, b uintptr) bool {
	off := uint64(b - p.Start)
	return off < p.Carved && off*p.Magic < p.Magic && raw.Load(b+8) != FreeKey
}

// free is ta_free_fast and what follows it. It returns one of the Free…
// constants, where C ends the process for all but FreeOK.
func (t *thread) free(b uintptr) uintptr {
	p := Lookup(b)
	if p == nil {
		return t.freeSlow(b)
	}
	h, self := t.h, t.h.self()
	owner := atomic.LoadUintptr(&p.Owner)
	s := &h.CacheLists[p.Class]
	switch {
	case owner == self && sane(p, b):
		t.push(p, b)
		return FreeOK
	case owner == self|OwnerFull && sane(p, b) && s.Room != 0:
		fastPushCached(s, b)
		return FreeOK
	case owner&^OwnerFull == self|OwnerWarm && sane(p, b) && s.Room != 0:
		fastPushCached(s, b)
		if s.Credit--; s.Credit <= 0 {
			PageEmpty(t.enter(), p)
			t.leave()
		}
		return FreeOK
	case owner > OwnerHuge:
		if r := h.Out[heapOf(owner).Number%OutSlots]; r != nil && r.Owner == heapOf(owner) &&
			sane(p, b) && t.pushQueue(r, b) {
			h.Remotes++
			return FreeOK
		}
	}
	return t.freeOther(p, b)
}

// push is ta_push.
func (t *thread) push(p *Page, b uintptr) {
	raw.Store(b, p.Free)
	raw.Store(b+8, FreeKey)
	p.Free = b
	p.Frees++
	if p.Frees == p.Trigger {
		PageEmpty(t.enter(), p)
		t.leave()
	}
}

// pushQueue is ta_push_queue.
func (t *thread) pushQueue(r *RemoteQueue, b uintptr) bool {
	if r.Tail-r.Seen >= RemoteQueueSlots { // (the mark is set and taken back in C)
		r.Seen = atomic.LoadUint64(&r.Head)
		if r.Tail-r.Seen >= RemoteQueueSlots {
			return false
		}
	}
	raw.Store(b+8, FreeKey)
	r.Slots[r.Tail%RemoteQueueSlots] = b
	atomic.StoreUint64(&r.Tail, r.Tail+1)
	return true
}

// freeOther is ta_free_other.
func (t *thread) freeOther(p *Page, b uintptr) uintptr {
	if t.freeRation(p, b) {
		return FreeOK
	}
	owner := atomic.LoadUintptr(&p.Owner)
	if owner > OwnerHuge && sane(p, b) && t.freeBy(p, b) {
		return FreeOK
	}
	return t.freeSlow(b)
}

// freeSlow is ta_free_slow.
func (t *thread) freeSlow(b uintptr) uintptr {
	defer t.leave()
	return Free(t.enter(), b, HowAny, NoSize, 0)
}

// freeBy is free_by.
func (t *thread) freeBy(p *Page, b uintptr) bool {
	owner := atomic.LoadUintptr(&p.Owner)
	if o := heapOf(owner); o.Thread != t.h.Thread {
		if t.h.Out[o.Number%OutSlots] == nil && t.h.Remotes%RemoteQueueAfter == RemoteQueueAfter-1 {
			Connect(t.enter(), p)
			t.leave()
		}
		return t.pushRemote(p, b)
	}
	if owner&OwnerFull != 0 {
		return false
	}
	t.push(p, b)
	return true
}

// pushRemote is push_remote.
func (t *thread) pushRemote(p *Page, b uintptr) bool {
	raw.Store(b+8, FreeKey)
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if old&RemoteNotify != 0 || summariesTorn {
			raw.Store(b+8, 0)
			return false
		}
		raw.Store(b, old&RemoteAddr)
		next := b | (old>>RemoteShift+1)<<RemoteShift | old&RemoteInFlight
		if atomic.CompareAndSwapUintptr(&p.Remote, old, next) {
			t.h.Remotes++
			return true
		}
	}
}

// usable is the size of the live block b.
func usable(b uintptr) uintptr { return Lookup(b).usable(b) }

// ownerOf is the heap that the page of block b belongs to, or nil for a huge one.
func ownerOf(b uintptr) *Heap {
	owner := atomic.LoadUintptr(&Lookup(b).Owner)
	if owner == OwnerHuge || owner == OwnerZero {
		return nil
	}
	return heapOf(owner)
}
