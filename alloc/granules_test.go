package alloc

import (
	"math/rand/v2"
	"testing"

	"tieralloc/internal/raw"
)

// TestGranuleTable compares the granules that a table finds with what a look at granule after
// granule finds.
func TestGranuleTable(t *testing.T) {
	table := (*granuleTable)(raw.Ptr(raw.Map(raw.RoundUp(granuleTableBytes, raw.Page))))
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 1000 {
		*table = granuleTable{}
		sparse := 1 + r.IntN(40)
		for u := range uintptr(granuleCount) {
			if r.IntN(sparse) != 0 || sparse == 1 {
				table.free.set(u, 1, true)
				table.left++
			}
		}
		k, step := 1+uintptr(r.IntN(20)), uintptr(1)<<r.IntN(5)
		if round%5 == 0 {
			k, step = 1+uintptr(r.IntN(600)), uintptr(1)<<r.IntN(10)
		}
		for want := uintptr(0); want+k <= granuleCount; {
			side := uintptr(0)
			for side < k && table.free.has(want+side) {
				side++
			}
			if side < k {
				want += step
				continue
			}
			if got := table.find(k, step); got != want {
				t.Fatalf("round %d: %d granules at multiples of %d: found at %d, they are at %d",
					round, k, step, got, want)
			}
			left := table.left
			table.take(want, k)
			if n := table.granulesOf(want); n != k || table.free.ones(want, k) != 0 ||
				table.free.has(want+k-1) {
				t.Fatalf("round %d: %d granules at %d are taken as %d", round, k, want, n)
			}
			table.give(want, k)
			if n := table.free.ones(want, k); n != k || k > 1 && table.cont.has(want+k-1) ||
				table.left != left {
				t.Fatalf("round %d: %d of %d granules at %d are given back", round, n, k, want)
			}
			table.take(want, k)
			want = raw.RoundUp(want+k, step)
		}
		if got := table.find(k, step); got != granuleCount {
			t.Fatalf("round %d: %d granules at multiples of %d: found at %d where there are none",
				round, k, step, got)
		}
	}
}
