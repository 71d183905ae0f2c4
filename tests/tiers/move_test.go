package tiers_test

import (
	"fmt"
	"testing"
)

// TestMove: a block of more than 256 KiB keeps its address, a smaller one gets a new
// one, and the contents are the same.
func TestMove(t *testing.T) {
	script := ""
	for i, n := range []int{1, 100, 1000, 8192, 60000, 256 * kib, 256*kib + 1, 300 * kib, 1 * mib, 4 * mib, 4*mib + 1, 17 * mib} {
		how := "new"
		if n > 256*kib {
			how = "same"
		}
		for _, h := range homes {
			if h.hint == "pin_fast" {
				continue
			}
			script += fmt.Sprintf("new b%d 3 %s %d => %s*3\n", i, h.hint, n, h.tier)
			at := h.tier
			for _, to := range []string{"slow", "fast", "fast", "normal", "slow", "normal"} {
				move := how
				if to == at {
					move = "same"
				}
				at = to
				script += fmt.Sprintf("move b%d %s => %[2]s@%s*3\n", i, to, move)
			}
			script += fmt.Sprintf("on 0 move b%d fast => fast@%s*3\non 0 resize b%[1]d %[3]d\nfree b%[1]d => freed*3\n", i, how, n/2+9)
		}
	}
	p := play(t, nil, script+"new z 2 malloc 40 => normal*2\njson")
	if r := &p.json[0]; r.Tiers.Fast.live() != 0 || r.Tiers.Slow.live() != 0 || r.Calls["malloc"] != 2 {
		t.Errorf("fast has %d bytes live, slow %d, %v", r.Tiers.Fast.live(), r.Tiers.Slow.live(), r.Calls)
	}
	m := &p.json[0].Tiers.Slow.Migrations
	if m.Attempted == 0 || m.Moved == 0 || m.Failed != 0 {
		t.Errorf("migrations out of slow: %+v", m)
	}
}

// TestMoveRefused: errno says why, and the block is as it was.
func TestMoveRefused(t *testing.T) {
	play(t, nil, "strangers => refused")
	for _, n := range []string{"100", "300K", "6M"} {
		play(t, []string{"TA_FAST_HARD=10M"}, `
			new p 1 pin_fast `+n+` => fast*1
			move p slow => EPERM*1
			move p normal => EPERM*1
			move p fast => fast@same*1
			move p nowhere => EINVAL*1
			free p
			new a 1 hot 10M => fast*1
			new b 2 cold `+n+` => slow*2
			new c 2 warm `+n+` => normal*2
			move b fast => ENOMEM*2
			move c fast => ENOMEM*2
			tiers b => slow*2
			move c slow
			tiers c => slow*2
			check b => whole*2
		`)
	}
}

// TestMoveNeedsRoom: what is cached in the tier is given back for it.
func TestMoveNeedsRoom(t *testing.T) {
	play(t, []string{"TA_FAST_HARD=16M", "TA_PURGE_DELAY=3600s"}, `
		new a 1 hot 14M => fast*1
		free a
		new b 1 cold 15M => slow*1
		move b fast => fast@same*1
		free b
		new c 40 cold 300K => slow*40
		move c fast => fast@same*40
		free c
		new d 100 cold 100K => slow*100
		move d fast => fast@new*100
	`)
}

// TestMoveOverSoft: a soft cap refuses no move, for there is room below the hard one.
func TestMoveOverSoft(t *testing.T) {
	for _, n := range []string{"100", "300K", "6M"} {
		play(t, []string{"TA_NORMAL_SOFT=1", "TA_FAST_SOFT=1"}, `
			new a 2 hot `+n+` => fast*2
			move a normal
			tiers a => normal*2
			move a slow
			tiers a => slow*2
			move a normal
			tiers a => normal*2
			move a fast
			tiers a => fast*2
		`)
	}
}

