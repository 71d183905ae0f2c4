package alloc

import (
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
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
