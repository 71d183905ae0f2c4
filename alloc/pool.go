package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// segment is a mapping that spans are cut from.
type segment struct {
	_       raw.OffHeap
	start   uintptr // first slice
	slices  uintptr
	mapAddr uintptr // what was mapped, slack before and after included
	mapSize uintptr
	room    uintptr // reserved behind the last slice, for more: bytes
	next    *segment
	prev    *segment
	epoch   uintptr // pool.epoch when it was mapped
	pages   uint32  // systemPages, …; atomic
	split   uint64  // bit i is set: its huge page i is split, if pages is transparent; atomic
}

// freeSpanSet has the free spans of one placement.
//
//	dirtyBytes = Σ bytes of the spans in dirty
//	a span of dirty is on the placement's list of pool.oldest ⇔ purgeable(span)
type freeSpanSet struct {
	clean, dirty spanBins
	dirtyBytes   uintptr
}

// poolState holds everything that lives under poolLock.
//
//	Σ slices of a segment's spans = segment.slices
//	dirtyBytes = Σ dirtyBytes of the free span sets
//	committed  = usedBytes + dirtyBytes + purging + huge and cached bytes + Σ lost
type poolState struct {
	segments    *segment
	epoch       uintptr // counts how often the lists were lost (ForkUnprepared)
	segSlices   uintptr
	growing     *segment // one with room, or nil
	hugeTurn    uint32   // segments that could have huge pages
	leadIns     uint32   // of huge blocks; atomic
	freePages   *Page
	freeSegs    *segment
	freeParts   *partMap
	freeTables  *granuleTable
	threadCount uintptr // of all that were ever made
	meta, crowd metaArea
	dirtyBytes  uintptr
	usedBytes   uintptr
	purging     uintptr
	// bytes of pages left empty on lists of heaps; atomic (retire.go)
	retiredBytes uintptr
	leaving      uintptr // bytes that the kernel is getting back just now, purging included
	// bytes by tier that will not be used again and that the kernel would not have back
	lost          [placementSlots]uintptr
	trimSpans     trimBudget
	trimSlices    trimBudget
	feedback      purgeFeedback // of the second rule of purge.go
	trimFeedback  purgeFeedback // of high-water trim
	quiet         uint64        // no purging by itself before this time: the kernel refused
	unwilling     uint64        // no migration before this time: likewise
	settled       uint64        // no look for spans to migrate before this time: see migrateAgain
	away          uint64        // spans that are not in their home tier
	extents       uintptr       // of huge blocks: see coalesce.go
	vmaSplits     uintptr       // neighbouring spans of a segment in different placements
	aged          [listSlots]ageList
	huge          hugeList
	count         poolCounts
	entered       [placementSlots]tally   // as it was reported last
	oldest        [placementSlots]ageList // of dirty spans
	cache         hugeCache
	freeSpans     [placementSlots]freeSpanSet // behind the fields that each step reads
	migrationPins migrationPinSet
	parked        parkedSet
	bySize        countsBySize
}

// firstOfPool is the part of the pool that the first allocation reads and writes: up to the free
// spans of NORMAL.
const firstOfPool = unsafe.Offsetof(pool.freeSpans) +
	(uintptr(config.TierNormal)+1)*unsafe.Sizeof(pool.freeSpans[0])

var (
	pool     poolState
	poolLock raw.PaddedLock
)