// TestMoveCounts: a move is no call of malloc or free, also when it is refused.
func TestMoveCounts(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=64K"}, `
		new a 64 hot 1000 => fast*64
		new b 5 warm 100 => normal*5
		move b slow => slow@new*5
		json
		move b fast => ENOMEM*5
		json
		free b => freed*5
		json
	`)
	for i, r := range p.json {
		if r.Calls["malloc"] != 0 || r.Calls["free"] != int64(i/2*5) || r.Calls["ta_alloc"] != 69 || r.Calls["ta_move"] != int64(5+min(i, 1)*5) {
			t.Errorf("report %d: malloc %d, free %d, ta_alloc %d, ta_move %d", i, r.Calls["malloc"], r.Calls["free"], r.Calls["ta_alloc"], r.Calls["ta_move"])
		}
	}
}

// TestMovedPagesAreNotReused: memory that was moved to another tier does not serve
// the hint that it was for, once it is free.
func TestMovedPagesAreNotReused(t *testing.T) {
	for _, n := range []string{"260K", "300K", "2M", "4M", "6M"} {
		t.Run(n, func(t *testing.T) {
			play(t, nil, `
				new a 4 hot `+n+` => fast*4
				move a slow => slow@same*4
				free a => freed*4
				new b 4 hot `+n+` => fast*4
				new c 4 cold `+n+` => slow*4
			`)
		})
	}
}

// TestMovedIsAtHome: where ta_move brings a block is where it is meant to be from then
// on, also if it was there already because it had been demoted.
func TestMovedIsAtHome(t *testing.T) {
	env := []string{"TA_FAST_SOFT=24M", "TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0", "TA_PURGE_DELAY=0"}
	play(t, env, `
		new p 2 prefer_fast 8M => fast*2
		new i 3 pin_fast 8M => fast*3
		tick 5 0
		tiers p => normal*2
		move p normal => normal@same*2
		free i
		tick 5 0
		tiers p => normal*2
	`)
	play(t, env, `
		new p 2 prefer_fast 8M => fast*2
		move p slow => slow@same*2
		new w 2 warm 4M => normal*2
		move w fast => fast@same*2
		tick 5 0
		tiers p => slow*2
		tiers w => fast*2
	`)
}

// TestMoveStorm: threads move, resize, replace and hand over blocks with checked
// contents while spans are demoted and promoted around them.
func TestMoveStorm(t *testing.T) {
	prog := compile(t, "movestorm.c")
	for seed, c := range []struct {
		kept string // KiB
		env  []string
	}{
		{"256", nil},
		{"256", []string{"TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=10M", "TA_NORMAL_SOFT=12M", "TA_MIGRATE_BW=0"}},
		{"256", []string{"TA_FAST_HARD=24M", "TA_NORMAL_HARD=40M", "TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=16M", "TA_MIGRATE_BW=0",
			"TA_PURGE_DELAY=0", "TA_BACKGROUND=1"}},
		{"4096", []string{"TA_HUGEPAGES=thp", "TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=10M", "TA_NORMAL_SOFT=12M"}},
	} {
		r := preloaded(t, c.env, prog, "700", fmt.Sprint(seed+1), c.kept)
		clean(t, r)
		quiet := checked(t, []byte(r.Stdout))
		if quiet.Tiers.Fast.live()+quiet.Tiers.Slow.live() != 0 || quiet.Heap.Live > mib/8 || quiet.Calls["ta_move"] < 500 {
			t.Errorf("%q: at the end fast has %d bytes, slow %d, the heap %d", c.env, quiet.Tiers.Fast.live(), quiet.Tiers.Slow.live(), quiet.Heap.Live)
		}
	}
}

// TestMovedIsNotHandedOut: a block that shares its span with none, was moved and is freed,
// is not handed out again for the hint that it once was for.
func TestMovedIsNotHandedOut(t *testing.T) {
	play(t, nil, `
		new a 1 warm 300000 => normal*1
		move a slow => slow@same*1
		free a
		new b 3 warm 300000 => normal*3
		new c 1 cold 300000 => slow*1
	`)
}
