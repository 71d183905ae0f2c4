package tiers_test

import (
	"testing"
)

// TestSplit: a block larger than what is left of its tier is laid over two, the first part in the
// faster one, whichever function allocates it and however it is resized and moved; and nothing of
// it stays charged.
func TestSplit(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=32M"}, `
		new a 1 hot 64M => fast*1
		parts a => 32+32+0*1
		json
		resize a 65M => fast*1
		parts a => 32+33+0*1
		resize a 200M => fast*1
		parts a => 32+168+0*1
		resize a 40M => fast*1
		parts a => 32+8+0*1
		move a slow => slow@same*1
		parts a => 0+0+40*1
		move a fast => ENOMEM*1
		json
		free a => freed*1
		hint prefer_fast => default
		new b 1 calloc 64M => fast*1
		parts b => 32+32+0*1
		new c 1 hot 64K => normal*1
		free b
		new b 1 memalign:8M 64M => fast*1
		parts b => 32+32+0*1
		free b
		new b 1 malloc 24M => fast*1
		resize b 64M => fast*1
		parts b => 32+32+0*1
		resize b 20M => fast*1
		parts b => 20+0+0*1
		resize b 30M => fast*1
		parts b => 30+0+0*1
		new d 1 malloc 10M => fast*1
		parts d => 2+8+0*1
		move b normal => normal@same*1
		free d
		trim
		json
		free b
		free c
		trim
		json
	`)
	was := &p.json[0]
	was.Tiers.Fast.decided(t, "fast", 0, 0, 1, 0, 1)
	if was.Tiers.Fast.Current != 32*mib || was.Tiers.Normal.Current != 32*mib ||
		was.Tiers.Fast.AllocCalls != 1 || was.Tiers.Normal.AllocCalls != 0 {
		t.Errorf("fast %+v\nnormal %+v", was.Tiers.Fast, was.Tiers.Normal)
	}
	// MiB; small blocks have less than one
	for i, want := range [][3]int64{{32, 32, 0}, {0, 0, 40}, {0, 30, 0}, {}} {
		for k, x := range p.json[i].tiers() {
			if x.Current/mib != want[k] {
				t.Errorf("report %d: %s has %d bytes, want %d MiB", i, tierNames[k], x.Current,
					want[k])
			}
		}
	}
}

// TestSplitLarge: so it is with a block of 1 GiB, of which only the ends are touched, and soft
// caps.
func TestSplitLarge(t *testing.T) {
	p := play(t, []string{"TA_FAST_SOFT=256M", "TA_NORMAL_SOFT=512M"}, `
		light
		new a 1 prefer_fast 1024M => fast*1
		parts a => 256+0+768*1
		free a
		new w 1 warm 1024M => normal*1
		parts w => 0+512+512*1
		resize w 1500M => normal*1
		parts w => 0+512+988*1
		new b 1 prefer_fast 512M => fast*1
		parts b => 256+0+256*1
		json
	`)
	p.json[0].Tiers.Fast.decided(t, "fast", 0, 2, 0, 0, 0)
	p.json[0].Tiers.Normal.decided(t, "normal", 0, 3, 0, 0, 0)
}

// TestSplitElsewhere: another thread frees a split block, and a forked child has it as its parent
// does, and its own charge.
func TestSplitElsewhere(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=32M"}, `
		new a 1 hot 64M => fast*1
		fork
		parts a => 32+32+0*1
		check a => whole*1
		resize a 100M => fast*1
		parts a => 32+68+0*1
		json
		free a
		new b 1 hot 10M => fast*1
		json
		end
		check a => whole*1
		parts a => 32+32+0*1
		on 0 free a => freed*1
		new b 1 hot 10M => fast*1
		json
	`)
	for i, want := range [][2]int64{{32, 68}, {10, 0}, {10, 0}} {
		if r := &p.json[i]; r.Tiers.Fast.Current/mib != want[0] ||
			r.Tiers.Normal.Current/mib != want[1] {
			t.Errorf("report %d: %d bytes in fast, %d in normal", i, r.Tiers.Fast.Current,
				r.Tiers.Normal.Current)
		}
	}
}

// TestNotSplit: PIN_FAST is whole or not at all, and with fail so is every block.
func TestNotSplit(t *testing.T) {
	play(t, []string{"TA_FAST_HARD=32M"}, `
		new a 1 pin_fast 64M => ENOMEM*1
		new b 1 hot 31M => fast*1
		new c 1 hot 64M => normal*1
		parts c => 0+64+0*1
	`)
	play(t, []string{"TA_FAST_HARD=32M", "TA_ON_HARDCAP=fail"}, `
		new a 1 hot 64M => ENOMEM*1
		new b 1 hot 20M => fast*1
		resize b 64M => ENOMEM*1
		check b => whole*1
	`)
}
