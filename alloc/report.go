package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// Fill fills in the heap's part of a report. Totals count from the start of the process, or from
// the fork that made it. Live, mapped and cached memory includes memory from before the fork.
// nodes, one of Nodes…, says which pages the kernel is asked about. Fill reports false in a signal
// handler that interrupted the pool on its own thread.
func Fill(token uintptr, r *stats.Report, all uint64, nodes uintptr) bool {
	var e ranges
	if nodes != NodesNone {
		e.reserve(firstRanges)
	}
	ok := poolLock.Take(token)
	if ok {
		CountFromFork = true
		k := &scratch
		k.collectCounts(&e)
		fillHeap(&r.Heap, k)
		fillTiers(r, k)
		fillCalls(r, k)
		poolLock.Release()
		if nodes != NodesNone && e.whole(token) {
			setNodes(r, all)
			e.ask(r, nodes)
		}
	}
	e.drop()
	return ok
}

func fillHeap(h *stats.Heap, k *Counts) {
	for c := uintptr(0); c < sizeclass.Count; c++ {
		size := uint64(sizeclass.Size(c))
		live := less(k.Allocs[c], k.Frees[c])
		allocs, frees := less(k.Allocs[c], base.Allocs[c]), less(k.Frees[c], base.Frees[c])
		s := &h.SizeClasses[c]
		s.Size = size
		s.BlocksLive, s.BlocksTotalAlloc, s.BlocksTotalFreed = live, allocs, frees
		s.Pages, s.BytesPages = k.Pages[c], k.PageBytes[c]
		h.BlocksLive += live
		h.BlocksTotalAlloc += k.Allocs[c] - base.Allocs[c]
		h.BlocksTotalFreed += k.Frees[c] - base.Frees[c]
		h.BytesLive += live * size
		h.BytesTotalAlloc += (k.Allocs[c] - base.Allocs[c]) * size
		h.BytesTotalFreed += (k.Frees[c] - base.Frees[c]) * size
	}
	// the page of a nursery is one of class 0, but its blocks in use are of their own classes
	first := &h.SizeClasses[0].BytesPages
	for c := uintptr(1); c < granuleClasses; c++ {
		if n := k.nursed[c]; int64(n) > 0 {
			h.SizeClasses[c].BytesPages += n * h.SizeClasses[c].Size
			*first = less(*first, n*h.SizeClasses[c].Size)
		}
	}
	p, b := &k.pool, &base.pool
	for i := range p.huge {
		now, then := &p.huge[i], &b.huge[i]
		h.HugeBlocksLive += now.allocs - now.frees
		h.HugeBytesLive += now.allocBytes - now.freeBytes
		h.BlocksTotalAlloc += now.allocs - then.allocs
		h.BlocksTotalFreed += now.frees - then.frees
		h.BytesTotalAlloc += now.allocBytes - then.allocBytes
		h.BytesTotalFreed += now.freeBytes - then.freeBytes
	}
	h.QuarantineBlocks, h.QuarantineBytes = k.Quarantined, k.QuarantineBytes
	h.UnguardedBlocks = atomic.LoadUint64(&withoutGuardPages)
	for i := range k.zero {
		now, then := &k.zero[i], &base.zero[i]
		h.ZeroBlocksLive += now.allocs - now.frees
		h.BlocksTotalAlloc += now.allocs - then.allocs
		h.BlocksTotalFreed += now.frees - then.frees
	}
	h.BlocksLive += h.HugeBlocksLive + h.ZeroBlocksLive
	h.BytesLive += h.HugeBytesLive
	h.BytesMapped = p.mapped
	h.BytesCommitted = p.committed
	h.BytesPeak = p.peak
	h.BytesCached = k.Cached
	h.CrossThreadFrees = k.Remotes - base.Remotes
	h.ThreadHeaps = k.Heaps
	h.ThreadHeapsAbandoned = k.Abandoned
	h.Segments = k.Segments
	h.SpansFree = k.FreeSpans
	h.Purges = p.purges - b.purges
	h.BytesPurged = p.purgedBytes - b.purgedBytes
	h.HugeCacheHits = p.hugeHits - b.hugeHits
	h.HugeCacheMisses = p.hugeMisses - b.hugeMisses
	h.BytesHugepagesAdvised = p.advised - b.advised
	h.Pressures = p.pressures - b.pressures
	h.BytesPressure = p.pressureBytes - b.pressureBytes
}

