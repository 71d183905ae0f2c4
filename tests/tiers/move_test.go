package tiers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestMove: a block of more than 256 KiB keeps its address, a smaller one gets a new
// one, and the contents are the same.
func TestMove(t *testing.T) {
	script := ""
	for i, n := range []int{1, 100, 1000, 8192, 60000, 256 * kib, 256*kib + 1, 300 * kib, 1 * mib,
		4 * mib, 4*mib + 1, 17 * mib} {
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
			script += fmt.Sprintf("on 0 move b%d fast => fast@%s*3\non 0 resize b%[1]d "+
				"%[3]d\nfree b%[1]d => freed*3\n", i, how, n/2+9)
		}
	}
	p := play(t, nil, script+"new z 2 malloc 40 => normal*2\njson")
	if r := &p.json[0]; r.Tiers.Fast.live() != 0 || r.Tiers.Slow.live() != 0 ||
		r.Calls["malloc"] != 2 {
		t.Errorf("fast has %d bytes live, slow %d, %v", r.Tiers.Fast.live(), r.Tiers.Slow.live(),
			r.Calls)
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
		if r.Calls["malloc"] != 0 || r.Calls["free"] != int64(i/2*5) || r.Calls["ta_alloc"] != 69 ||
			r.Calls["ta_move"] != int64(5+min(i, 1)*5) {
			t.Errorf("report %d: malloc %d, free %d, ta_alloc %d, ta_move %d", i, r.Calls["malloc"],
				r.Calls["free"], r.Calls["ta_alloc"], r.Calls["ta_move"])
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
	env := []string{"TA_FAST_SOFT=24M", "TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0",
		"TA_PURGE_DELAY=0"}
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
		{"256", []string{"TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=10M", "TA_NORMAL_SOFT=12M",
			"TA_MIGRATE_BW=0"}},
		{"256", []string{"TA_FAST_HARD=24M", "TA_NORMAL_HARD=40M", "TA_ON_SOFTCAP=demote",
			"TA_FAST_SOFT=16M", "TA_MIGRATE_BW=0",
			"TA_PURGE_DELAY=0", "TA_BACKGROUND=1"}},
		{"4096", []string{"TA_HUGEPAGES=thp", "TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=10M",
			"TA_NORMAL_SOFT=12M"}},
	} {
		r := preloaded(t, c.env, prog, "700", fmt.Sprint(seed+1), c.kept)
		clean(t, r)
		quiet := checked(t, []byte(r.Stdout))
		if quiet.Tiers.Fast.live()+quiet.Tiers.Slow.live() != 0 || quiet.Heap.Live > mib/8 ||
			quiet.Calls["ta_move"] < 500 {
			t.Errorf("%q: at the end fast has %d bytes, slow %d, the heap %d", c.env,
				quiet.Tiers.Fast.live(), quiet.Tiers.Slow.live(), quiet.Heap.Live)
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

// TestEntered: what has entered a tier and left it counts a move in both, and never falls, while
// what is said of the blocks there now does.
func TestEntered(t *testing.T) {
	for _, n := range []int64{300 * kib, 6 * mib} {
		p := play(t, nil, fmt.Sprintf(`
			new a 4 hot %d => fast*4
			json
			move a slow => slow@same*4
			json
			move a normal => normal@same*4
			free a
			json
		`, n))
		var before, after, end [3]tier
		for i, to := range []*[3]tier{&before, &after, &end} {
			for k, x := range p.json[i].tiers() {
				to[k] = *x
			}
		}
		if f := &before[0]; f.BlocksIn != 4 || f.BlocksOut != 0 || f.BytesIn < 4*n ||
			after[0].AllocCalls != 0 {
			t.Errorf("%+v, then %+v", f, after[0])
		}
		if f, s := &after[0], &after[2]; f.BlocksIn != 4 || f.BlocksOut != 4 ||
			f.BytesOut != f.BytesIn || s.BlocksIn != 4 || s.BlocksOut != 0 {
			t.Errorf("fast %+v, slow %+v", f, s)
		}
		if s := &end[2]; s.BlocksIn != 4 || s.BlocksOut != 4 || s.BytesOut != before[0].BytesIn {
			t.Errorf("slow %+v", s)
		}
	}
}

// TestEnteredAgain: freed blocks of spans that were moved, which wait on their thread's lists for
// reuse, enter the tier once more; what has left it does not fall.
func TestEnteredAgain(t *testing.T) {
	for _, n := range []string{"100", "1000", "3000"} {
		play(t, withEnv(demoteNow, "TA_FAST_SOFT=256K"), strings.ReplaceAll(`
			hint hot
			new a 1000 malloc SIZE
			new b 1000 malloc SIZE
			tick 9 0
			json
			free a
			json
			new c 30 malloc SIZE
			json
			new d 300 malloc SIZE
			json
			free b
			free c
			json
			new e 100 malloc SIZE
			json
		`, "SIZE", n))
	}
}

// TestMoveCharges: what moves at its address, and what moves by itself, is charged to the throttles
// of both tiers; so is what is copied.
func TestMoveCharges(t *testing.T) {
	const (
		slow = 64 * kib // bytes per second: the time that the test takes counts for nothing beside
		ns   = float64(mib) / slow * 1e9
	)
	limits := []string{"TA_FAST_BW=64K", "TA_FAST_BURST=1", "TA_NORMAL_BW=64K", "TA_NORMAL_BURST=1"}
	near := func(what string, got int64, mibs float64) {
		t.Helper()
		if want := mibs * ns; float64(got) < 0.8*want || float64(got) > 1.2*want {
			t.Errorf("%s: %d ns, not %.0f", what, got, want)
		}
	}
	p := play(t, limits, "light\nnew a 4 hot 8M => fast*4\nmove a normal => normal@same*4\njson")
	near("moved out", p.json[0].Tiers.Fast.WaitNs, 32+32)
	near("moved in", p.json[0].Tiers.Normal.WaitNs, 32)
	p = play(t, slices.Concat(limits, demoteNow, []string{"TA_FAST_SOFT=8M"}),
		"light\nnew a 4 hot 8M\ntick 20 0\ntiers a => normal*3 fast*1\njson")
	near("demoted out", p.json[0].Tiers.Fast.WaitNs, 32+24)
	near("demoted in", p.json[0].Tiers.Normal.WaitNs, 24)
	p = play(t, limits, "new a 40 hot 200K => fast*40\nmove a slow => slow@new*40\njson")
	near("copied out", p.json[0].Tiers.Fast.WaitNs, 40*200*2/1024.)
}

// TestNamedCosts: the costs by name, named in the report; a tier's own variables go before.
func TestNamedCosts(t *testing.T) {
	p := play(t, []string{"TA_MODEL=cxl", "TA_NORMAL_BW=1G"},
		"new a 10 hot 100 => fast*10\nnew b 10 cold 100 => slow*10")
	want := [3][2]int64{{50 << 30, 2000}, {1 << 30, 8000}, {5 << 30, 40000}}
	for i, x := range p.exit.tiers() {
		if x.ThrottleBW != want[i][0] || x.LatNs != want[i][1] {
			t.Errorf("tier %d: %d bytes/s, %d ns", i, x.ThrottleBW, x.LatNs)
		}
	}
	if p.exit.Policy.Model != "cxl" || p.exit.Tiers.Fast.WaitNs < 20000 ||
		p.exit.Tiers.Slow.WaitNs < 400000 {
		t.Errorf("model %s, %d and %d ns", p.exit.Policy.Model, p.exit.Tiers.Fast.WaitNs,
			p.exit.Tiers.Slow.WaitNs)
	}
}
