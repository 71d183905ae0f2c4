package tiers_test

import (
	"fmt"
	"testing"
)

// demoteNow moves as fast as it can, and gives back at once what is freed.
var demoteNow = []string{"TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0", "TA_PURGE_DELAY=0"}

// withEnv is a setting and some more.
func withEnv(env []string, more ...string) []string {
	return append(append([]string{}, env...), more...)
}

// TestDemote: 275 MiB over the soft cap go down, their addresses (the driver keeps to
// the old ones) and contents unchanged.
func TestDemote(t *testing.T) {
	p := play(t, withEnv(demoteNow, "TA_FAST_SOFT=20M"), `
		new a 40 hot 6M => fast*40
		new s 6000 hot 10000 => fast*6000
		tick 20 0
		check a => whole*40
		check s => whole*6000
		json
		free a
		check s => whole*6000
		free s
		json
	`)
	full, empty := &p.json[0], &p.json[1]
	f, n := &full.Tiers.Fast, &full.Tiers.Normal
	if f.Current > 20*mib || f.Current < 12*mib || n.Current < 275*mib {
		t.Errorf("fast has %d bytes, normal %d", f.Current, n.Current)
	}
	if m := f.Migrations; m.Moved*4096 < 275*mib || m.Failed != 0 ||
		m.Attempted < m.Moved*4096/(4*mib) || f.SoftExceeded == 0 {
		t.Errorf("migrations %+v, soft_exceeded %d", m, f.SoftExceeded)
	}
	if empty.Tiers.Fast.live() != 0 || empty.Tiers.Normal.live() > mib ||
		empty.Tiers.Slow.Current > 5*mib {
		t.Errorf("when all is freed fast has %d bytes live, normal %d", empty.Tiers.Fast.live(),
			empty.Tiers.Normal.live())
	}
}

// TestDemoteOrder: PREFER_FAST goes first, HOT last and its oldest first, PIN_FAST
// never; back up goes HOT first, as far as there is room to spare.
func TestDemoteOrder(t *testing.T) {
	p := play(t, withEnv(demoteNow, "TA_FAST_SOFT=128M"), `
		light
		new h 4 hot 8M => fast*4
		new k 4 hot 8M => fast*4
		new p 8 prefer_fast 8M => fast*8
		new w 4 warm 8188K => normal*4
		move w fast => fast@same*4
		tick 4 0
		tiers p => normal*4 fast*4
		tiers w => fast*4
		new i 2 pin_fast 16M => fast*2
		tick 4 0
		tiers p => normal*8
		tiers w => fast*4
		tiers h => fast*4
		new j 1 pin_fast 32M => fast*1
		tick 4 0
		tiers w => normal*4
		tiers h => fast*4
		new l 1 pin_fast 16M => fast*1
		tick 4 0
		tiers h => normal*2 fast*2
		tiers k => fast*4
		tiers i => fast*2
		tiers j => fast*1
		check h => whole*4
		check p => whole*8
		check w => whole*4
		json
		free l
		tick 4 0
		tiers h => normal*2 fast*2
		free j
		tick 4 0
		tiers h => fast*4
		tiers w => normal*2 fast*2
		tiers p => normal*8
		free i
		tick 4 0
		tiers w => fast*4
		tiers p => normal*6 fast*2
		check h => whole*4
		check p => whole*8
		json
	`)
	if f := &p.json[0].Tiers.Fast; f.Current != 128*mib || f.SoftExceeded == 0 {
		t.Errorf("fast: %+v", f)
	}
	if f := &p.json[1].Tiers.Fast; f.Current != 112*mib {
		t.Errorf("fast: %+v", f)
	}
}

// TestDemoteFar: from the normal tier to the slow one, and through it; never into a
// tier that is at its hard cap.
func TestDemoteFar(t *testing.T) {
	p := play(t, withEnv(demoteNow, "TA_FAST_SOFT=16M", "TA_NORMAL_SOFT=16M"), `
		new a 10 hot 8M => fast*10
		tick 20 0
		tiers a => slow*6 normal*2 fast*2
		check a => whole*10
		json
	`)
	if r := &p.json[0]; r.Tiers.Fast.Current > 16*mib || r.Tiers.Normal.Current > 16*mib {
		t.Errorf("fast has %d bytes, normal %d", r.Tiers.Fast.Current, r.Tiers.Normal.Current)
	}
	p = play(t, withEnv(demoteNow, "TA_FAST_SOFT=16M", "TA_NORMAL_HARD=33M"), `
		new a 10 hot 8M => fast*10
		tick 20 0
		tiers a => normal*4 fast*6
		check a => whole*10
		new b 3 warm 8M => slow*3
		free a
		tick 5 0
		json
	`)
	r := &p.json[0]
	if n := &r.Tiers.Normal; n.Peak > 33*mib || n.Violations != 3 || r.Tiers.Fast.Current != 0 {
		t.Errorf("normal: %+v", n)
	}
}

