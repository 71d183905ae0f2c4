package alloc

import (
	"math/rand/v2"
	"testing"

	"tieralloc/internal/raw"
)

// TestRunSearch compares what is found, run after run, with what a look at unit after unit finds.
func TestRunSearch(t *testing.T) {
	table := (*Runs)(raw.Ptr(raw.Map(raw.RoundUp(runsBytes, raw.Page))))
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		*table = Runs{}
		end := 1 + uintptr(r.IntN(runUnits))
		if round%2 == 0 {
			end = 1 + uintptr(r.IntN(300))
		}
		for u, sparse := uintptr(0), 1+r.IntN(40); u < end; u++ {
			if r.IntN(sparse) != 0 || sparse == 1 {
				set(&table.Free, u, 1, true)
			}
		}
		from, k, step := uintptr(r.IntN(int(end))), 1+uintptr(r.IntN(20)), uintptr(1)<<r.IntN(5)
		if round%5 == 0 {
			k, step = 50+uintptr(r.IntN(40)), uintptr(1)<<r.IntN(8)
		}
		search := newRunSearch(from, end, k, step)
		for want := raw.RoundUp(from, step); want+k <= end; {
			side := uintptr(0)
			for side < k && has(&table.Free, want+side) {
				side++
			}
			if side < k {
				want += step
				continue
			}
			got := search.next(table)
			if got != want {
				t.Fatalf("round %d: %d units at multiples of %d, from %d of %d on: found at %d, they are at %d", round, k, step, from, end, got, want)
			}
			table.take(got, k)
			if n := table.unitsOf(got); n != k || has(&table.Free, got) || has(&table.Free, got+k-1) {
				t.Fatalf("round %d: %d units at %d are taken as %d", round, k, got, n)
			}
			if round%3 == 0 {
				table.give(got, k)
				if n := ones(&table.Free, got, k); n != k || k > 1 && has(&table.Cont, got+k-1) {
					t.Fatalf("round %d: %d of %d units at %d are given back", round, n, k, got)
				}
				table.take(got, k)
			}
			want = raw.RoundUp(got+k, step)
		}
		if got := search.next(table); got != runUnits {
			t.Fatalf("round %d: %d units at multiples of %d, from %d of %d on: found at %d where there are none", round, k, step, from, end, got)
		}
	}
}
