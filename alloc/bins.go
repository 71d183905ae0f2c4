package alloc

import "math/bits"

// spanBins keeps free spans by length: an exact bin for each length below 64
// slices, then one for each doubling. The bitmap has a bit for each bin that is
// not empty, so a fit is found without a search; only a span of 64 slices or more
// looks along the list of its own doubling.
//
//	bit i of mask set ⇔ head[i] != nil
//	every span in head[i], 0 < i < 64, has i slices
const (
	exactBins = 64
	binCount  = 128 // 64 exact, 32 doublings, rounded up so that an index is masked
)

type spanBins struct {
	head [binCount]*Page
	mask [2]uint64
}

func binOf(n uintptr) uintptr {
	if n < exactBins {
		return n
	}
	return exactBins + uintptr(bits.Len64(uint64(n))) - 7
}

func (b *spanBins) add(p *Page) {
	i := binOf(uintptr(p.slices)) & (binCount - 1)
	p.prev = nil
	p.next = b.head[i]
	if p.next != nil {
		p.next.prev = p
	}
	b.head[i] = p
	b.mask[i>>6&1] |= 1 << (i & 63)
}

func (b *spanBins) remove(p *Page) {
	i := binOf(uintptr(p.slices)) & (binCount - 1)
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		b.head[i] = p.next
		if p.next == nil {
			b.mask[i>>6&1] &^= 1 << (i & 63)
		}
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
}

// take removes and returns a span of at least n slices, or nil: the best fit
// below 64 slices, a first fit above.
func (b *spanBins) take(n uintptr) *Page {
	i := binOf(n)
	if i >= exactBins {
		for p := b.head[i&(binCount-1)]; p != nil; p = p.next {
			if uintptr(p.slices) >= n {
				b.remove(p)
				return p
			}
		}
		i++
	}
	i = b.next(i)
	if i == binCount {
		return nil
	}
	p := b.head[i&(binCount-1)]
	b.remove(p)
	return p
}

// has reports whether take(n) would find a span. From 64 slices on it may miss one of less than
// twice that.
func (b *spanBins) has(n uintptr) bool {
	i := binOf(n)
	if i >= exactBins {
		i++
	}
	return b.next(i) != binCount
}

// next is the first bin from i on that is not empty, or binCount.
func (b *spanBins) next(i uintptr) uintptr {
	low, high := b.mask[0], b.mask[1]
	if i < 64 {
		low &= ^uint64(0) << (i & 63)
	} else {
		low = 0
		high &= ^uint64(0) << (i & 63)
	}
	switch {
	case low != 0:
		return uintptr(bits.TrailingZeros64(low))
	case high != 0:
		return 64 + uintptr(bits.TrailingZeros64(high))
	}
	return binCount
}