// TestDemotedBlocks: a block that lies in two tiers, moved half, can be resized,
// moved and freed, and the accounts agree at every step.
func TestDemotedBlocks(t *testing.T) {
	half := `
		new a 1 hot 30M => fast*1
		new b 1 hot 30M => fast*1
		tick 4 0
		check a => whole*1
		json
	`
	env := withEnv(demoteNow, "TA_FAST_SOFT=42M")
	for name, rest := range map[string]string{
		"free":   "free a\njson\nfree b\njson",
		"grow":   "resize a 60M\ncheck a => whole*1\njson\nfree a\nfree b\njson",
		"shrink": "resize a 6M\ncheck a => whole*1\njson\nresize a 100\nfree a\nfree b\njson",
		"slow":   "move a slow => slow@same*1\njson\nfree b\nfree a\njson",
		"fast":   "move a fast => fast@same*1\njson\nfree a\nfree b\njson",
		"normal": "move a normal => normal@same*1\njson\nfree a\nfree b\njson",
		"fork":   "fork\ncheck a => whole*1\nfree a\njson\nfree b\njson\nend\nfree a\nfree b\njson",
	} {
		t.Run(name, func(t *testing.T) {
			p := play(t, env, half+rest)
			if f := &p.json[0].Tiers.Fast; f.Current > 42*mib || f.Current < 38*mib {
				t.Fatalf("fast has %d bytes: no block is half moved", f.Current)
			}
			last := &p.json[len(p.json)-1]
			if last.Tiers.Fast.Current > 64*kib || last.Tiers.Normal.Current > mib ||
				last.Tiers.Slow.Current > 0 {
				t.Errorf("when all is freed the tiers are charged with %d, %d and %d bytes",
					last.Tiers.Fast.Current, last.Tiers.Normal.Current, last.Tiers.Slow.Current)
			}
		})
	}
}

// TestMigrateBW: never more is moved than the limit allows for the time since the
// start, a burst and one step.
func TestMigrateBW(t *testing.T) {
	const limit, step = 40 * mib, 4 * mib
	script := "light\nnew a 40 hot 6M => fast*40\n"
	for range 25 {
		script += "tick 5 5\njson\n"
	}
	p := play(t, []string{"TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=16M",
		fmt.Sprintf("TA_MIGRATE_BW=%d", limit)}, script)
	for _, r := range p.json {
		moved := r.Tiers.Fast.Migrations.Moved * 4096
		if most := float64(limit)*float64(r.Uptime)/1e9 + limit/100 + step; float64(moved) > most {
			t.Errorf("%d bytes are moved after %d ns, at most %.0f should be", moved, r.Uptime,
				most)
		}
	}
	if last := p.json[len(p.json)-1]; last.Tiers.Fast.Migrations.Moved == 0 {
		t.Error("nothing was moved")
	}
}

// TestBackground: with TA_BACKGROUND=1 spans move, and what is freed goes back to the
// kernel, without any call; in a forked child, which has no such thread, with calls.
func TestBackground(t *testing.T) {
	t.Parallel()
	p := play(t, []string{"TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=16M", "TA_BACKGROUND=1", "TA_MIGRATE_BW=100M", "TA_PURGE_DELAY=30ms"}, `
		light
		new a 30 hot 6M => fast*30
		new b 5 cold 6M => slow*5
		free b
		json
		rest
		json
		fork
		check a => whole*30
		new c 10 hot 6M => fast*10
		tick 20 20
		json
		end
		check a => whole*30
	`)
	moved := func(i int) int64 { return p.json[i].Tiers.Fast.Migrations.Moved }
	if moved(1) <= moved(0) {
		t.Errorf("%d pages were moved before the pause, %d after it", moved(0), moved(1))
	}
	if n := p.json[1].Tiers.Slow.Current; n != 0 {
		t.Errorf("%d bytes are still charged long after they were freed", n)
	}
	if moved(2) == 0 {
		t.Error("nothing was moved in the child")
	}
}

// TestGrowthAmidDemotion: a block that has just got a mapping of its own, to grow in, is
// not moved before it has grown.
func TestGrowthAmidDemotion(t *testing.T) {
	r := preloaded(t, withEnv(demoteNow, "TA_NORMAL_SOFT=1M"), compile(t, "grow.c"), "1500")
	clean(t, r)
	if n := numbers(t, r.Stdout); n[0] > mib || n[1] > mib {
		t.Errorf("when all is freed the tiers are charged with %v", n)
	}
}

// TestDemoteBehindPages: pages that blocks are allocated from do not move. Many of them,
// one for each size, older than all else, do not keep others from moving.
func TestDemoteBehindPages(t *testing.T) {
	script := ""
	for i, n := 0, 16; i < 60; i, n = i+1, n+max(16, n/8) {
		script += fmt.Sprintf("new p%d 1 hot %d => fast*1\n", i, n)
	}
	p := play(t, withEnv(demoteNow, "TA_FAST_SOFT=16M"), script+`
		new a 100 hot 1M => fast*100
		tick 40 0
		check a => whole*100
		json
	`)
	if f := p.json[0].Tiers.Fast; f.Current > 16*mib {
		t.Errorf("fast has %d bytes", f.Current)
	}
}
