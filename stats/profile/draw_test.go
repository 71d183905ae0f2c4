package profile

import (
	"math"
	"testing"

	"tieralloc/alloc/sizeclass"
)

func near(got, want, within float64) bool { return math.Abs(got-want) <= within*math.Abs(want) }

func TestLogarithm(t *testing.T) {
	for _, u := range []uint64{1, 2, 3, 1 << 20, 1<<63 - 1, 1 << 63, 1<<63 + 1, 3 << 62} {
		want := -math.Log(float64(u) / (1 << 64))
		if got := logarithm(u); !near(got, want, 1e-8) {
			t.Errorf("logarithm(%d) = %.12g, not %.12g", u, got, want)
		}
	}
	if got := logarithm(1<<64 - 1); got < 0 || got > 1e-8 {
		t.Errorf("logarithm(2^64-1) = %g", got)
	}
}

func TestChance(t *testing.T) {
	for x := 1e-9; x < 100; x *= 1.37 {
		if got, want := chance(x), -math.Expm1(-x); !near(got, want, 1e-9) {
			t.Errorf("chance(%g) = %.12g, not %.12g", x, got, want)
		}
	}
}

// TestUnbiased draws samples of blocks of several sizes as a heap does, by their number and by
// their bytes, at several levels of thinning, and compares the weighted sums with the exact ones.
// The bound is five standard deviations.
func TestUnbiased(t *testing.T) {
	defer func(was uint64) { Rate = was }(Rate)
	Rate = 4096
	for k, n := range []uint64{1, 16, 100, 4096, 10_000, 100_000, 8 << 20} {
		level := uint8(k % 4)
		const bytes = 400 << 20
		blocks := bytes / n
		unit := int64(sizeclass.Rounded(uintptr(n)))
		left, by, draw := Distance(level), unit, func() int64 { return Distance(level) }
		if n <= sizeclass.MaxSize {
			left, by, draw = Blocks(unit, level), 1, func() int64 { return Blocks(unit, level) }
		}
		sum, square := 0.0, 0.0
		for range blocks {
			if left -= by; left <= 0 {
				left = draw()
				sum += Weight(n, level)
				square += Weight(n, level) * (Weight(n, level) - 1)
			}
		}
		if d := math.Abs(sum - float64(blocks)); d > 5*math.Sqrt(square)+1 {
			t.Errorf("%d blocks of %d bytes were taken for %.0f", blocks, n, sum)
		}
	}
}
