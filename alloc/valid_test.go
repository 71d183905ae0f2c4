package alloc

import (
	"fmt"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// inspection holds the heap to every equation that a comment in this package
// states, while all threads are quiet. It stops at the first thing wrong.
type inspection struct {
	err          error
	onList       map[*Page]*Heap // pages on the lists of heaps
	pending      map[*Page]*Heap // pages on the pending lists
	cached       map[*Page]uint64
	live         [sizeclass.Count]uint64 // blocks in use, as the pages have it
	inUse        map[*Page]bool
	charged      [placementSlots]uint64 // bytes, by tier
	threads      map[*Thread]bool
	pages        map[*Thread]uintptr
	extra        int     // parts of huge blocks beyond the first
	retiredBytes uintptr // bytes of pages left empty on lists

	summaries int
	hugeSpans [placementSlots]share // huge blocks in spans, by tier
}

// inspect returns what is wrong with the heap as a whole, or nil.
func inspect() error {
	_, err := inspected()
	return err
}

func inspected() (*inspection, error) {
	v := &inspection{onList: map[*Page]*Heap{}, pending: map[*Page]*Heap{},
		cached: map[*Page]uint64{}, threads: map[*Thread]bool{}, inUse: map[*Page]bool{},
		pages: map[*Thread]uintptr{}}
	v.want(!poolLock.Held() && !heapsLock.Held(), "a lock is held")
	v.allThreads()
	for t := range v.threads {
		v.thread(t)
	}
	v.want(
		v.retiredBytes == pool.retiredBytes,
		"threads keep %d bytes, the pool says %d",
		v.retiredBytes,
		pool.retiredBytes,
	)
	v.segments()
	v.pool()
	for t := range v.threads {
		v.want(v.pages[t] == t.pages, "thread %p has %d pages, says %d", t, v.pages[t], t.pages)
	}
	return v, v.err
}

func (v *inspection) want(ok bool, format string, args ...any) bool {
	if !ok && v.err == nil {
		v.err = fmt.Errorf(format, args...)
	}
	return ok && v.err == nil
}

// allThreads: the abandoned list has the threads in that state, and no other.
func (v *inspection) allThreads() {
	left := map[*Thread]bool{}
	for t := everyThread; t != nil; t = t.all {
		if !v.want(!v.threads[t], "thread %p is twice in the list of all", t) {
			return
		}
		v.threads[t] = true
		left[t] = t.state == heapAbandoned
	}
	for _, l := range []*threadList{&abandoned.with, &abandoned.without} {
		n, last := uintptr(0), (*Thread)(nil)
		for t := l.first; t != nil; t = t.next {
			if !v.want(left[t], "thread %p in state %d is on an abandoned list, or twice", t,
				t.state) {
				return
			}
			v.want(t.prev == last, "abandoned thread %p: prev is %p, not %p", t, t.prev, last)
			v.want(l == &abandoned.with || t.pages == 0,
				"thread %p has %d pages, on the list of those without", t, t.pages)
			left[t] = false
			last = t
			n++
		}
		v.want(l.last == last &&
			l.n == n, "an abandoned list has %d threads up to %p, says %d up to %p", n, last, l.n,
			l.last)
	}
	v.want(len(left) == int(pool.threadCount), "%d threads, counted %d", len(left),
		pool.threadCount)
	for t, missing := range left {
		v.want(!missing, "abandoned thread %p is not on the list", t)
	}
}

func (v *inspection) thread(t *Thread) {
	kept, base := uintptr(0), false
	for h := t.heaps; h != nil; h = h.sibling {
		v.want(h.Thread == t && h.known(), "heap %p, of thread %p, hint %d, is not in thread %p", h,
			h.Thread, h.Hint, t)
		base = base || t.Base == h
		kept += v.heap(h)
	}
	v.quarantine(t)
	v.cache(t)
	v.want(base, "the base of thread %p is none of its heaps", t)
	v.want(kept == t.retiredBytes, "thread %p keeps %d bytes, says %d", t, kept, t.retiredBytes)
	v.retiredBytes += kept
	v.want(kept <= retireMax, "thread %p keeps %d bytes", t, kept)
}

// quarantine: its blocks are in use to their pages, and clean.
func (v *inspection) quarantine(t *Thread) {
	if t.held == nil {
		return
	}
	q, bytes := t.held, uintptr(0)
	for _, b := range q.slot[:q.n] {
		p := Lookup(b)
		if !v.want(p != nil && p.isSlot(b) && canaryState(p.canary(b)) == stateClean &&
			canaryValid(b, p.canary(b)), "%#x in quarantine", b) {
			return
		}
		v.want(blank(b, b+p.room()), "%#x in quarantine is not zero", b)
		bytes += p.Size
		v.cached[p]++
	}
	v.want(bytes == q.bytes && bytes <= quarantineBytes, "a quarantine has %d bytes, says %d",
		bytes, q.bytes)
}

// cache: its slots are clean, in use to their pages, and of the thread's base.
func (v *inspection) cache(t *Thread) {
	if t.Cache == nil {
		return
	}
	for c := range t.Cache.Bins {
		b := &t.Cache.Bins[c]
		v.want(b.Count <= b.Most && b.Most <= freedSlots &&
			b.News <= freshSlots, "bin %d has %d and %d slots", c, b.Count, b.News)
		for _, s := range append(b.Freed[:b.Count:b.Count], b.Fresh[:b.News]...) {
			p := Lookup(s)
			if !v.want(p != nil && p.isSlot(s) && p.Class == uint32(c) &&
				heapOf(p.Owner) == t.Base && canaryState(p.canary(s)) == stateClean &&
				canaryValid(s, p.canary(s)), "%#x in bin %d", s, c) {
				return
			}
			v.want(blank(s, s+p.room()), "%#x in bin %d is not zero", s, c)
			v.cached[p]++
		}
	}
}

// heap looks at one heap and returns the bytes kept on its lists.
func (v *inspection) heap(h *Heap) (kept uintptr) {
	for c := uintptr(0); c < sizeclass.Count && v.err == nil; c++ {
		kept += v.class(h, c)
		v.cacheList(h, c)
	}
	v.nursery(h)
	v.remoteQueues(h)
	for c := uintptr(0); c < sizeclass.Count; c++ {
		published := h.cur[c]
		if published == pageNone {
			published = &h.none
		}
		if h.fastPathDisabled(c) {
			published = &h.none
			v.want(h.CacheLists[c].Room == 0 && h.CacheLists[c].Head == 0,
				"class whose fast path is disabled, %d has a thread-cache free list", c)
		}
		v.want(h.Cur[c] == published, "heap %p: the fast path has page %p for class %d, not %p", h,
			h.Cur[c], c, published)
	}
	v.want(h.Direct[0] == h.Cur[0],
		"heap %p: blocks of 0 bytes are not those of the smallest class", h)
	for i, p := range h.Direct[1:] {
		i++
		c := sizeclass.Of(uintptr(i) * sizeclass.Granule)
		v.want(p == h.Cur[c], "heap %p: Direct[%d] is %p, Cur[%d] is %p", h, i, p, c, h.Cur[c])
	}
	for p := (*Page)(raw.Ptr(h.pending)); p != nil && v.err == nil; p = p.pendNext {
		v.want(v.pending[p] == nil, "page %p is twice on pending lists", p)
		v.want(heapOf(p.Owner) == h, "page %p is on the pending list of %p, owned by %#x", p, h,
			p.Owner)
		v.pending[p] = h
	}
	return kept
}

// class looks at the list of one class and returns the bytes kept on it.
func (v *inspection) class(h *Heap, c uintptr) (kept uintptr) {
	if h.cur[c] == pageNone {
		v.want(h.tail[c] == nil, "heap %p, class %d: no page but a tail", h, c)
		return 0
	}
	var last *Page
	for p := h.cur[c]; p != nil; p = p.next {
		if !v.want(v.onList[p] == nil, "page %p is twice on lists", p) {
			return 0
		}
		v.onList[p] = h
		v.want(p.prev == last, "page %p: prev is %p, not %p", p, p.prev, last)
		v.want(p.Owner == h.ownerOf(c), "page %p on a list of %p has owner %#x", p, h, p.Owner)
		v.want(uintptr(p.Class) == c, "page %p of class %d is on list %d", p, p.Class, c)
		switch {
		case last == nil && p.slices != 1 && !secure:
			last := h.Thread.retiredHeap == h && uintptr(h.Thread.retiredClass) == c
			v.want(!last || !h.kept.Has(c), "class %d is kept, and was retired last", c)
			idle := last || h.kept.Has(c)
			v.want(idle || p.Frees < p.Trigger && p.Trigger <= max(p.Allocs, p.Frees+1),
				"current page %p of %d slices has trigger %d after %d blocks and %d frees", p,
				p.slices, p.Trigger, p.Allocs, p.Frees)
		case last == nil:
			v.want(p.Trigger == neverEmpty ||
				p.Trigger <= p.Frees+tickMax, "current page %p has trigger %d after %d frees", p,
				p.Trigger, p.Frees)
		case p.isRetired():
			v.want(p.Frees == p.Allocs, "kept page %p is not empty", p)
			kept += p.bytes()
		default:
			v.want(p.Trigger == p.Allocs, "page %p waits for %d frees, of %d blocks", p, p.Trigger,
				p.Allocs)
		}
		last = p
	}
	v.want(h.tail[c] == last, "heap %p, class %d: tail is %p, not %p", h, c, h.tail[c], last)
	return kept
}

func (v *inspection) cacheList(h *Heap, c uintptr) {
	if !h.opened.Has(c) {
		v.want(
			h.CacheLists[c] == CacheList{} && h.cur[c] == pageNone,
			"class %d is not open: %+v, page %p",
			c,
			h.CacheLists[c],
			h.cur[c],
		)
		return
	}
	v.want(h.CacheLists[c].Room <= cacheLimit(c), "class %d: room for %d cached blocks", c,
		h.CacheLists[c].Room)
	v.want(
		h.CacheLists[c].Credit > 0 && h.CacheLists[c].Credit <= tickMax,
		"class %d: the thread-cache free list looks at the time after %d frees",
		c,
		h.CacheLists[c].Credit,
	)
	n := uint64(0)
	for b := h.CacheLists[c].Head; b != 0 && v.err == nil; b = raw.Load(b) {
		p := Lookup(b)
		if !v.want(p != nil && p.isBlock(b), "cached %#x is no block", b) {
			return
		}
		fits := uintptr(p.Class) == c && !p.isNursery()
		v.want(heapOf(p.Owner) == h && fits, "cached %#x: owner %#x, class %d", b, p.Owner,
			p.Class)
		v.want(raw.Load(b+8) == FreeKey, "cached %#x is not marked free", b)
		v.cached[p]++
		n++
		v.want(n <= cacheLimit(c), "class %d: %d blocks cached", c, n)
	}
	v.want(n == h.cached(c), "class %d: %d blocks cached, counted %d", c, n, h.cached(c))
}

// remote-free queues: those that lead to the heap.
func (v *inspection) remoteQueues(h *Heap) {
	for r := h.firstRemoteQueue(); r != nil && v.err == nil; r = r.next {
		v.want(r.Owner == h, "remote-free queue %p of %p leads to %p", r, h, r.Owner)
		v.want(r.Seen <= r.Head && r.Tail-r.Head <= RemoteQueueSlots,
			"remote-free queue %p: %d put in, %d taken out, %d seen", r, r.Tail, r.Head, r.Seen)
		for at := r.Head; at < r.Tail; at++ {
			b := r.Slots[at%RemoteQueueSlots]
			p := Lookup(b)
			if !v.want(p != nil && p.isBlock(b), "%#x on a remote-free queue is no block", b) {
				return
			}
			v.want(heapOf(p.Owner).Thread == h.Thread && raw.Load(b+8) == FreeKey &&
				!p.isNursery(), "%#x on a remote-free queue: owner %#x, mark %#x", b, p.Owner,
				raw.Load(b+8))
			v.cached[p]++
		}
	}
	for i, r := range h.Out {
		v.want(r == nil || r.Owner.Number%OutSlots == uint64(i) &&
			r.Owner.Thread != h.Thread, "remote-free queue %p is not one that heap %p puts into", r,
			h)
	}
}

// nursery: a page of the heap's that is on no list.
func (v *inspection) nursery(h *Heap) {
	p := h.nursery
	if p == nil {
		return
	}
	v.want(v.onList[p] == nil && p.isNursery() &&
		p.Owner == h.self(), "the nursery %p of %p: owner %#x, role %d", p, h, p.Owner, p.role)
	v.onList[p] = h
}

// counts compares what a report says with the blocks that the model has, by
// class, and with huge ones.
func (v *inspection) counts(r *stats.Heap, want *[sizeclass.Count]uint64, huge, zero uint64) error {
	blocks := huge + zero
	for c := range want {
		v.want(v.live[c] == want[c], "class %d: %d blocks live in pages, %d in the model", c,
			v.live[c], want[c])
		got := r.SizeClasses[c].BlocksLive
		v.want(got == want[c], "class %d: %d blocks live in the report, %d in the model", c, got,
			want[c])
		blocks += want[c]
	}
	v.want(r.BlocksLive == blocks && r.HugeBlocksLive == huge,
		"the report has %d blocks, %d huge; the model %d, %d",
		r.BlocksLive, r.HugeBlocksLive, blocks, huge)
	v.want(r.ZeroBlocksLive == zero, "the report has %d blocks of 0 bytes, the model %d",
		r.ZeroBlocksLive, zero)
	v.want(r.BlocksLive == r.BlocksTotalAlloc-r.BlocksTotalFreed, "totals of blocks do not add up")
	v.want(r.BytesLive == r.BytesTotalAlloc-r.BytesTotalFreed, "totals of bytes do not add up")
	v.want(r.BytesLive <= r.BytesCommitted &&
		r.BytesCommitted <= r.BytesMapped, "live %d, committed %d, mapped %d",
		r.BytesLive, r.BytesCommitted, r.BytesMapped)
	return v.err
}
