package alloc

import (
	"math/bits"

	"tieralloc/internal/raw"
)

// runs is the table of a page.
type Runs struct {
	_     raw.OffHeap
	Free  [runUnits / 64]uint64
	Cont  [runUnits / 64]uint64
	Units uint64 // that the page has

	left uint32 // units that are free
	most uint32 // of them side by side, at most

	given  uint16 // a bit for each memory page that the kernel has, and that was not cut from since
	frees  uint64 // what is to be added to the page's counts of units so that blocks are counted,
	remote uint64 // of frees by other threads, who write it,
	allocs uint64 // and of blocks handed out
	next   *Runs  // of the pool's unused ones
}

// has reports whether the bit of unit u is set.
func has(bitmap *[runUnits / 64]uint64, u uintptr) bool {
	return bitmap[u>>6&(runUnits/64-1)]>>(u&63)&1 != 0
}

// unitsOf is how many units the live block at unit u has. Any thread may ask.
func (t *Runs) unitsOf(u uintptr) uintptr {
	return 1 + ones(&t.Cont, u+1, runUnits)
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

// A runSearch finds runs of k free units, each of which is taken before the next one is looked for.
type runSearch struct {
	at, end uintptr // the unit from which on to look, and up to which
	k, step uintptr // the number of the first unit is a multiple of step, a power of two
	places  uint64  // a bit for each multiple of step in 64 units
	starts  uint64  // where runs start in the 64 units around at, from at on; 0 where it is not known
}

func newRunSearch(at, end, k, step uintptr) (s runSearch) {
	s.at, s.end, s.k, s.step, s.places = at, end, k, step, 1
	for n := step; n < 64; n *= 2 {
		s.places |= s.places << n
	}
	return s
}

// next is the first unit of the next run, or runUnits. The caller takes the run.
func (s *runSearch) next(t *Runs) (u uintptr) {
	if s.k > 64 || s.step > 64 {
		u = t.findLong(s.at, s.k, s.step)
		s.at = u + s.k
		return u
	}
	for s.starts == 0 {
		if s.at >= s.end {
			return runUnits
		}
		if s.starts = t.starts(s.at>>6, s.k) & s.places & (^uint64(0) << (s.at & 63)); s.starts == 0 {
			s.at = s.at&^63 + 64
		}
	}
	i := uintptr(bits.TrailingZeros64(s.starts))
	u = s.at&^63 + i
	s.at = u + s.k
	if i += s.k; i < 64 {
		s.starts &= ^uint64(0) << i
	} else {
		s.starts = 0
	}
	if s.starts == 0 && i < 64 {
		s.at = s.at&^63 + 64
	}
	return u
}

// starts has a bit for each of 64 units from which on k are free side by side, up to 64. With each step the bits stand for twice as many
// units, the last time for k.
func (t *Runs) starts(word, k uintptr) uint64 {
	free, next := t.Free[word&(runUnits/64-1)], uint64(0)
	if free != 0 && k > 1 && word+1 < runUnits/64 {
		next = t.Free[(word+1)&(runUnits/64-1)]
	}
	for n := uintptr(1); n < k && free != 0; {
		more := min(n, k-n) & 63
		free &= free>>more | next<<(64-more)
		next &= next >> more
		n += more
	}
	return free
}

// findLong is the first of k free units, from u on, whose number is a multiple of step; or runUnits.
func (t *Runs) findLong(u, k, step uintptr) uintptr {
	for u < runUnits {
		w := t.Free[u>>6&(runUnits/64-1)] >> (u & 63)
		if w == 0 {
			u = (u | 63) + 1
			continue
		}
		u = raw.RoundUp(u+uintptr(bits.TrailingZeros64(w)), step)
		n := ones(&t.Free, u, k)
		if n >= k {
			return u
		}
		u += n + 1
	}
	return runUnits
}

// take makes one block of k free units.
func (t *Runs) take(u, k uintptr) {
	if w, at := u>>6&(runUnits/64-1), u&63; at+k < 64 {
		units := (uint64(1)<<(k&63) - 1) << at
		t.Free[w] &^= units
		t.Cont[w] |= units & (units << 1)
		return
	}
	set(&t.Free, u, k, false)
	set(&t.Cont, u+1, k-1, true)
}

// give makes k units free that are blocks, or one.
func (t *Runs) give(u, k uintptr) {
	if w, at := u>>6&(runUnits/64-1), u&63; at+k < 64 {
		units := (uint64(1)<<(k&63) - 1) << at
		t.Free[w] |= units
		t.Cont[w] &^= units
		return
	}
	set(&t.Free, u, k, true)
	set(&t.Cont, u, k, false)
}

// ones is how many bits are set side by side from u on, up to most.
func ones(bitmap *[runUnits / 64]uint64, u, most uintptr) (n uintptr) {
	for n < most && u+n < runUnits {
		v := u + n
		more := uintptr(bits.TrailingZeros64(^(bitmap[v>>6&(runUnits/64-1)] >> (v & 63))))
		n += more
		if more < 64-v&63 {
			break
		}
	}
	return min(n, most)
}
