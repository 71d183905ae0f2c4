package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// Counts are sums over the whole heap, exact while other threads are quiet. They
// are made when somebody asks: the fast paths only keep the two counts of their
// page.
type Counts struct {
	Allocs    [Classes]uint64 // blocks handed out, ever
	Frees     [Classes]uint64 // blocks taken back, ever
	Pages     [Classes]uint64 // pages now
	PageBytes [Classes]uint64
	Calls     [CallKinds]uint64
	Remotes   uint64
	Heaps     uint64 // of running threads
	Abandoned uint64 // without a thread now
	Segments  uint64
	FreeSpans uint64
	Cached    uint64 // bytes held and not in use
	pool      poolCounts
}

// less is a - b, or 0 where other threads, running meanwhile, have made b the
// larger.
func less(a, b uint64) uint64 {
	if a < b {
		return 0
	}
	return a - b
}

// base is what the process had counted when it was forked.
var base Counts

// scratch is where Collect counts; guarded by poolLock.
var scratch Counts

// collectCounts adds everything up. Precondition: poolLock is held.
func (k *Counts) collectCounts() {
	*k = Counts{}
	k.pool = pool.count
	k.pool.mapped = atomic.LoadUint64(&pool.count.mapped)
	k.Cached = uint64(pool.dirtyBytes + pool.purging + pool.cache.bytes)
	k.heaps(pool.heaps)
	k.heaps(aloneHeaps())
	for p := (*Page)(raw.Ptr(atomic.LoadUintptr(&alone.pages))); p != nil; p = p.lruNext {
		k.page(p)
	}
	for s := pool.segments; s != nil; s = s.next {
		k.Segments++
		k.segment(s)
	}
}

func (k *Counts) heaps(h *Heap) {
	for ; h != nil; h = h.all {
		for c := range h.retired {
			both := h.retired[c] + h.SpillPops[c]
			k.Allocs[c] += both
			k.Frees[c] += both + h.spilled(uintptr(c))
		}
		for i := range h.Calls {
			k.Calls[i] += h.Calls[i]
		}
		k.Remotes += h.Remotes
		switch atomic.LoadUint32(&h.state) {
		case heapOwned:
			k.Heaps++
		case heapAbandoned:
			k.Abandoned++
		}
	}
}

func (k *Counts) segment(s *segment) {
	for a, end := s.start, s.start+s.slices<<SliceShift; a < end; {
		p := Lookup(a)
		if p == nil || p.slices == 0 { // a span on its way from the pool to a heap
			a += SliceSize
			continue
		}
		a += p.bytes()
		if atomic.LoadUintptr(&p.Owner) == ownerNone {
			k.FreeSpans++
		} else {
			k.page(p)
		}
	}
}

func (k *Counts) page(p *Page) {
	c := p.Class & (Classes - 1)
	frees := p.Frees + p.remoteCount()
	k.Allocs[c] += p.Allocs
	k.Frees[c] += frees
	k.Pages[c]++
	k.PageBytes[c] += uint64(p.bytes())
	if p.Allocs == frees {
		k.Cached += uint64(p.bytes())
	}
}

// rebase makes the present counts the zero of a forked child.
func rebase(token uintptr) {
	if poolLock.Take(token) {
		base.collectCounts()
		poolLock.Release()
	}
}
