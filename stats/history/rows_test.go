package history

import (
	"math"
	"math/rand/v2"
	"testing"

	"tieralloc/stats"
)

// TestLevels: a level says the heat within 5%, and more heat is never a lower level.
func TestLevels(t *testing.T) {
	last := uint8(0)
	for heat := Least; heat < 1e6; heat *= 1.01 {
		l := Level(heat)
		if l < last || l < 2 || math.Abs(Heat(l)/heat-1) > 0.05 {
			t.Fatalf("%g has level %d after %d, which is %g", heat, l, last, Heat(l))
		}
		last = l
	}
	for heat, want := range map[float64]uint8{0: Untouched, -1: Untouched, Least / 2: Untouched,
		math.Inf(1): 255, 1e300: 255, Least: 2} {
		if l := Level(heat); l != want {
			t.Errorf("%g: %d, not %d", heat, l, want)
		}
	}
	if Level(math.NaN()) != Unknown || Heat(Unknown) != 0 || Heat(Untouched) != 0 {
		t.Error("what is not known has a heat")
	}
}

// TestFewRegions: where there are few regions each is a row.
func TestFewRegions(t *testing.T) {
	rows := Rows([]Region{{0x10000, 0x30000, 0, true, 4}, {0x30000, 0x40000, 0, true, 8},
		{0x40000, 0x50000, 2, false, 9}})
	want := []stats.HeatRow{{Start: 0x10000, Pages: 32, Heat: Level(4)},
		{Start: 0x30000, Pages: 16, Heat: Level(8)},
		{Start: 0x40000, Pages: 16, Heat: Unknown, Tier: 2}}
	if len(rows) != 3 || rows[0] != want[0] || rows[1] != want[1] || rows[2] != want[2] {
		t.Errorf("%+v", rows)
	}
	if rows := Rows(nil); len(rows) != 0 {
		t.Errorf("%+v", rows)
	}
}

// TestManyRegions: rows are few, in order, apart, and hold all regions; in adjoining memory of one
// tier, and no other, they hold nothing else.
func TestManyRegions(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, gaps := range []int{0, 2000, 2} {
		var regions []Region
		at, bytes := uintptr(1<<32), uintptr(0)
		for len(regions) < 8000 {
			n := uintptr(1+rng.IntN(8)) << 16
			regions = append(regions, Region{at, at + n, 1, rng.IntN(2) == 0, rng.Float64()})
			at += n
			bytes += n
			if gaps != 0 && rng.IntN(gaps) == 0 {
				at += uintptr(1+rng.IntN(1<<20)) << 16
			}
		}
		rows := Rows(regions)
		if len(rows) > stats.HistoryRows || len(rows) < stats.HistoryRows/16 {
			t.Errorf("%d rows", len(rows))
		}
		end, sum, i := uint64(0), uintptr(0), 0
		for _, r := range rows {
			if r.Start < end || r.Tier != 1 {
				t.Fatalf("%+v begins below %#x", r, end)
			}
			end = r.Start + uint64(r.Pages)<<12
			sum += uintptr(r.Pages) << 12
			for ; i < len(regions) && uint64(regions[i].End) <= end; i++ {
				if uint64(regions[i].Start) < r.Start {
					t.Fatalf("region %d is in no row", i)
				}
			}
		}
		if i != len(regions) || gaps != 2 && sum != bytes {
			t.Errorf("%d of %d regions, %d of %d bytes", i, len(regions), sum, bytes)
		}
	}
}

// TestMean: a joined row has the mean heat of what is known, and the tier of most.
func TestMean(t *testing.T) {
	got := row([]Region{{0x10000, 0x30000, 0, true, 1}, {0x30000, 0x40000, 0, true, 4},
		{0x40000, 0x90000, 2, false, 99}})
	if got.Heat != Level(2) || got.Tier != 2 || got.Pages != 128 {
		t.Errorf("%+v", got)
	}
	huge := row([]Region{{0, 1 << 46, 0, true, 1}})
	if huge.Pages != math.MaxUint32 {
		t.Errorf("%+v", huge)
	}
}
