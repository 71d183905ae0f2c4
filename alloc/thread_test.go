package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// thread is one thread of a program as the heap sees it: what interpose/heap.h
// and interpose/malloc.c do, step by step, on top of this package. A change of
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

// fastUnspill is ta_unspill.
func (t *thread) fastUnspill(n uintptr) uintptr {
	h, c := t.h, Class(n)
	b := h.Spill[c].Head
	if b == 0 {
		return 0
	}
	h.Spill[c].Head = raw.Load(b)
	h.Spill[c].Room++
	h.Spill[c].Pops++
	raw.Store(b+8, 0)
	return b
}

// mallocFast is ta_malloc_fast.
func (t *thread) mallocFast(n uintptr) (b uintptr) {
	switch {
	case n <= DirectMax:
		b = fastPop(t.h.Direct[(n+15)>>4])
	case n <= MaxClass:
		b = fastPop(t.h.Cur[Class(n)])
	default:
		return 0
	}
	if b == 0 {
		b = t.fastUnspill(n)
	}
	return b
}

// malloc is malloc, with the knowledge that calloc has: whether the block reads
// as zero.
func (t *thread) malloc(n uintptr) (b uintptr, zero bool) {
	if b = t.mallocFast(n); b != 0 {
		return b, false
	}
	b = Malloc(t.enter(), n, uintptr(tiers.LibSet(0)), 0)
	t.leave()
	return b &^ ZeroBit, b&ZeroBit != 0
}

// aligned is ta_memalign; the address has ZeroBit where the block reads as zero.
func (t *thread) aligned(align, n uintptr) (b uintptr) {
	if align <= SliceSize && n-1 < MaxClass && !tiers.RulesOn() {
		if b = t.mallocFast(raw.RoundUp(n, align)); b != 0 {
			return b
		}
	}
	b = Aligned(t.enter(), align, n, uintptr(tiers.LibSet(0)), 0)
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
	if owner == self && sane(p, b) {
		raw.Store(b, p.Free)
		raw.Store(b+8, FreeKey)
		p.Free = b
		p.Frees++
		if p.Frees == p.Trigger {
			PageEmpty(t.enter(), p)
			t.leave()
		}
		return FreeOK
	}
	if owner == self|OwnerFull && sane(p, b) {
		if c := p.Class; h.Spill[c].Room != 0 {
			h.Spill[c].Room--
			raw.Store(b, h.Spill[c].Head)
			raw.Store(b+8, FreeKey)
			h.Spill[c].Head = b
			return FreeOK
		}
	}
	return t.freeSlow(b)
}

// freeSlow is ta_free_slow.
func (t *thread) freeSlow(b uintptr) uintptr {
	if p := Lookup(b); p != nil {
		owner := atomic.LoadUintptr(&p.Owner)
		if owner > OwnerHuge && owner&^OwnerFull != t.h.self() && sane(p, b) && t.freeElsewhere(p, b) {
			return FreeOK
		}
	}
	defer t.leave()
	return Free(t.enter(), b, HowAny, NoSize, 0)
}

// freeElsewhere is free_elsewhere.
func (t *thread) freeElsewhere(p *Page, b uintptr) bool {
	owner := atomic.LoadUintptr(&p.Owner)
	if heapOf(owner).Thread != t.h.Thread {
		return t.pushRemote(p, b)
	}
	if owner&OwnerFull != 0 {
		return false
	}
	raw.Store(b, p.Free)
	raw.Store(b+8, FreeKey)
	p.Free = b
	p.Frees++
	if p.Frees == p.Trigger {
		PageEmpty(t.enter(), p)
		t.leave()
	}
	return true
}

// pushRemote is push_remote.
func (t *thread) pushRemote(p *Page, b uintptr) bool {
	raw.Store(b+8, FreeKey)
	for {
		old := atomic.LoadUintptr(&p.Remote)
		if old&RemoteNotify != 0 {
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
	return (*Heap)(unsafe.Pointer(raw.Ptr(owner &^ OwnerFull)))
}
