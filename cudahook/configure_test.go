package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

func TestConfigureRefuses(t *testing.T) {
	p := newProg(t, gib, nil)
	p.alloc(100)
	before := *p.report()
	for _, bad := range [][3]uint64{
		{0, 0, 1}, {0, ConfigTrace + 1, 1}, {deviceMax, ConfigGlobal, 1},
		{everyDevice - 1, ConfigGlobal, 1},
		{0, ConfigSegmentSize, 0}, {0, ConfigSegmentSize, mib}, {0, ConfigSegmentSize, 3 * mib},
		{0, ConfigSegmentSize, 65 * gib},
		{0, ConfigCoalescing, 2}, {0, ConfigStrategy, 2},
		{0, ConfigThreshold, config.ProportionOne + 1}, {0, ConfigTrace, 2},
	} {
		if Configure(8, bad[0], bad[1], bad[2]) != 0 {
			t.Errorf("%d is accepted", bad)
		}
	}
	if after := *p.report(); after.SegmentSize != before.SegmentSize ||
		after.GlobalLimit != before.GlobalLimit {
		t.Error("something has changed")
	}
}

// TestConfigure: each setting does what it says.
func TestConfigure(t *testing.T) {
	p := newProg(t, gib, nil)
	set := func(key, value uint64) {
		t.Helper()
		if Configure(8, everyDevice, key, value) != 1 {
			t.Fatalf("key %d, value %d is refused", key, value)
		}
	}
	set(ConfigSegmentSize, 40*mib) // before there is a device
	a := p.salloc(5*mib, 7)
	p.is("reserved", p.report().BytesReserved, 40*mib)
	set(ConfigCoalescing, 1)
	p.sfree(a, 7)
	p.is("merges", p.report().Merges, 1)
	set(ConfigCoalescing, 0)
	p.sfree(p.salloc(5*mib, 7), 7)
	p.is("merges", p.report().Merges, 1)
	set(ConfigStreamLocal, 0) // merges what is above
	p.is("merges", p.report().Merges, 2)
	p.sfree(p.salloc(5*mib, 7), 7)
	p.is("merges", p.report().Merges, 3)

	for range 3 {
		p.alloc(30 * mib)
	}
	x, y := p.alloc(50*mib), p.alloc(50*mib)
	set(ConfigGlobal, 1)
	p.free(x)
	p.free(y)
	if n := heaps[0].count.globals; n > 1 {
		t.Errorf("%d blocks are free for every stream", n)
	}
	peak := p.report().BytesPeak
	set(ConfigPeak, 0)
	if d := p.report(); d.BytesPeak >= peak || d.BytesPeak != d.BytesLive {
		t.Errorf("the peak is %d after %d", d.BytesPeak, peak)
	}
	set(ConfigCacheLimit, 0)
	p.free(p.alloc(5000))
	p.is("cached", p.report().BytesCachedGlobal+p.report().BytesCachedLocal, 0)
}

// TestThreshold: below it a miss takes from a larger block rather than merge.
func TestThreshold(t *testing.T) {
	for _, frayed := range []uint64{0, config.ProportionOne - 1} {
		p := newProg(t, gib, nil)
		Configure(8, everyDevice, ConfigThreshold, frayed)
		a, b := p.salloc(4*mib, 7), p.salloc(4*mib, 7)
		p.sfree(a, 7)
		p.sfree(b, 7)
		p.salloc(6*mib, 7)
		if merged := p.report().Merges != 0; merged != (frayed == 0) {
			t.Errorf("threshold %d: merged %v", frayed, merged)
		}
	}
}

func TestStrategy(t *testing.T) {
	for _, first := range []uint64{0, 1} {
		p := newProg(t, gib, plainSegments)
		Configure(8, everyDevice, ConfigStrategy, first)
		Configure(8, everyDevice, ConfigCoalescing, 1)
		small := p.salloc(128*mib, 7)
		large := p.salloc(130*mib, 7) // in the same bin
		p.sfree(small, 7)
		p.sfree(large, 7)
		if got := p.salloc(128*mib, 7); (got == large) != (first == 1) {
			t.Errorf("strategy %d takes %#x", first, got)
		}
	}
}

// TestGlobalCountsBlocks: the limit of what is kept for every stream is one of blocks, also of
// those that are parts of a segment.
func TestGlobalCountsBlocks(t *testing.T) {
	for _, c := range []struct{ limit, kept uint64 }{{5, 0}, {6, 1}, {config.NoLimit, 1}} {
		p := newProg(t, gib, nil)
		var blocks []uint64
		for range 10 {
			blocks = append(blocks, p.alloc(64*kib))
		}
		large := p.alloc(50 * mib)
		if Configure(8, everyDevice, ConfigGlobal, c.limit) != 1 {
			t.Fatal("the limit is refused")
		}
		for i := range 4 {
			p.free(blocks[2*i]) // no neighbours: four blocks, beside the rest of their segment
		}
		p.free(large)
		p.is("free blocks", heaps[0].count.globals, 5+c.kept)
		p.is("bytes of the large one", p.report().BytesReserved, 2*mib+c.kept*50*mib)
		for i := range 4 {
			p.free(blocks[2*i+1]) // all but one and the rest are neighbours now
		}
		p.is("merged", heaps[0].count.globals, 2+c.kept)
	}
}
