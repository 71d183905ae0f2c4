package alloc

import (
	"math/bits"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// granuleCount is the number of granules, of sizeclass.Granule bytes, in a nursery.
const granuleCount = SliceSize / sizeclass.Granule

type granuleBits [granuleCount / 64]uint64

// granuleTable holds two bits for each granule of a nursery: whether it is free, and whether it
// continues the block of the granule before it. Only the owner of the nursery writes the bits.
//
//	a granule is not both free and a continuation; the granule before a continuation is not free
//	left = Σ free
type granuleTable struct {
	_    raw.OffHeap
	free granuleBits
	cont granuleBits

	left uint32
	// a bit for each memory page that was returned to the kernel and from which no block was taken
	// since
	given uint16

	// Corrections of the page's counts, which count granules, to counts of blocks: of allocations,
	// of frees, and of frees by other threads, which write remote.
	allocs, frees, remote uint64

	next *granuleTable // of the pool's unused ones
}

const granuleTableBytes = (unsafe.Sizeof(granuleTable{}) + 63) &^ 63

// newGranuleTable returns a table in which all granules are free, or nil.
func newGranuleTable(token uintptr) *granuleTable {
	if !poolLock.Take(token) {
		return nil
	}
	t := pool.freeTables
	if t != nil {
		pool.freeTables = t.next
	} else {
		t = (*granuleTable)(raw.Ptr(metaAlloc(granuleTableBytes)))
	}
	poolLock.Release()
	if t != nil {
		*t = granuleTable{}
		t.free.set(0, granuleCount, true)
		t.left = granuleCount
	}
	return t
}

// drop keeps a table for the next nursery. (In a signal handler within the pool it is lost.)
func (t *granuleTable) drop(token uintptr) {
	if poolLock.Take(token) {
		t.next = pool.freeTables
		pool.freeTables = t
		poolLock.Release()
	}
}

// has reports whether the bit of granule u is set.
func (b *granuleBits) has(u uintptr) bool { return b[u>>6&(granuleCount/64-1)]>>(u&63)&1 != 0 }

// set sets the bits from u to u+k, or clears them.
func (b *granuleBits) set(u, k uintptr, on bool) {
	for k != 0 {
		i, at := u>>6&(granuleCount/64-1), u&63
		n := min(k, 64-at)
		mask := ^uint64(0) >> (64 - n&63) << at
		if n == 64 {
			mask = ^uint64(0)
		}
		if on {
			b[i] |= mask
		} else {
			b[i] &^= mask
		}
		u, k = u+n, k-n
	}
}

// ones returns the number of consecutive set bits from u on, up to most.
func (b *granuleBits) ones(u, most uintptr) (n uintptr) {
	for n < most && u+n < granuleCount {
		v := u + n
		more := uintptr(bits.TrailingZeros64(^(b[v>>6&(granuleCount/64-1)] >> (v & 63))))
		n += more
		if more < 64-v&63 {
			break
		}
	}
	return min(n, most)
}

// granulesOf returns the number of granules of the live block at granule u. Any thread may call it.
func (t *granuleTable) granulesOf(u uintptr) uintptr { return 1 + t.cont.ones(u+1, granuleCount) }

// find returns the first of k consecutive free granules whose number is a multiple of step, or
// granuleCount.
func (t *granuleTable) find(k, step uintptr) (u uintptr) {
	for u < granuleCount {
		w := t.free[u>>6&(granuleCount/64-1)] >> (u & 63)
		if w == 0 {
			u = (u | 63) + 1
			continue
		}
		u = raw.RoundUp(u+uintptr(bits.TrailingZeros64(w)), step)
		n := t.free.ones(u, k)
		if n >= k {
			return u
		}
		u += n + 1
	}
	return granuleCount
}

// take makes one block of k free granules.
func (t *granuleTable) take(u, k uintptr) {
	t.free.set(u, k, false)
	t.cont.set(u+1, k-1, true)
	t.left -= uint32(k)
	if t.given != 0 {
		t.given &^= memoryPages(u*sizeclass.Granule, (u+k)*sizeclass.Granule)
	}
}

// give frees k granules that are one block, or a single granule.
func (t *granuleTable) give(u, k uintptr) {
	t.free.set(u, k, true)
	t.cont.set(u, k, false)
	t.left += uint32(k)
}

// memoryPages returns a bit for each memory page of a span that the bytes from offset at to end
// touch.
func memoryPages(at, end uintptr) uint16 {
	return uint16(uint32(2)<<((end-1)>>raw.PageShift&15) - uint32(1)<<(at>>raw.PageShift&15))
}
