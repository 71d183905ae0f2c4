package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// When memory is short a thread takes the pages of others that have no block in use any
// more, because their owner may not come by for long. It can have those that are full to
// their owner and on its pending list: all their blocks wait on the remote list.
//
// Who swaps the pending list out has its pages for itself, as in drain. A page is called
// full when its owner has done all there is to do for that, and while a full page waits
// on the pending list its owner touches nothing of it but the remote list: there it puts
// its own frees, too. So the counts of one stand that has no block in use, and it
// can go back to the pool. The others go back on the list.

// stealPages takes what can be had from the threads that run.
func (t *Thread) stealPages() {
	for o := pool.threads; o != nil; o = o.all {
		if o == t || atomic.LoadUint32(&o.state) != heapOwned {
			continue
		}
		for _, h := range o.Heaps {
			if h != nil {
				h.receive(t)
			}
			if h != nil && atomic.LoadUintptr(&h.pending) != 0 {
				t.stealFrom(h)
			}
		}
	}
}

func (t *Thread) stealFrom(h *Heap) {
	list := atomic.SwapUintptr(&h.pending, 0)
	for list != 0 {
		p := (*Page)(raw.Ptr(list))
		list = addrOf(p.pendNext)
		full := atomic.LoadUintptr(&p.Owner)&OwnerFull != 0
		if !full || !p.allFree() || p.segment == nil || !poolLock.Take(t.token) {
			notify(p)
			continue
		}
		bytes := p.Allocs * uint64(p.Size)
		pool.count.stolen[p.Class&(Classes-1)] += p.Allocs
		gone := &pool.count.gone[tierOf(p.place)]
		gone.alloc(p.Allocs, bytes)
		gone.free(p.Allocs, bytes)
		poolLock.Release()
		spanFree(t.token, p, 0)
	}
}
