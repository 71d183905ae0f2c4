package heat

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// kib64 is a range of so many times 64 KiB.
func kib64(start, n uintptr) Range { return Range{start << 16, (start + n) << 16} }

// like reports that two numbers differ by rounding only.
func like(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// sampled is an estimate after so many samples in which the pages of each region were touched
// heats[i] times a second, but for chance.
func sampled(rng *rand.Rand, regions []Range, heats []float64, samples int) *Estimate {
	e := NewEstimate(regions)
	for range samples {
		e.Add(chance(rng, e, heats))
	}
	return e
}

// chance are rates around heats.
func chance(rng *rand.Rand, e *Estimate, heats []float64) []Rate {
	const window = 50 * time.Millisecond
	rates := make([]Rate, len(heats))
	for i, heat := range heats {
		pages := e.pages(i)
		rates[i] = rate(touchedOf(rng, int(pages), heat, window), pages, pages, window)
	}
	return rates
}

// deviation is the standard deviation of a region's heat, infinite if it is not known.
func deviation(e *Estimate, i int) float64 {
	if !e.Known(i) {
		return math.Inf(1)
	}
	return e.Spread(i).Deviation(e.Heat(i))
}

// TestSplitAndJoin: parts of a region are as hot as it was, and regions that join as hot as they
// were in the mean over their pages.
func TestSplitAndJoin(t *testing.T) {
	e := NewEstimate([]Range{kib64(16, 4), kib64(20, 12), kib64(40, 8)})
	for range 3 {
		e.Add([]Rate{{PerSecond: 64 * 10}, {PerSecond: 192 * 2}, {PerSecond: 128 * 5}})
	}
	for i, want := range []float64{10, 2, 5} {
		if !like(e.Heat(i), want) || e.Seen(i) != 3 {
			t.Fatalf("region %d: heat %f, seen %d", i, e.Heat(i), e.Seen(i))
		}
	}
	e.Follow([]Range{kib64(16, 1), kib64(17, 3), kib64(20, 6), kib64(26, 6), kib64(40, 8)})
	for i, want := range []float64{10, 10, 2, 2, 5} {
		if !like(e.Heat(i), want) || e.Seen(i) != 3 {
			t.Errorf("split, region %d: heat %f, seen %d", i, e.Heat(i), e.Seen(i))
		}
	}
	e.Follow([]Range{kib64(16, 16), kib64(40, 8)})
	for i, want := range []float64{4, 5} {
		if !like(e.Heat(i), want) || e.Seen(i) != 3 {
			t.Errorf("joined, region %d: heat %f, seen %d", i, e.Heat(i), e.Seen(i))
		}
	}
	e.Add([]Rate{{PerSecond: 256 * 4}, {PerSecond: 128 * 5}})
	if !like(e.Heat(0), 4) || e.Seen(0) != 4 || deviation(e, 0) != 0 {
		t.Errorf("heat %f, deviation %f, seen %d", e.Heat(0), deviation(e, 0), e.Seen(0))
	}
}

// TestNewRegion: nothing is known of a region before its second sample. One that grew is as hot as
// its old part, and was seen as often as its parts in the mean.
func TestNewRegion(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	e := sampled(rng, []Range{kib64(16, 32), kib64(64, 32)}, []float64{10, 0}, 8)
	old := e.Heat(0)
	e.Follow([]Range{kib64(16, 32), kib64(48, 16), kib64(64, 64)})
	if e.Heat(0) != old || e.Seen(0) != 8 {
		t.Errorf("a region that stayed: heat %f, was %f, seen %d", e.Heat(0), old, e.Seen(0))
	}
	if e.Heat(1) != 0 || e.Seen(1) != 0 || !math.IsInf(deviation(e, 1), 1) {
		t.Errorf("a new region: heat %f, seen %d, deviation %f", e.Heat(1), e.Seen(1),
			deviation(e, 1))
	}
	if e.Heat(2) != 0 || e.Seen(2) != 4 {
		t.Errorf("a region that grew: heat %f, seen %d", e.Heat(2), e.Seen(2))
	}
	heats := []float64{0, 10, 0}
	for seen := range 3 {
		fast := []bool{false, false, true}
		if got := len(e.Exchanges(fast, 2)); e.Seen(1) != seen || seen < 2 && got > 1 {
			t.Errorf("seen %d of %d, %d exchanges", e.Seen(1), seen, got)
		}
		e.Add(chance(rng, e, heats))
	}
	if math.Abs(e.Heat(1)-10) > 6*deviation(e, 1) || deviation(e, 1) > 4 {
		t.Errorf("a region no longer new: heat %f, deviation %f", e.Heat(1), deviation(e, 1))
	}
}

// TestDeviation: heats differ from the truth as the deviation says, in regions of all sizes.
func TestDeviation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var regions []Range
	var heats []float64
	for i, at := 0, uintptr(16); i < 300; i++ {
		n := uintptr(1) << (i % 6)
		regions = append(regions, kib64(at, n))
		heats = append(heats, float64(1+i%4))
		at += n
	}
	for _, samples := range []int{1, 3, 40} {
		e := sampled(rng, regions, heats, samples)
		squares := map[uintptr]float64{}
		for i, r := range regions {
			error := (e.Heat(i) - heats[i]) / e.Spread(i).Deviation(heats[i])
			squares[r.End-r.Start] += error * error / 50
		}
		for bytes, mean := range squares {
			if mean < 0.4 || mean > 2 {
				t.Errorf("after %d samples, regions of %d: errors are %.2f deviations", samples,
					bytes, math.Sqrt(mean))
			}
		}
	}
}

// TestRegionsChange: a program of which the hot half stays hot while the heap grows, splits and
// joins its regions. What is hot is always known to be.
func TestRegionsChange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	hot := func(r Range) bool { return r.Start>>20%2 == 0 } // every other MiB
	e := NewEstimate(nil)
	for at := range 60 {
		var regions []Range
		for mib := uintptr(1); mib < uintptr(50+at); mib++ {
			piece := uintptr(1) << rng.IntN(5)
			for k := range piece {
				regions = append(regions, kib64(mib*16+k*16/piece, 16/piece))
			}
		}
		e.Follow(regions)
		heats := make([]float64, len(regions))
		for i, r := range regions {
			if hot(r) {
				heats[i] = 10
			}
			if e.Seen(i) >= leastSeen && hot(r) != (e.Heat(i) > 3) {
				t.Fatalf("sample %d, region %x: heat %f, hot %v", at, r, e.Heat(i), hot(r))
			}
		}
		e.Add(chance(rng, e, heats))
	}
	if e.Seen(0) != 60 {
		t.Errorf("seen %d", e.Seen(0))
	}
}
