package alloc

import (
	"math/bits"
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// With TA_SECURE=1 a block of 0 bytes is only an address: unique, aligned as asked, and in
// inaccessible memory, so that an access to it faults. OpenBSD's malloc and GrapheneOS's
// hardened_malloc do the same. (Without TA_SECURE it is a block of the smallest class, because some
// programs, such as stress-ng, write to it.)
//
// A zero page is a slice of such addresses, one granule apart. A bitmap after its descriptor says
// which of them are blocks. Zero pages are never unmapped: they have no memory, and an address
// costs one bit.
//
//	Allocs - Frees = bits set;  takenEnd = 1 + the highest bit ever set
//	on the list of its hint ⇔ Allocs - Frees < zeroBlocks
//
// The next search begins at searchFrom. It is circular, so that an address is reused as late as
// possible.
const (
	zeroBlocks   = SliceSize / sizeclass.Granule
	zeroWords    = zeroBlocks / 64
	zeroMaxAlign = raw.Page
	zeroChunk    = 16 * SliceSize // mapped at a time
	zeroBytes    = pageBytes + zeroBlocks/8
)

// zeroPages are all zero pages. Guarded by poolLock.
var zeroPages zeroState

type zeroState struct {
	room  [hintSlots]ageList // zero pages with a free address, by hint
	next  uintptr            // [next, end) is mapped and in no zero page yet
	end   uintptr
	count [placementSlots]tally // by tier
}

// zeroAlloc returns a block of 0 bytes at a multiple of align, a power of two, or 0 if there is
// none.
func zeroAlloc(h *Heap, align uintptr) uintptr {
	align = max(align, sizeclass.Granule)
	if align > zeroMaxAlign || !poolLock.Take(h.Thread.token) {
		return 0
	}
	p := zeroPages.room[h.Hint&(hintSlots-1)].head
	i := uintptr(zeroBlocks)
	if p != nil {
		i = p.zeroFind(align / sizeclass.Granule)
	}
	if i == zeroBlocks {
		if p = zeroPage(h.Hint); p != nil {
			i = 0
		}
	}
	b := uintptr(0)
	if p != nil {
		b = p.zeroTake(i)
	}
	poolLock.Release()
	return b
}

// zeroFind returns the number of the next free address that is a multiple of step, a power of two
// up to zeroMaxAlign/sizeclass.Granule, or zeroBlocks.
func (p *Page) zeroFind(step uintptr) uintptr {
	fit, words := uint64(1), step/64
	if d := uint64(1)<<(step&63) - 1; step < 64 && d != 0 {
		fit = ^uint64(0) / d // a bit in every so many
		words = 1
	}
	for k := uintptr(0); k <= zeroWords; k++ {
		w := (p.searchFrom()/64 + k) & (zeroWords - 1)
		if w&(words-1) != 0 {
			continue
		}
		free := ^uint64(raw.Load(p.zeroWord(w))) & fit
		if k == 0 {
			free &= ^uint64(0) << (p.searchFrom() & 63)
		}
		if free != 0 {
			return w*64 + uintptr(bits.TrailingZeros64(free))
		}
	}
	return zeroBlocks
}

// zeroTake makes a free address a block. Precondition: poolLock is held.
func (p *Page) zeroTake(i uintptr) uintptr {
	word := p.zeroWord(i / 64)
	raw.Store(word, raw.Load(word)|1<<(i&63))
	p.setSearchFrom((i + 1) % zeroBlocks)
	p.noteTaken(i)
	p.Allocs++
	if p.Allocs-p.Frees == zeroBlocks {
		zeroPages.room[p.Hint&(hintSlots-1)].remove(p)
	}
	zeroPages.count[tierOf(p.placement)].alloc(1, 0)
	return p.Start + i*sizeclass.Granule
}

// zeroWord returns the address of a word of the bitmap.
func (p *Page) zeroWord(w uintptr) uintptr { return addrOf(p) + pageBytes + w%zeroWords*8 }

// zeroPage makes a zero page for a hint and puts it first on the list, or returns nil.
// Precondition: poolLock is held.
func zeroPage(hint uint32) *Page {
	z := &zeroPages
	if z.next == z.end && !zeroMap() {
		return nil
	}
	p := (*Page)(raw.Ptr(metaAlloc(zeroBytes)))
	if p == nil {
		return nil
	}
	p.Owner = OwnerZero
	p.Start = z.next
	p.slices, p.blocks = 1, zeroBlocks
	p.state = spanZero
	p.Hint = hint
	p.home = uint32(homeOf(uintptr(hint)))
	p.placement = p.home
	z.next += SliceSize
	mapSet(p.Start, p)
	z.room[hint&(hintSlots-1)].addOldest(p)
	return p
}

// zeroMap reserves addresses for more zero pages.
func zeroMap() bool {
	const whole = zeroChunk + SliceSize - raw.Page
	addr := raw.MapBarred(whole)
	if addr == 0 {
		return false
	}
	start := raw.RoundUp(addr, SliceSize)
	if !mapReserve(start, zeroChunk) {
		raw.Unmap(addr, whole)
		return false
	}
	mapped(whole)
	zeroPages.next, zeroPages.end = start, start+zeroChunk
	return true
}

// zeroCheck returns the result of Check for an address in a zero page.
func (p *Page) zeroCheck(addr uintptr) uintptr {
	off := addr - p.Start
	i := off / sizeclass.Granule
	switch {
	case off%sizeclass.Granule != 0 || uint64(i) >= p.takenEnd():
		return FreeInside
	case atomic.LoadUintptr((*uintptr)(raw.Ptr(p.zeroWord(i/64))))>>(i&63)&1 == 0:
		return FreeDouble
	}
	return FreeOK
}

// zeroFree frees a block of 0 bytes. It returns a result of Free.
func zeroFree(token uintptr, p *Page, addr uintptr) uintptr {
	if !poolLock.Take(token) {
		return FreeOK // a signal handler interrupted the pool: the address is lost
	}
	why := p.zeroCheck(addr)
	if why == FreeOK {
		i := (addr - p.Start) / sizeclass.Granule
		word := p.zeroWord(i / 64)
		raw.Store(word, raw.Load(word)&^(1<<(i&63)))
		if p.Allocs-p.Frees == zeroBlocks {
			zeroPages.room[p.Hint&(hintSlots-1)].add(p)
		}
		p.Frees++
		zeroPages.count[tierOf(p.placement)].free(1, 0)
	}
	poolLock.Release()
	return why
}
