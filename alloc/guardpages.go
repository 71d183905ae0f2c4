package alloc

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// With TA_SECURE=1 a large block is a huge block between addresses without access:
//
//	reserved [ guard | block, whole memory pages | guard ]
//
// The rest of the block's last memory page is filled. A freed block becomes inaccessible at once.
// Its memory returns to the kernel, and its addresses are not reused while they are parked.
//
// Guards take more addresses than blocks do, so under a limit on addresses (RLIMIT_AS) a block gets
// guards only while a part of the limit stays free. When that part is used up, and whenever the
// kernel refuses a mapping, parked addresses and the guards of live blocks are unmapped. A block
// also gets no guards if the limit on mappings prevents it. Every block without guards is counted.
//
// In the descriptor of such a block, fields that only pages of blocks need hold the size asked for
// (Carved), the family that allocated it (Class), and the reserved addresses (reservation).
const (
	// slices on each side: writes up to 1 MiB outside the block are caught
	guardPagesLeast  = 17
	guardPagesRandom = 16 // up to so many more, at random

	// The part of an address limit that must stay free beside a block with guards. Once guards were
	// dropped, more must be free before blocks get guards again.
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
	size, placement, first, ok := h.reserveHuge(raw.RoundUp(n, SliceSize), false)
	if !ok {
		return nil
	}
	atomic.AddUint64(&pool.count.hugeMisses, 1)
	used := raw.RoundUp(n, raw.Page)
	align = max(align, hugePageSlices(placement)<<SliceShift, first.hugePageSlices()<<SliceShift)
	start, base, whole := guardPagesMap(h.Thread.token, size, used, align)
	var p *Page
	if start != 0 {
		if p = h.adoptFresh(start, size, used, placement, first, false); p == nil {
			raw.Unmap(base, whole)
		}
	}
	if p == nil {
		first.release(size, placement)
		return nil
	}
	mapped(whole - size)
	locked := poolLock.Take(h.Thread.token) // else only this thread knows p (spanalloc.go)
	p.setReservation(base, whole)
	if locked {
		poolLock.Release()
	}
	return p
}

// guardPagesMap maps whole bytes at base for a block of size bytes at start, a multiple of align.
// used bytes of the block are accessible.
func guardPagesMap(token, size, used, align uintptr) (start, base, whole uintptr) {
	r := uintptr(random())
	before, after := guardPagesLeast+r%guardPagesRandom, guardPagesLeast+r>>32%guardPagesRandom
	whole = size + (before+after)<<SliceShift + align
	spare := spareAddresses()
	base = mapBeside(whole, spare)
	if base == 0 && dropGuardPagesLocking(token, whole+spare) {
		base = mapBeside(whole, spareAddresses())
	}
	if base != 0 {
		start = raw.RoundUp(base+before<<SliceShift, align)
		if raw.Open(start, used) {
			return start, base, whole
		}
		raw.Unmap(base, whole)
	}
	start = mapAligned(size, align)
	if start == 0 && (dropGuardPagesLocking(token, size) || dropRoomLocking(token)) {
		start = mapAligned(size, align)
	}
	if start != 0 {
		atomic.AddUint64(&withoutGuardPages, 1)
	}
	return start, start, size
}

// spareAddresses returns the bytes of addresses that must stay free beside a block with guards.
func spareAddresses() uintptr {
	limit := addressLimit
	switch {
	case limit == 0:
		return 0
	case atomic.LoadUint32(&guardPagesDropped) != 0:
		return raw.RoundUp(limit/spareShareAgain, raw.Page)
	}
	return raw.RoundUp(limit/spareShare, raw.Page)
}

// mapBeside reserves n bytes, or returns 0 if spare bytes of addresses would not stay free. Only
// the kernel knows the free addresses, so it is asked for both at once.
func mapBeside(n, spare uintptr) uintptr {
	if spare != 0 {
		if !reservable(n + spare) {
			return 0
		}
		atomic.StoreUint32(&guardPagesDropped, 0)
	}
	return raw.MapBarred(n)
}

// dropGuardPagesLocking is dropGuardPages for a caller that does not hold poolLock.
func dropGuardPagesLocking(token, n uintptr) bool {
	if !poolLock.Take(token) {
		return false
	}
	ok := dropGuardPages(n)
	poolLock.Release()
	return ok
}

// guardPagesFree checks a block with guard pages before the call in frees it.
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
