package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// segment is a mapping that spans are cut from.
type segment struct {
	_       raw.OffHeap
	start   uintptr // first slice
	slices  uintptr
	mapAddr uintptr // what was mapped, slack before and after included
	mapSize uintptr
	next    *segment
	prev    *segment
	epoch   uintptr // pool.epoch when it was mapped
}

// poolState holds everything that lives under poolLock.
//
//	Σ slices of a segment's spans = segment.slices
//	dirtyBytes = Σ bytes of the spans on the lru list
//	committed  = usedBytes + dirtyBytes + purging
type poolState struct {
	clean, dirty spanBins
	lruHead      *Page // dirty spans, oldest first
	lruTail      *Page
	segments     *segment
	epoch        uintptr // counts how often the lists were lost (ForkUnprepared)
	segSlices    uintptr
	freePages    *Page
	freeSegs     *segment
	heaps        *Heap // every heap ever made
	metaNext     uintptr
	metaLeft     uintptr
	dirtyBytes   uintptr
	usedBytes    uintptr
	purging      uintptr
	quiet        uint64 // no purging by itself before this time: the kernel refused
	huge         *Page
	cache        hugeCache
	count        poolCounts
}

// poolCounts are plain sums for the report.
type poolCounts struct {
	mapped         uint64
	committed      uint64
	peak           uint64
	purges         uint64
	purgedBytes    uint64
	hugeAllocs     uint64
	hugeFrees      uint64
	hugeAllocBytes uint64
	hugeFreeBytes  uint64
	hugeHits       uint64
	hugeMisses     uint64
}

var (
	pool     poolState
	poolLock raw.Lock
)

const (
	minGrowth = 64   // slices: 4 MiB
	maxGrowth = 1024 // slices: 64 MiB
)

func mapped(n uintptr)   { atomic.AddUint64(&pool.count.mapped, uint64(n)) }
func unmapped(n uintptr) { atomic.AddUint64(&pool.count.mapped, -uint64(n)) }

// commit adds n bytes to what the heap holds and keeps the peak. Precondition:
// poolLock is held.
func commit(n uintptr) {
	pool.count.committed += uint64(n)
	if pool.count.committed > pool.count.peak {
		pool.count.peak = pool.count.committed
	}
}

func uncommit(n uintptr) { pool.count.committed -= uint64(n) }

// spanAlloc takes a span of n slices from the pool. It returns nil when the
// kernel has no memory. The descriptor's fields beyond Start, slices, segment,
// state and zero are the caller's to set, and so are the map's entries.
func spanAlloc(token, n uintptr) *Page {
	if !poolLock.Take(token) {
		return emergencySpan(n)
	}
	p := pool.dirty.take(n)
	switch {
	case p != nil:
		lruRemove(p)
		pool.dirtyBytes -= p.bytes()
		p.zero = 0
		if rest := split(p, n, spanDirty); rest != nil {
			lruAdd(rest)
			pool.dirtyBytes += rest.bytes()
		}
	default:
		p = pool.clean.take(n)
		if p == nil {
			p = grow(n)
		}
		if p != nil {
			p.zero = 1
			split(p, n, spanClean)
			commit(p.bytes())
		}
	}
	if p != nil {
		p.state = spanInUse
		pool.usedBytes += p.bytes()
	}
	poolLock.Release()
	return p
}

// split cuts p, which is in no list, down to n slices. The rest becomes a free
// span of the given state in its bin. Without a descriptor for the rest p stays
// whole.
func split(p *Page, n uintptr, state uint32) *Page {
	have := uintptr(p.slices)
	if have == n {
		return nil
	}
	rest := newDescriptor()
	if rest == nil {
		return nil
	}
	rest.Owner = ownerNone
	rest.Start = p.Start + n<<SliceShift
	rest.slices = uint32(have - n)
	rest.segment = p.segment
	rest.stamp = p.stamp
	rest.blocks, rest.Carved, rest.Remote = 0, 0, 0
	p.slices = uint32(n)
	insertFree(rest, state)
	return rest
}

// insertFree puts a span in the bin of its state and marks its ends.
func insertFree(p *Page, state uint32) {
	p.state = state
	mapEnds(p)
	if state == spanDirty {
		pool.dirty.add(p)
	} else {
		pool.clean.add(p)
	}
}

// spanFree gives a span back. It stays dirty until it is purged. stamp is when it
// became free. Precondition: poolLock does not refuse the thread.
func spanFree(token uintptr, p *Page, stamp uint64) {
	poolLock.Take(token)
	p.Owner = ownerNone
	mapFill(p, nil)
	pool.usedBytes -= p.bytes()
	p.stamp = stamp
	p.Remote = 0
	p = coalesce(p, spanDirty)
	pool.dirtyBytes += p.bytes()
	lruAdd(p)
	insertFree(p, spanDirty)
	poolLock.Release()
}

// coalesce joins p, which is in no list, with the free spans of the given state
// on both sides, and returns the joint span, in no list. Dirty neighbours leave
// the lru list and dirtyBytes.
func coalesce(p *Page, state uint32) *Page {
	seg := p.segment
	if seg.epoch != pool.epoch { // its neighbours are on lists that are gone
		return p
	}
	if p.Start > seg.start {
		if q := Lookup(p.Start - SliceSize); q != nil && q.state == state && q.Owner == ownerNone {
			removeFree(q, state)
			q.stamp = p.stamp
			p = join(q, p)
		}
	}
	if end := p.Start + p.bytes(); end < seg.start+seg.slices<<SliceShift {
		if q := Lookup(end); q != nil && q.state == state && q.Owner == ownerNone {
			removeFree(q, state)
			p = join(p, q)
		}
	}
	return p
}

func removeFree(q *Page, state uint32) {
	if state == spanDirty {
		pool.dirty.remove(q)
		lruRemove(q)
		pool.dirtyBytes -= q.bytes()
	} else {
		pool.clean.remove(q)
	}
}

// join makes one span of two adjacent ones, lower first, and clears the map
// entries between them.
func join(a, b *Page) *Page {
	raw.Check(a.Start+a.bytes() == b.Start, "joined spans are adjacent")
	mapSet(b.Start-SliceSize, nil)
	mapSet(b.Start, nil)
	a.slices += b.slices
	freeDescriptor(b)
	return a
}

func lruAdd(p *Page) {
	p.lruNext = nil
	p.lruPrev = pool.lruTail
	if pool.lruTail != nil {
		pool.lruTail.lruNext = p
	} else {
		pool.lruHead = p
	}
	pool.lruTail = p
}

func lruRemove(p *Page) {
	if p.lruPrev != nil {
		p.lruPrev.lruNext = p.lruNext
	} else {
		pool.lruHead = p.lruNext
	}
	if p.lruNext != nil {
		p.lruNext.lruPrev = p.lruPrev
	} else {
		pool.lruTail = p.lruPrev
	}
}
