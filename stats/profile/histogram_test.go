package profile

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// newHistogram returns a histogram as the table has it: in mapped memory, all zero.
func newHistogram(t *testing.T) *histogram {
	size := raw.RoundUp(unsafe.Sizeof(histogram{}), raw.Page)
	at := raw.Map(size)
	if at == 0 {
		t.Fatal("no memory")
	}
	t.Cleanup(func() { raw.Unmap(at, size) })
	return (*histogram)(raw.Ptr(at))
}

// TestBuckets: each value lies within the bounds of its bucket, whose bounds are within a factor of
// 1.25.
func TestBuckets(t *testing.T) {
	for i := uint64(0); i < buckets-1; i++ {
		low, next := bucketLow(i), bucketLow(i+1)
		if next <= low || low >= steps && float64(next)/float64(low) > 1.25 {
			t.Errorf("bucket %d is from %d to %d", i, low, next)
		}
		if bucketOf(low) != i || bucketOf(next-1) != i {
			t.Errorf("%d is in bucket %d, %d in %d, not in %d", low, bucketOf(low), next-1,
				bucketOf(next-1), i)
		}
	}
	for _, v := range []uint64{1 << 45, 1 << 52, math.MaxUint64} {
		if i := bucketOf(v); i != buckets-1 {
			t.Errorf("%d is in bucket %d", v, i)
		}
	}
}

type weighted struct {
	value  uint64
	weight float64
}

// exactMedian is the smallest value that has half of the weight at or below it.
func exactMedian(all []weighted) uint64 {
	slices.SortFunc(all, func(a, b weighted) int {
		return int(int64(min(a.value, 1<<62)) - int64(min(b.value, 1<<62)))
	})
	sum, half := 0.0, 0.0
	for _, v := range all {
		half += v.weight / 2
	}
	for _, v := range all {
		if sum += v.weight; sum >= half {
			return v.value
		}
	}
	return 0
}

// TestMedian compares medians with exact ones: within a factor of 1.25, and within a fiftieth for
// smooth distributions, but for one, as both are whole numbers.
func TestMedian(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, c := range map[string]struct {
		draw   func() weighted
		within float64
	}{
		"log-uniform": {func() weighted {
			return weighted{uint64(math.Exp2(4 + 20*r.Float64())), 1}
		}, 1.02},
		"weighted": {func() weighted {
			v := uint64(math.Exp2(4 + 20*r.Float64()))
			return weighted{v, 1 / -math.Expm1(-float64(v)/65536)}
		}, 1.02},
		"normal": {func() weighted {
			return weighted{uint64(max(1, 3e6+1e6*r.NormFloat64())), 1}
		}, 1.02},
		"two sizes": {func() weighted {
			return weighted{[]uint64{100, 1000, 1000}[r.IntN(3)], 1}
		}, 1.25},
		"two in a bucket": {func() weighted {
			return weighted{[]uint64{1025, 1279, 1279, 1279}[r.IntN(4)], 1}
		}, 1.25},
		"small": {func() weighted { return weighted{r.Uint64N(4), 1} }, 1},
		"large": {func() weighted { return weighted{1<<46 + r.Uint64N(1<<20), 1} }, 1.02},
	} {
		h := newHistogram(t)
		var all []weighted
		for range 20_000 {
			v := c.draw()
			all = append(all, v)
			h.add(v.value, v.weight)
		}
		got, want := float64(h.median()), float64(exactMedian(all))
		if got > want*c.within+1 || got < want/c.within-1 {
			t.Errorf("%s: %.0f, not %.0f", name, got, want)
		}
	}
}

// TestMedianOfOne: the median of equal values is that value, of any, and of none 0.
func TestMedianOfOne(t *testing.T) {
	if m := newHistogram(t).median(); m != 0 {
		t.Errorf("of none: %d", m)
	}
	for _, v := range []uint64{0, 1, 5, 48, 100, 4097, 1 << 41, 1<<52 - 1} {
		for _, weight := range []float64{1, 3.7, 65536.5} {
			h := newHistogram(t)
			for range 3 {
				h.add(v, weight)
			}
			if m := h.median(); m != v {
				t.Errorf("of %d with the weight %g: %d", v, weight, m)
			}
		}
	}
}

// TestMerge: the median of merged histograms is that of all their values.
func TestMerge(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	all, sum := newHistogram(t), newHistogram(t)
	sum.merge(newHistogram(t))
	for range 5 {
		part := newHistogram(t)
		for range 1000 {
			v := r.Uint64N(1 << r.UintN(40))
			part.add(v, 1)
			all.add(v, 1)
		}
		sum.merge(part)
	}
	if sum.median() != all.median() || sum.low() != all.low() || sum.high != all.high {
		t.Errorf("%d from %d to %d, not %d from %d to %d", sum.median(), sum.low(), sum.high,
			all.median(), all.low(), all.high)
	}
}
