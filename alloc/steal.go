package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// When memory is short, a thread takes pages of other threads without blocks in use, because their
// owners may not allocate for a long time. It can take pages that their owner has marked full and
// that are on its pending list: all their blocks are on the remote list.
//
// The thread that swaps out the pending list owns its pages, as in drainPending. The owner marks a
// page full last. While a full page is on the pending list the owner touches only its remote list,
// where it puts its own frees, too. So the counts of a page without blocks in use do not change,
// and it can return to the pool. The other pages go back on the list.

// With TA_SECURE=1 a thread checks the block that it allocated last, even if another thread has
// freed it, so that block's page stays.

// stealStep is how many threads one step examines, continuing where the step before stopped.
const stealStep = 16

// stealNext is the address of the thread to examine next, or 0; atomic.
var stealNext uintptr

// stealPages takes pages of the next n threads.
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

// lookRound takes pages of all other threads, including those that have ended.
func (t *Thread) lookRound() {
	serveAbandoned(t.token, t.Now, abandoned.with.n, false)
	t.stealPages(pool.threadCount)
}

func (t *Thread) stealFromAll(o *Thread) {
	for h := o.heaps; h != nil; h = h.sibling {
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
		pool.bySize.stolen[p.class()] += p.Allocs
		gone := &pool.count.gone[tierOf(p.placement)]
		gone.alloc(p.Allocs, bytes)
		gone.free(p.Allocs, bytes)
		p.forget()
		poolLock.Release()
		atomic.AddUintptr(&h.Thread.pages, ^uintptr(0))
		spanFree(t.token, p, 0)
	}
}