// fillTiers attributes blocks to the tier that they are in now: a span that moves takes its counts
// along.
func fillTiers(r *stats.Report, k *Counts) {
	for i := uintptr(0); i < placementSlots; i++ {
		t := &r.Tiers[i]
		now, then := k.tier[i], base.tier[i]
		now.add(&k.pool.huge[i])
		then.add(&base.pool.huge[i])
		now.add(&k.zero[i])
		then.add(&base.zero[i])
		t.AllocCalls, t.FreeCalls = less(now.allocs, then.allocs), less(now.frees, then.frees)
		t.BytesTotalAlloc = less(now.allocBytes, then.allocBytes)
		t.BytesTotalFreed = less(now.freeBytes, then.freeBytes)
		whole, before := k.rising(i), base.entered(i)
		t.BlocksEntered, t.BlocksLeft = less(whole.allocs, before.allocs),
			less(whole.frees, before.frees)
		t.BytesEntered, t.BytesLeft = less(whole.allocBytes, before.allocBytes),
			less(whole.freeBytes, before.freeBytes)
		t.HugePagesWanted = uint64(placements[i].huge)
		t.HugeFallbacks = atomic.LoadUint64(&hugeFallbacks[i])
		if bound {
			t.TierNodes = placements[i].nodes.Nodes
		}
	}
	r.Tiers[config.TierFast].HugeFallbacks += atomic.LoadUint64(&hugeFallbacks[placementPin])
	for i := uintptr(0); i < hintMoved; i++ {
		r.HintBytes[i] = k.hints[i]
	}
	// Memory that ta_move has moved counts for the hint that would have placed it there.
	r.HintBytes[config.HintHot] += k.hints[hintMoved+config.TierFast]
	r.HintBytes[config.HintWarm] += k.hints[hintMoved+config.TierNormal]
	r.HintBytes[config.HintCold] += k.hints[hintMoved+config.TierSlow]
}

// fillCalls derives the calls of malloc and free; see the constants of Heap.Calls.
func fillCalls(r *stats.Report, k *Counts) {
	for i := range k.Calls {
		k.Calls[i] -= base.Calls[i]
	}
	c := &k.Calls
	for i := uint(0); i < stats.CallCount; i++ {
		r.Calls[i&31] = c[i&31]
	}
	otherAllocs := c[stats.CallCalloc] + c[stats.CallMemalign] + c[stats.CallAlignedAlloc] +
		c[stats.CallPosixMemalign] + c[stats.CallValloc] + c[stats.CallPvalloc] +
		c[stats.CallNew] + c[stats.CallTaAlloc] + c[CallReallocAllocs]
	// A failed realloc is in OtherFailed but made no block and is not in the sum.
	otherAllocs -= c[CallOtherFailed] - c[CallReallocFailed]
	otherFrees := c[stats.CallFreeSized] + c[stats.CallFreeAlignedSized] + c[stats.CallDelete] +
		c[stats.CallTaFree] - c[CallOtherFreeNull] + c[CallReallocFrees]
	r.Calls[stats.CallMalloc] = less(r.Heap.BlocksTotalAlloc, otherAllocs) + c[CallMallocFailed]
	r.Calls[stats.CallFree] = less(r.Heap.BlocksTotalFreed, otherFrees) + c[CallFreeNull]
	r.CallsFailed = c[CallMallocFailed] + c[CallOtherFailed]
}

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
	for p := (*Page)(raw.Ptr(atomic.LoadUintptr(&alone.pages))); p != nil; p = p.nextAlone() {
		k.page(p)
	}
	for s := pool.segments; s != nil; s = s.next {
		k.Segments++
		k.segment(s, e)
	}
	for p := pool.huge.head; p != nil; p = p.nextLive() {
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
		switch atomic.LoadUintptr(&p.Owner) {
		case ownerNone:
			k.FreeSpans++
		case OwnerHuge:
			k.hints[p.Hint&(hintSlots-1)] += uint64(p.bytes())
		default:
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
