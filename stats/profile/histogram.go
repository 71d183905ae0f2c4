package profile

import (
	"math/bits"

	"tieralloc/internal/raw"
)

// A power of two is divided into steps buckets, so that the values of a bucket differ by a factor
// of 1.25 at most. The values below steps have a bucket each, and the last has all large ones.
const (
	steps   = 4
	buckets = 176 // the last begins at 7/8 of 2^45
)

// histogram estimates the median of weighted values.
//
//	low() <= each value <= high, where there are any
type histogram struct {
	_ raw.OffHeap

	unlow, high uint64  // ^low(), so that both only grow
	sum         float64 // of the weights
	weight      [buckets]float32
}

// low returns the smallest value, or 0 if there is none.
func (h *histogram) low() uint64 {
	if h.sum == 0 {
		return 0
	}
	return ^h.unlow
}

// bucketOf returns the number of the bucket of v.
func bucketOf(v uint64) uint64 {
	if v < steps {
		return v
	}
	shift := uint64(bits.Len64(v)) - 3
	return min(shift*steps+v>>(shift&63), buckets-1)
}

// bucketLow returns the smallest value of bucket i.
func bucketLow(i uint64) uint64 {
	if i < steps {
		return i
	}
	return (steps + i%steps) << (i/steps - 1&63)
}

// add adds a value, also while other threads do.
func (h *histogram) add(v uint64, weight float64) {
	raise(&h.unlow, ^v)
	raise(&h.high, v)
	add(&h.sum, weight)
	if i := bucketOf(v); i < buckets {
		add32(&h.weight[i], float32(weight))
	}
}

// merge adds the values of another histogram.
func (h *histogram) merge(o *histogram) {
	if o.sum == 0 {
		return
	}
	h.unlow, h.high = max(h.unlow, o.unlow), max(h.high, o.high)
	h.sum += o.sum
	for i := range h.weight {
		h.weight[i] += o.weight[i]
	}
}

// median estimates the median: it interpolates in the bucket that has it, as if the bucket's values
// were uniform. If they are not, it is off by less than a factor of 1.25. If all values are equal,
// it is exact.
func (h *histogram) median() uint64 {
	all := 0.0
	for i := range h.weight {
		all += float64(h.weight[i])
	}
	before := 0.0
	for i := range h.weight {
		w := float64(h.weight[i])
		if before+w < all/2 || w == 0 {
			before += w
			continue
		}
		low, end := max(bucketLow(uint64(i)), h.low()), h.high+1
		if i < buckets-1 {
			end = min(bucketLow(uint64(i)+1), end)
		}
		v := low + uint64(int64(float64(end-low)*(all/2-before)/w))
		return min(v, end-1)
	}
	return 0
}