const (
	firstGrowth = 8    // slices: 512 KiB
	firstRoom   = 120  // slices: to 8 MiB
	minGrowth   = 64   // slices: 4 MiB
	maxGrowth   = 1024 // slices: 64 MiB
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

// inUse is how many bytes spans and huge blocks that are in use have.
func inUse() uintptr {
	n := uintptr(pool.count.committed) - pool.dirtyBytes - pool.purging - pool.cache.bytes
	for _, lost := range pool.lost {
		n -= lost
	}
	return n
}

// Committed returns the bytes that the heap has resident at most.
func Committed() uint64 { return pool.count.committed } // read without the lock

func uncommit(n uintptr) { pool.count.committed -= uint64(n) }

// spanCached takes a span of n slices that has memory, charged already, or returns nil.
// The caller sets the map's entries, and the descriptor's fields other than Start, slices, segment,
// state, zero and those of its placement. Precondition: poolLock does not
// refuse the thread.
func spanCached(token, placement, n uintptr, hint uint32) *Page {
	poolLock.Take(token)
	p := takeDirty(placement, n)
	if p == nil && spanOfHuge(placement, n) {
		p = takeDirty(placement, n)
	}
	if p != nil {
		putToUse(p, hint)
	}
	poolLock.Release()
	return p
}

// spanReserved is spanCached for up to most spans, linked by next, for which bytes have been
// charged: they may be fresh. It releases the charge where the kernel has no memory.
func spanReserved(token, placement, n, most, bytes uintptr, hint uint32, now uint64) *Page {
	poolLock.Take(token)
	p := takeReserved(placement, n*most, bytes>>SliceShift)
	if p != nil {
		if p.zero != 0 {
			faulted(now, bytes)
		}
		cutBatch(p, n, most, hint)
	}
	poolLock.Release()
	if p == nil {
		tiers.Release(tierOf(uint32(placement)), bytes)
	}
	return p
}

// putToUse makes a span that is in no list one in use. Precondition: poolLock is held.
func putToUse(p *Page, hint uint32) {
	p.state = spanInUse
	p.Hint = hint
	p.home = uint32(homeOf(uintptr(hint)))
	p.moving, p.done, p.next = 0, 0, nil
	mapEnds(p) // for VMA splits
	pool.usedBytes += p.bytes()
	ageAdd(p)
}

// takeDirty takes a span of n slices that has memory, charged already, or returns
// nil.
func takeDirty(placement, n uintptr) *Page {
	s := &pool.freeSpans[placement&(placementSlots-1)]
	p := s.dirty.take(n)
	if p == nil {
		return nil
	}
	forgetDirty(p)
	p.zero = 0
	if rest := split(p, n, spanDirty); rest != nil {
		rememberDirty(rest)
	}
	return p
}

// takeReserved takes a span of n slices for which whole slices have been charged, or
// returns nil. A span that another thread has made dirty meanwhile serves as well, and then the
// charge is released.
func takeReserved(placement, n, whole uintptr) *Page {
	if p := takeDirty(placement, n); p != nil {
		tiers.Release(tierOf(uint32(placement)), whole<<SliceShift)
		return p
	}
	p := pool.freeSpans[placement&(placementSlots-1)].clean.take(whole)
	if p == nil {
		p = grow(placement, whole)
	}
	if p == nil {
		return nil
	}
	p.zero = 1
	split(p, whole, spanClean)
	if more := uintptr(p.slices) - whole; more != 0 &&
		!tiers.Admit(tierOf(p.placement), more<<SliceShift) {
		insertFree(p, spanClean) // there is no descriptor for the rest
		return nil
	}
	commit(p.bytes())
	p.state = spanInUse
	if rest := cut(p, n); rest != nil {
		addDirty(rest)
	}
	return p
}

// cut makes p, which is in no list, n slices long and returns the rest, in no list
// either; or nil, with p as it was, when there is no rest or no descriptor for it.
func cut(p *Page, n uintptr) *Page {
	have := uintptr(p.slices)
	if have == n {
		return nil
	}
	rest := newDescriptor()
	if rest == nil {
		return nil
	}
	rest.Owner = ownerNone
	rest.Start = p.spanStart() + n<<SliceShift
	rest.slices = uint32(have - n)
	rest.segment = p.segment
	rest.setFreeSince(p.freeSince())
	rest.placement = p.placement
	rest.blocks, rest.Carved, rest.Remote, rest.unmigrated, rest.moving = 0, 0, 0, 0, 0
	p.slices = uint32(n)
	return rest
}

// cutBatch puts a span to use as up to most spans of n slices, linked by next. Precondition:
// poolLock is held.
func cutBatch(p *Page, n, most uintptr, hint uint32) {
	for ; most > 1; most-- {
		rest := cut(p, n)
		if rest == nil {
			break
		}
		rest.zero = p.zero
		putToUse(p, hint)
		p.next = rest
		p = rest
	}
	putToUse(p, hint)
}

// split is cut with the rest put in its bin, in the given state.
func split(p *Page, n uintptr, state uint8) *Page {
	rest := cut(p, n)
	if rest != nil {
		insertFree(rest, state)
	}
	return rest
}

// rememberDirty counts a span that was put in a dirty bin, and forgetDirty one that
// was taken out.
func rememberDirty(p *Page) {
	s := &pool.freeSpans[p.placement&(placementSlots-1)]
	s.dirtyBytes += p.bytes()
	pool.dirtyBytes += p.bytes()
	if purgeable(p) {
		pool.oldest[p.placement&(placementSlots-1)].add(p)
	}
}

func forgetDirty(p *Page) {
	s := &pool.freeSpans[p.placement&(placementSlots-1)]
	s.dirtyBytes -= p.bytes()
	pool.dirtyBytes -= p.bytes()
	if purgeable(p) {
		pool.oldest[p.placement&(placementSlots-1)].remove(p)
	}
}

// insertFree puts a span in the bin of its state and marks its ends.
func insertFree(p *Page, state uint8) {
	p.state = state
	mapEnds(p)
	s := &pool.freeSpans[p.placement&(placementSlots-1)]
	if state == spanDirty {
		s.dirty.add(p)
	} else {
		s.clean.add(p)
	}
}

// spanFree gives a span back. It stays dirty until it is purged. since is when it
// became free. Precondition: poolLock does not refuse the thread.
func spanFree(token uintptr, p *Page, since uint64) {
	poolLock.Take(token)
	spanFreeLocked(token, p, since)
	poolLock.Release()
}

// spanFreeLocked is spanFree with poolLock held, which is let go if the span is purged at once.
func spanFreeLocked(token uintptr, p *Page, since uint64) {
	p.Owner = ownerNone
	mapFill(p, nil)
	p.setFreeSince(since)
	p.Remote = 0
	if p.moving != 0 {
		p.moving |= movingFreed // its holder goes on from here
		mapEnds(p)              // for VMA splits
	} else {
		spanFreed(token, p)
	}
}

// spanFreed puts a span that is no longer in use among the dirty ones. One with unmigrated
// pages is purged at once. poolLock is held, and let go for that.
func spanFreed(token uintptr, p *Page) {
	p.Start = p.spanStart()
	pool.usedBytes -= p.bytes()
	ageRemove(p)
	if p.unmigrated != 0 && (purgeSpan(token, p) || !settle(p)) {
		return
	}
	addDirty(p)
}

// addDirty puts a span that is in no list among the dirty ones.
func addDirty(p *Page) {
	p = coalesce(p, spanDirty)
	insertFree(p, spanDirty)
	rememberDirty(p)
}

// spanReturn takes back a span that could not be used: its memory goes at once.
func spanReturn(token uintptr, p *Page) {
	poolLock.Take(token)
	p.Owner = ownerNone
	mapFill(p, nil)
	p.Remote = 0
	pool.usedBytes -= p.bytes()
	ageRemove(p)
	if !purgeSpan(token, p) {
		addDirty(p)
	}
	poolLock.Release()
}

// coalesce joins p, which is in no list, with the free spans of the given state and
// of its placement on both sides, and returns the joint span, in no list. Dirty neighbours
// leave the list by age and the sums.
func coalesce(p *Page, state uint8) *Page {
	seg := p.segment
	if seg.epoch != pool.epoch { // its neighbours are on lists that are gone
		return p
	}
	if p.Start > seg.start {
		if q := Lookup(p.Start - SliceSize); joins(p, q, state) {
			removeFree(q, state)
			q.setFreeSince(p.freeSince())
			p = join(q, p)
		}
	}
	if end := p.Start + p.bytes(); end < seg.start+seg.slices<<SliceShift {
		if q := Lookup(end); joins(p, q, state) {
			removeFree(q, state)
			p = join(p, q)
		}
	}
	return p
}

func joins(p, q *Page, state uint8) bool {
	return q != nil && q.state == state && q.Owner == ownerNone && q.placement == p.placement
}

func removeFree(q *Page, state uint8) {
	s := &pool.freeSpans[q.placement&(placementSlots-1)]
	if state == spanDirty {
		s.dirty.remove(q)
		forgetDirty(q)
	} else {
		s.clean.remove(q)
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
