package alloc

import (
	"math/bits"

	"tieralloc/internal/raw"
)

// runs is the table of a page.
type runs struct {
	_    raw.OffHeap
	free [runUnits / 64]uint64
	cont [runUnits / 64]uint64
	left uint32 // units that are free
	most uint32 // of them side by side, at most

	given  uint16 // a bit for each memory page that the kernel has, and that was not cut from since
	frees  uint64 // what is to be added to the page's counts of units so that blocks are counted; other threads write
	allocs uint64 // the first
	next   *runs  // of the pool's unused ones
}

// has reports whether the bit of unit u is set.
func has(bitmap *[runUnits / 64]uint64, u uintptr) bool {
	return bitmap[u>>6&(runUnits/64-1)]>>(u&63)&1 != 0
}

// unitsOf is how many units the live block at unit u has. Any thread may ask.
func (t *runs) unitsOf(u uintptr) uintptr {
	k := uintptr(1)
	for u+k < runUnits && has(&t.cont, u+k) {
		k++
	}
	return k
}

// set sets the bits from u to u+k of a bitmap, or clears them.
func set(bitmap *[runUnits / 64]uint64, u, k uintptr, on bool) {
	for k != 0 {
		i, at := u>>6&(runUnits/64-1), u&63
		n := min(k, 64-at)
		mask := ^uint64(0) >> (64 - n&63) << at
		if n == 64 {
			mask = ^uint64(0)
		}
		if on {
			bitmap[i] |= mask
		} else {
			bitmap[i] &^= mask
		}
		u, k = u+n, k-n
	}
}

// find is the first of k free units, from u on, whose number is a multiple of step, a power of two; or runUnits.
func (t *runs) find(u, k, step uintptr) uintptr {
	for u < runUnits {
		w := t.free[u>>6&(runUnits/64-1)] >> (u & 63)
		if w == 0 {
			u = (u | 63) + 1
			continue
		}
		u = raw.RoundUp(u+uintptr(bits.TrailingZeros64(w)), step)
		n := t.freeFrom(u, k)
		if n >= k {
			return u
		}
		u += n + 1
	}
	return runUnits
}

// freeFrom is how many units are free from u on, up to most.
func (t *runs) freeFrom(u, most uintptr) (n uintptr) {
	for n < most && u+n < runUnits {
		v := u + n
		ones := uintptr(bits.TrailingZeros64(^(t.free[v>>6&(runUnits/64-1)] >> (v & 63))))
		if ones == 0 {
			break
		}
		n += min(ones, 64-v&63)
	}
	return min(n, most)
}
