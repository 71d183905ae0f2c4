package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// scratch is the memory for Fill's counts; guarded by poolLock.
var scratch Counts

// collectCounts computes the sums, and notes in e which memory belongs to which tier. Precondition:
// poolLock is held.
func (k *Counts) collectCounts(e *ranges) {
	*k = Counts{}
	e.n, e.bytes = 0, [placementSlots]uintptr{}
	k.pool = pool.count
	k.zero = zeroPages.count
	k.pool.mapped = atomic.LoadUint64(&pool.count.mapped)
	k.Cached = uint64(pool.dirtyBytes + pool.purging + pool.cache.bytes)
	for c := range pool.bySize.stolen {
		k.Allocs[c] += pool.bySize.stolen[c]
		k.Frees[c] += pool.bySize.stolen[c]
	}
	k.granules(&pool.bySize.granules)
	for i := range k.pool.gone {
		k.tier[i].add(&k.pool.gone[i])
	}
	k.threads(everyThread)
	k.threads(aloneThreads())
	for p := (*Page)(raw.Ptr(atomic.LoadUintptr(&alone.pages))); p != nil; p = p.ageNext {
		k.page(p)
	}
	for s := pool.segments; s != nil; s = s.next {
		k.Segments++
		k.segment(s, e)
	}
	for p := pool.huge.head; p != nil; p = p.pendNext {
		if p.state == spanHuge { // else it is freed when its migration pin ends
			k.huge(p, e)
		}
	}
	for i := uintptr(0); i < pool.cache.n && i < hugeCacheSlots; i++ {
		p := pool.cache.slot[i]
		k.charge(p, p.Size)
		e.add(p.Start, p.Size, p.placement)
	}
	for tier, n := range pool.lost {
		k.charged[tier] += n
	}
}

func (k *Counts) threads(t *Thread) {
	for ; t != nil; t = t.all {
		for h := t.heaps; h != nil; h = h.sibling {
			k.heap(h)
		}
		if t.held != nil {
			k.quarantined(t.held)
		}
		if t.Cache != nil {
			k.cache(t)
		}
		switch atomic.LoadUint32(&t.state) {
		case heapOwned:
			k.Heaps++
		case heapAbandoned:
			k.Abandoned++
		}
	}
}

func (k *Counts) heap(h *Heap) {
	home := homeOf(uintptr(h.Hint)) & (placementSlots - 1)
	for c := range h.goneBlocks {
		list := h.cacheList(uintptr(c))
		popped := h.pops(uintptr(c))
		both := h.goneBlocks[c] + popped
		k.Allocs[c] += both
		k.Frees[c] += both
		bytes := popped * uint64(sizeclass.Size(uintptr(c)))
		k.tier[home].alloc(popped, bytes)
		k.tier[home].free(popped, bytes)
		k.onList(list.Head, h.cached(uintptr(c)))
	}
	k.onList(h.hiddenBlocks, sizeclass.Count*cacheListMax)
	for r := h.firstRemoteQueue(); r != nil; r = r.next {
		for at, tail := atomic.LoadUint64(&r.Head), atomic.LoadUint64(&r.Tail); at < tail; at++ {
			k.onList(r.Slots[at&(RemoteQueueSlots-1)], 1)
		}
	}
	for i := range h.gone {
		k.tier[i].add(&h.gone[i])
	}
	k.granules(&h.granules)
	for i := range h.Calls {
		k.Calls[i] += h.Calls[i]
	}
	k.Remotes += h.Remotes
}

func (k *Counts) granules(r *granuleCounts) {
	for c := range r.allocs {
		k.Allocs[c] += r.allocs[c]
		k.Frees[c] += r.frees[c]
		k.nursed[c] += r.allocs[c] - r.frees[c]
	}
}

// onList counts up to n blocks of a thread-cache free list, or hidden ones, as freed. Their pages
// count them as in use. The list may be another thread's and change meanwhile.
func (k *Counts) onList(b uintptr, n uint64) {
	for ; n > 0 && b != 0; n-- {
		p := Lookup(b)
		if p == nil || !p.isBlock(b) {
			return
		}
		k.Frees[p.class()]++
		k.tier[tierOf(p.placement)].free(1, uint64(p.Size))
		b = raw.Load(b)
	}
}

func (k *Counts) segment(s *segment, e *ranges) {
	summaries := s.slices >= summaryLeast
	for a, end := s.start, s.start+s.slices<<SliceShift; a < end; {
		if summaries {
			if w := summaryOf(a); w != 0 {
				a += k.summary(a, w, e)
				continue
			}
		}
		p := Lookup(a)
		if p == nil || p.slices == 0 { // a span that moves from the pool to a heap
			a += SliceSize
			continue
		}
		a += p.bytes()
		if p.state == spanInUse || p.state == spanDirty {
			k.charge(p, p.bytes())
		}
		if p.state != spanClean {
			e.add(p.spanStart(), p.bytes(), p.placement)
		}
		if atomic.LoadUintptr(&p.Owner) == ownerNone {
			k.FreeSpans++
		} else {
			k.page(p)
		}
	}
}

// charge adds the charges of a span of so many bytes.
func (k *Counts) charge(p *Page, bytes uintptr) {
	unmigrated := uintptr(p.unmigrated) * raw.Page
	k.charged[tierOf(p.placement)] += bytes - unmigrated
	k.charged[tierOf(p.unmigratedIn)] += unmigrated
}

// huge adds a huge block to the bytes of its hint, and to the charges.
func (k *Counts) huge(p *Page, e *ranges) {
	k.hints[p.Hint&(hintSlots-1)] += uint64(p.Size)
	k.charge(p, p.Size)
	if m := p.parts(); m != nil {
		for at := uintptr(0); at < p.Size; {
			end := m.run(m.index(at), p.Size)
			e.add(p.Start+at, end-at, p.placementAt(at))
			at = end
		}
		return
	}
	moved := uintptr(p.done) << SliceShift // by a demotion that is not finished
	if moved != 0 {
		e.add(p.Start, moved, p.unmigratedIn)
	}
	e.add(p.Start+moved, p.Size-moved, p.placement)
}

func (k *Counts) page(p *Page) {
	c := p.class()
	frees := p.Frees + p.remoteCount()
	k.Allocs[c] += p.Allocs
	k.Frees[c] += frees
	k.Pages[c]++
	k.PageBytes[c] += uint64(p.bytes())
	size := uint64(p.Size)
	t := &k.tier[tierOf(p.placement)]
	t.alloc(p.Allocs, p.Allocs*size)
	t.free(frees, frees*size)
	if p.isNursery() {
		t.granules(p)
	}
	k.hints[p.Hint&(hintSlots-1)] += uint64(p.bytes())
	if p.Allocs == frees {
		k.Cached += uint64(p.bytes())
	}
}

// summary counts a page at addr by its summary, and returns the page's bytes.
func (k *Counts) summary(addr uintptr, w pageSummary, e *ranges) uintptr {
	c, tier, bytes := w.class(), tierOf(w.placement()), w.bytes()
	allocs, frees := w.allocs(), w.frees()
	size := uint64(sizeclass.Size(c))
	k.Allocs[c] += allocs
	k.Frees[c] += frees
	k.Pages[c]++
	k.PageBytes[c] += bytes
	k.hints[w.hint()] += bytes
	k.tier[tier].alloc(allocs, allocs*size)
	k.tier[tier].free(frees, frees*size)
	k.charged[tier] += uintptr(bytes)
	e.add(addr, uintptr(bytes), w.placement())
	return uintptr(bytes)
}
