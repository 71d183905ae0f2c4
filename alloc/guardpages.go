package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// With TA_SECURE=1 a large block is a huge block between addresses without access:
//
//	reserved [ guard | block, whole memory pages | guard ]
//
// What is left of the block's last memory page is filled. A freed one becomes inaccessible
// at once, its memory goes back to the kernel, and its addresses are kept from reuse while
// they are parked.
//
// Guards take more addresses than blocks do, so they give way where addresses are limited
// (RLIMIT_AS): a block gets guards only while a part of the limit stays free beside them. When that
// is gone, and whenever the kernel refuses a mapping, parked addresses and the guards of live
// blocks go back to the kernel. Where a limit on mappings is in the way a block does without
// guards, too. Every block that has none is counted.
//
// Of the descriptor, fields that only pages of blocks need have what was asked for (Carved), the
// family that made it (Class), and what is reserved (reservation).
const (
	// slices on each side: writes that miss the block by up to 1 MiB are caught
	guardPagesLeast  = 17
	guardPagesRandom = 16 // and up to so many more

	// The part of an address limit that stays free beside a block with guards. Once guards have
	// given way more has to be free, so that they do not come and go with every block.
	spareShare      = 4
	spareShareAgain = 2
)

func (p *Page) request() uintptr { return uintptr(p.Carved) }

// guardPagesAlloc allocates n bytes at a multiple of align, a power of two.
func guardPagesAlloc(h *Heap, n, align, how uintptr) uintptr {
	if n > maxRequest || align > maxRequest {
		return 0
	}
	h.Thread.tick()
	p := guardPagesTry(h, n, align)
	if p == nil && purgeAll(h.Thread) > 0 {
		p = guardPagesTry(h, n, align)
	}
	if p == nil {
		return 0
	}
	p.Class = uint32(how >> HowFamily & familyMask % stateKinds)
	p.Carved = uint64(n)
	fill(p.Start, n, raw.RoundUp(n, raw.Page))
	h.Thread.migrate()
	return p.Start | ZeroBit
}

// guardPagesTry charges and maps a block of n bytes.
func guardPagesTry(h *Heap, n, align uintptr) *Page {
	placement, size, first, ok := h.reserveHuge(raw.RoundUp(n, SliceSize), false)
	if !ok {
		return nil
	}
	atomic.AddUint64(&pool.count.hugeMisses, 1)
	used := raw.RoundUp(n, raw.Page)
	align = max(align, hugePageSlices(placement)<<SliceShift, first.hugePageSlices()<<SliceShift)
	base, whole, start := guardPagesMap(h.Thread.token, size, used, align)
	var p *Page
	if start != 0 {
		first.settlePages(start, size, placement, false)
		if placement != placementPin || !bound || pin(start, used) {
			p = hugeAdopt(h.Thread.token, start, size, uint32(placement), h.Hint,
				uint32(homeOf(uintptr(h.Hint))), first, false)
		}
		if p == nil {
			raw.Unmap(base, whole)
		}
	}
	if p == nil {
		first.release(size, placement)
		return nil
	}
	mapped(whole - size)
	locked := poolLock.Take(h.Thread.token) // else p is known to this thread alone (emergency.go)
	p.setReservation(base, whole)
	if locked {
		poolLock.Release()
	}
	return p
}

// guardPagesMap reserves whole bytes at base for a block of size bytes at start, a multiple of
// align, and gives access to used ones of them.
func guardPagesMap(token, size, used, align uintptr) (base, whole, start uintptr) {
	r := uintptr(random())
	before, after := guardPagesLeast+r%guardPagesRandom, guardPagesLeast+r>>32%guardPagesRandom
	whole = size + (before+after)<<SliceShift + align
	spare := spareAddresses()
	base = reserveBeside(whole, spare)
	if base == 0 && dropGuardPagesLocking(token, whole+spare) {
		base = reserveBeside(whole, spareAddresses())
	}
	if base != 0 {
		start = raw.RoundUp(base+before<<SliceShift, align)
		if raw.Allow(start, used) {
			return base, whole, start
		}
		raw.Unmap(base, whole)
	}
	start = mapAligned(size, align)
	if start == 0 && dropGuardPagesLocking(token, size) {
		start = mapAligned(size, align)
	}
	if start != 0 {
		atomic.AddUint64(&withoutGuardPages, 1)
	}
	return start, size, start
}

// spareAddresses is how many bytes of addresses are to stay free beside a block with guards.
func spareAddresses() uintptr {
	limit := addressLimit()
	switch {
	case limit == noLimit:
		return 0
	case atomic.LoadUint32(&guardPagesDropped) != 0:
		return raw.RoundUp(limit/spareShareAgain, raw.Page)
	}
	return raw.RoundUp(limit/spareShare, raw.Page)
}

// reserveBeside reserves n bytes of addresses, or returns 0 where spare bytes would not stay free.
// Nobody but the kernel knows what the process has, so it is asked for both at once.
func reserveBeside(n, spare uintptr) uintptr {
	base := raw.Reserve(n + spare)
	if base != 0 && spare != 0 {
		raw.Unmap(base+n, spare)
		atomic.StoreUint32(&guardPagesDropped, 0)
	}
	return base
}

// dropGuardPagesLocking is dropGuardPages for who does not hold poolLock.
func dropGuardPagesLocking(token, n uintptr) bool {
	if !poolLock.Take(token) {
		return false
	}
	ok := dropGuardPages(n)
	poolLock.Release()
	return ok
}

// guardPagesFree is what Free has to look at before a block with guard pages is freed by the call
// in.
func (p *Page) guardPagesFree(in *running, how, size uintptr) uintptr {
	n := p.request()
	if why := judge(in, uintptr(p.Class), n, how, size); why != FreeOK {
		return why
	}
	if !fillIntact(p.Start, n, raw.RoundUp(n, raw.Page)) {
		corrupt(in, p, p.Start, foundBehind)
	}
	return FreeOK
}
