package cudahook

import "testing"

func TestFootprint(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for _, c := range []struct {
		sizes []uint64
		want  uint64
	}{
		{nil, 0},
		{[]uint64{0}, 0},
		{[]uint64{1}, 2 * mib},
		{[]uint64{mib - 1}, 2 * mib},
		{[]uint64{mib}, 2 * mib},
		{[]uint64{2*mib + 1}, 4 * mib},
		{[]uint64{17 * mib, 17 * mib}, 36 * mib},
		// three of them would fit, but not whatever they come after
		{[]uint64{600 * kib, 600 * kib, 600 * kib}, 4 * mib},
		{[]uint64{1, 17 * mib}, 20 * mib},
		{[]uint64{^uint64(0)}, 1 << 62},
		{[]uint64{^uint64(0), ^uint64(0), 1}, 1 << 62},
	} {
		var f Footprint
		for _, n := range c.sizes {
			f.Add(n)
		}
		if got := f.Bytes(); got != c.want {
			t.Errorf("%d: %d, expected %d", c.sizes, got, c.want)
		}
	}
}
