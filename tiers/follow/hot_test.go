package follow

import (
	"slices"
	"testing"
)

// TestHot: the mean is by page, and of what is known.
func TestHot(t *testing.T) {
	const mib = 1 << 20
	known := func(n uintptr, heat float64) Region {
		return Region{Start: mib, End: mib + n*mib, Known: true, Heat: heat}
	}
	unknown := known(100, 1000)
	unknown.Known = false
	for _, c := range []struct {
		regions []Region
		want    []bool
	}{
		{nil, []bool{}},
		{[]Region{unknown}, []bool{false}},
		{[]Region{known(1, 0), known(2, 0)}, []bool{false, false}},
		{[]Region{known(1, 3), known(2, 3)}, []bool{false, false}},
		{[]Region{known(1, 9), known(9, 1), unknown}, []bool{true, false, false}},
		{[]Region{known(1, 2), known(9, 3), known(1, 0)}, []bool{false, true, false}},
	} {
		if got := Hot(c.regions); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v, not %v", c.regions, got, c.want)
		}
	}
}
