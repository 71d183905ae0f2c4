package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// With TA_SECURE=1 a large block is a huge block between addresses without access:
//
//	reserved [ guard | block, whole memory pages | guard ]
//
// What is left of the block's last memory page is painted. A freed one becomes inaccessible
// at once, its memory goes back to the kernel, and its addresses are kept from reuse while
// they are parked. Where the kernel has no addresses for guards, or a limit on mappings is
// in the way, the block does without; that is counted.
//
// Of the descriptor, fields that only pages of blocks need have what was asked for (Carved), the
// family that made it (Class), and what is reserved (Free and Trigger: address and bytes).
const (
	guardLeast  = 17 // slices on each side: writes that miss the block by up to 1 MiB are caught
	guardRandom = 16 // and up to so many more
	parkedSlots = 256
	parkedBytes = 16 << 30
)

// parkedSet has freed guarded blocks, a ring: slot[at] is the oldest. Guarded by poolLock.
type parkedSet struct {
	slot  [parkedSlots]*Page
	at    uintptr
	bytes uintptr // reserved by them
}

// unguarded counts the blocks that had to do without guards.
var unguarded uint64

func (p *Page) request() uintptr { return uintptr(p.Carved) }

// guardedAlloc allocates n bytes at a multiple of align, a power of two.
func guardedAlloc(h *Heap, n, align, how uintptr) uintptr {
	if n > maxRequest || align > maxRequest {
		return 0
	}
	h.Thread.tick()
	p := guardedTry(h, n, align)
	if p == nil && purgeAll(h.Thread) > 0 {
		p = guardedTry(h, n, align)
	}
	if p == nil {
		return 0
	}
	p.Class = uint32(how >> HowFamily & familyMask % stateKinds)
	p.Carved = uint64(n)
	paint(p.Start, n, raw.RoundUp(n, raw.Page))
	h.Thread.migrate()
	return p.Start | ZeroBit
}

// guardedTry charges and maps a block of n bytes.
func guardedTry(h *Heap, n, align uintptr) *Page {
	s := shape{n: raw.RoundUp(n, SliceSize)}
	place, size, ok := h.reserveShape(placeOf(uintptr(h.Hint), homeOf(uintptr(h.Hint))), &s)
	if !ok {
		return nil
	}
	atomic.AddUint64(&pool.count.hugeMisses, 1)
	used := raw.RoundUp(n, raw.Page)
	align = max(align, unitOf(place)<<SliceShift)
	base, whole, start := guardedMap(h.Thread.token, size, used, align)
	var p *Page
	if start != 0 {
		settlePages(start, size, uint32(place), false)
		if place != placePin || !bound || pin(start, used) {
			p = h.hugeAdopt(start, size, uint32(place), h.Hint, uint32(homeOf(uintptr(h.Hint))), false)
		}
		if p == nil {
			raw.Unmap(base, whole)
		}
	}
	if p == nil {
		tiers.Release(tierOf(uint32(place)), size)
		return nil
	}
	mapped(whole - size)
	p.Free, p.Trigger = base, uint64(whole)
	return p
}

// guardedMap reserves whole bytes at base for a block of size bytes at start, a multiple of
// align, and gives access to used ones of them.
func guardedMap(token, size, used, align uintptr) (base, whole, start uintptr) {
	r := uintptr(random())
	before, after := guardLeast+r%guardRandom, guardLeast+r>>32%guardRandom
	whole = size + (before+after)<<SliceShift + align
	base = raw.Reserve(whole)
	if base == 0 && unpark(token) {
		base = raw.Reserve(whole)
	}
	if base != 0 {
		start = raw.RoundUp(base+before<<SliceShift, align)
		if raw.Allow(start, used) {
			return base, whole, start
		}
		raw.Unmap(base, whole)
	}
	atomic.AddUint64(&unguarded, 1)
	start = mapAligned(size, align)
	return start, size, start
}

// guardedFree is what Free and Check have to look at before a guarded block is freed.
func (p *Page) guardedFree(how, size uintptr) uintptr {
	n := p.request()
	if why := judge(uintptr(p.Class), n, how, size); why != FreeOK {
		return why
	}
	if !painted(p.Start, n, raw.RoundUp(n, raw.Page)) {
		found.slot, found.what = p.Start, foundBehind
		return FreeDamaged
	}
	return FreeOK
}

// park takes all access to a freed block away and keeps its addresses. poolLock is held, and
// let go meanwhile; p is in no list.
func park(token uintptr, p *Page) {
	size, place := p.Size, p.place
	stray, astray := uintptr(p.stray)*raw.Page, p.astray
	pool.leaving += size
	poolLock.Release()
	ok := forbid(p.Free, uintptr(p.Trigger), p.Start, size)
	if ok {
		tiers.Release(tierOf(place), size-stray)
		tiers.Release(tierOf(astray), stray)
	}
	poolLock.Take(token)
	pool.leaving -= size
	if ok {
		uncommit(size)
	}
	s := &pool.parked
	for i := 0; i < parkedSlots && (s.slot[s.at%parkedSlots] != nil || s.bytes > parkedBytes); i++ {
		s.oldest(token)
		if s.bytes <= parkedBytes {
			break
		}
		s.at++
	}
	s.slot[s.at%parkedSlots] = p
	s.at++
	s.bytes += uintptr(p.Trigger)
}

// oldest gives up the addresses of the block at the place of the next. poolLock is held,
// and let go meanwhile.
func (s *parkedSet) oldest(token uintptr) {
	p := s.slot[s.at%parkedSlots]
	if p == nil {
		return
	}
	base, whole := p.Free, uintptr(p.Trigger)
	s.slot[s.at%parkedSlots] = nil
	s.bytes -= whole
	mapSet(p.Start, nil)
	freeDescriptor(p)
	poolLock.Release()
	if raw.Unmap(base, whole) {
		unmapped(whole)
	}
	poolLock.Take(token)
}

// unpark gives up the addresses of all parked blocks, and reports whether there were any.
func unpark(token uintptr) bool {
	if pool.parked.bytes == 0 || !poolLock.Take(token) {
		return false
	}
	for range parkedSlots {
		pool.parked.oldest(token)
		pool.parked.at++
	}
	poolLock.Release()
	return true
}
