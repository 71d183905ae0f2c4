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

// With TA_SECURE=1 a thread looks at the block that it was given last, though another may have
// freed it, so its page stays.

// stealStep is how many threads one step looks at, from where the one before it stopped.
const stealStep = 16

// stealNext is the address of the thread that is looked at next, or 0; atomic.
var stealNext uintptr

// stealPages takes what can be had from the next n threads.
func (t *Thread) stealPages(n uintptr) {
	o := (*Thread)(raw.Ptr(atomic.LoadUintptr(&stealNext)))
	for ; n != 0; n-- {
		if o == nil {
			o = everyThread
		}
		if o == nil {
			return
		}
		if o != t && atomic.LoadUint32(&o.state) == heapOwned && atomic.LoadUintptr(&o.pages) != 0 {
			t.stealFromAll(o)
		}
		o = o.all
	}
	atomic.StoreUintptr(&stealNext, o.self())
}

// lookRound takes what can be had from all other threads, those that ended included.
func (t *Thread) lookRound() {
	serveAbandoned(t.token, t.Now, abandoned.with.n, false)
	t.stealPages(pool.threadCount)
}

func (t *Thread) stealFromAll(o *Thread) {
	for _, h := range o.Heaps {
		if h == nil {
			continue
		}
		h.drainQueues(t)
		if atomic.LoadUintptr(&h.pending) != 0 {
			t.stealFrom(h)
		}
	}
}

func (t *Thread) stealFrom(h *Heap) {
	list := atomic.SwapUintptr(&h.pending, 0)
	for list != 0 {
		p := (*Page)(raw.Ptr(list))
		list = addrOf(p.pendNext)
		full := atomic.LoadUintptr(&p.Owner)&OwnerFull != 0
		if !full || !p.allFree() || h.Thread.wasGiven(p) || p.segment == nil ||
			!poolLock.Take(t.token) {
			notify(p)
			continue
		}
		p.dropSummary()
		bytes := p.Allocs * uint64(p.Size)
		pool.count.stolen[p.class()] += p.Allocs
		gone := &pool.count.gone[tierOf(p.placement)]
		gone.alloc(p.Allocs, bytes)
		gone.free(p.Allocs, bytes)
		p.forget()
		poolLock.Release()
		atomic.AddUintptr(&h.Thread.pages, ^uintptr(0))
		spanFree(t.token, p, 0)
	}
}
