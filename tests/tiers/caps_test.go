package tiers_test

import (
	"fmt"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// decided compares the counters of a tier's decisions.
func (x *tier) decided(t *testing.T, name string, softExceeded, rerouted, routedSlow, refused,
	violations int64) {
	t.Helper()
	got := [5]int64{x.SoftExceeded, x.Rerouted, x.RoutedSlow, x.Refused, x.Violations}
	if want := [5]int64{softExceeded, rerouted, routedSlow, refused, violations}; got != want {
		t.Errorf("%s: soft_exceeded, rerouted, routed_slow, refused, violations %v, want %v", name,
			got, want)
	}
}

// TestSoftReroute: up to the soft cap, and that included, the tier takes all; then
// only HOT and PIN_FAST.
func TestSoftReroute(t *testing.T) {
	p := play(t, []string{"TA_FAST_SOFT=20M"}, `
		new a 2 prefer_fast 10M => fast*2
		new b 1 prefer_fast 5M => normal*1
		new c 1 hot 5M => fast*1
		new d 1 pin_fast 5M => fast*1
		new e 1 prefer_fast 5M => normal*1
		json
		free a => freed*2
		new f 2 prefer_fast 5M => fast*2
		new g 1 prefer_fast 5M => normal*1
		json
	`)
	r := &p.json[0]
	r.Tiers.Fast.decided(t, "fast", 2, 2, 0, 0, 0)
	r.Tiers.Normal.decided(t, "normal", 0, 0, 0, 0, 0)
	if r.Tiers.Fast.Current != 30*mib || r.Tiers.Fast.Soft != 20*mib || r.Tiers.Fast.Hard != 0 {
		t.Errorf("fast: %+v", r.Tiers.Fast)
	}
	p.json[1].Tiers.Fast.decided(t, "fast", 2, 3, 0, 0, 0)
	// With every tier over its soft cap, the first from the home on takes the request.
	p = play(t, []string{"TA_FAST_SOFT=10M", "TA_NORMAL_SOFT=1", "TA_SLOW_SOFT=40M"}, `
		new a 1 prefer_fast 10M => fast*1
		new b 4 prefer_fast 10M => slow*4
		json
		new c 2 prefer_fast 10M => fast*2
		new d 1 cold 20M => slow*1
		new e 1 warm 20M => normal*1
		json
	`)
	was, is := &p.json[0], &p.json[1]
	is.Tiers.Fast.decided(t, "fast", 2, 4, 0, 0, 0)
	is.Tiers.Slow.decided(t, "slow", 1, 0, 0, 0, 0)
	is.Tiers.Normal.decided(t, "normal", 1, was.Tiers.Normal.Rerouted, 0, 0, 0)
}

// TestSoftWarn: with warn everything stays, and is counted.
func TestSoftWarn(t *testing.T) {
	p := play(t, []string{"TA_FAST_SOFT=20M", "TA_ON_SOFTCAP=warn", "TA_SLOW_SOFT=1"}, `
		new a 4 prefer_fast 10M => fast*4
		new b 1 hot 5M => fast*1
		new c 2 cold 5M => slow*2
		json
	`)
	p.json[0].Tiers.Fast.decided(t, "fast", 3, 0, 0, 0, 0)
	p.json[0].Tiers.Slow.decided(t, "slow", 2, 0, 0, 0, 0)
}

// TestSoftWarnLogs: with warn, and TA_LOG=warn, the log says which tier is over its
// cap, and does not say it for every request.
func TestSoftWarnLogs(t *testing.T) {
	c := cmd([]string{"TA_FAST_SOFT=10M", "TA_ON_SOFTCAP=warn", "TA_LOG=warn"},
		compile(t, "driver.c"))
	c.Stdin = "new a 100 hot 5M\n"
	r := testlib.Run(t, c)
	if r.Status != 0 || !strings.Contains(r.Stderr, "fast") || strings.Count(r.Stderr, "\n") > 10 {
		t.Errorf("status %d, log: %q", r.Status, clip(r.Stderr))
	}
}

// TestHardRoute: what the hard cap does not let in goes to the next slower tier,
// but for PIN_FAST.
func TestHardRoute(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=20M"}, `
		new a 2 hot 10M => fast*2
		new b 1 hot 5M => normal*1
		new c 2 pin_fast 5M => ENOMEM*2
		new d 1 prefer_fast 5M => normal*1
		new e 1 hot 64K => normal*1
		new f 1 hot 21M => normal*1
		new g 1 pin_fast 10 => ENOMEM*1
		json
		free a => freed*2
		new h 2 pin_fast 10M => fast*2
		new i 1 hot 8 => normal*1
		json
	`)
	r := &p.json[0]
	r.Tiers.Fast.decided(t, "fast", 0, 0, 4, 3, 7)
	if r.Tiers.Fast.Current != 20*mib || r.Tiers.Fast.Peak != 20*mib || r.CallsFailed != 3 {
		t.Errorf("fast: %+v, %d calls failed", r.Tiers.Fast, r.CallsFailed)
	}
	p.json[1].Tiers.Fast.decided(t, "fast", 0, 0, 5, 3, 8)
	// Through two full tiers, and to the end of them.
	p = play(t, []string{"TA_FAST_HARD=10M", "TA_SLOW_HARD=30M", "TA_NORMAL_HARD=20M"}, `
		new a 1 hot 10M => fast*1
		new b 1 warm 15M => normal*1
		new c 2 hot 10M => normal*1 slow*1
		new d 1 prefer_fast 15M => ENOMEM*1
		new e 1 warm 15M => ENOMEM*1
		new f 1 cold 15M => ENOMEM*1
		new g 1 cold 10M => slow*1
		json
	`)
	r = &p.json[0]
	r.Tiers.Fast.decided(t, "fast", 0, 0, 2, 1, 3)
	r.Tiers.Normal.decided(t, "normal", 0, 0, 2, 1, 4)
	r.Tiers.Slow.decided(t, "slow", 0, 0, 0, 1, 3)
}

// TestHardFail: NULL and ENOMEM, from every function, and blocks of the other tiers
// as ever.
func TestHardFail(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=20M", "TA_SLOW_HARD=20M", "TA_ON_HARDCAP=fail"}, `
		new a 2 hot 10M => fast*2
		new b 2 hot 100 => ENOMEM*2
		new c 2 pin_fast 5M => ENOMEM*2
		new d 2 prefer_fast 30M => ENOMEM*2
		new e 1 malloc 100 => normal*1
		hint cold => default
		new f 2 malloc 10M => slow*2
		new g 2 malloc 100 => ENOMEM*2
		new g 2 calloc 100 => ENOMEM*2
		new g 2 realloc 300K => ENOMEM*2
		new g 2 memalign:64K 10 => ENOMEM*2
		new g 2 memalign:16 9M => ENOMEM*2
		resize f 11M => ENOMEM*2
		resize f 4M => slow*2
		check f => whole*2
		new h 1 malloc 1M => slow*1
		hint warm => cold
		json
	`)
	r := &p.json[0]
	if r.CallsFailed != 18 {
		t.Errorf("%d calls failed", r.CallsFailed)
	}
	r.Tiers.Fast.decided(t, "fast", 0, 0, 0, 6, 6)
	r.Tiers.Slow.decided(t, "slow", 0, 0, 0, 12, r.Tiers.Slow.Violations)
	if r.Tiers.Slow.Violations < 12 {
		t.Errorf("%d violations", r.Tiers.Slow.Violations)
	}
	// A rerouted request does not fail because the tier that it would go to is full.
	play(t, []string{"TA_FAST_SOFT=10M", "TA_NORMAL_HARD=9M", "TA_SLOW_HARD=1", "TA_ON_HARDCAP=fail"}, `
		new a 1 prefer_fast 10M => fast*1
		new b 2 prefer_fast 10M => fast*2
		new c 1 warm 10M => ENOMEM*1
	`)
}

// TestHardBySpan fills a tier to the last slice with each kind of page.
func TestHardBySpan(t *testing.T) {
	play(t, []string{"TA_SLOW_HARD=1M", "TA_ON_HARDCAP=fail"}, `
		new a 200 cold 8K => slow*128 ENOMEM*72
		json
		free a
		new b 20 cold 64K => slow*16 ENOMEM*4
		free b
		new c 5 cold 300K => slow*3 ENOMEM*2
		free c
		new d 2 cold 1M => slow*1 ENOMEM*1
		free d
		new e 1 cold 5M => ENOMEM*1
		new f 5 cold 200K => slow*4 ENOMEM*1
		free f
		new g 20000 cold 16 => slow*20000
	`)
}

// TestTinyCaps: a cap below the smallest span lets nothing in, and nothing breaks.
func TestTinyCaps(t *testing.T) {
	for _, c := range []string{"1", "1K", "65535"} {
		play(t, []string{"TA_FAST_HARD=" + c}, `
			new a 3 hot 16 => normal*3
			new b 3 pin_fast 16 => ENOMEM*3
			new c 3 hot 5M => normal*3
			resize a 1M => normal*3
			move a fast => ENOMEM*3
			free a
		`)
		play(t, []string{"TA_FAST_HARD=" + c, "TA_ON_HARDCAP=fail"},
			"new a 3 hot 16 => ENOMEM*3\nnew b 3 hot 5M => ENOMEM*3\nnew c 3 malloc 5M => normal*3")
		play(t, []string{"TA_FAST_SOFT=" + c, "TA_SLOW_SOFT=" + c},
			"new a 3 hot 16 => fast*3\nnew b 3 prefer_fast 16 => normal*3\nnew c 3 cold 5M => "+
				"slow*3")
		p := play(t, []string{"TA_NORMAL_HARD=" + c},
			"new a 3 malloc 16 => slow*3\nnew b 3 malloc 5M => slow*3\nresize b 7M => slow*3")
		if p.exit.Tiers.Normal.Peak != 0 {
			t.Errorf("cap %s: %d bytes in normal", c, p.exit.Tiers.Normal.Peak)
		}
		play(t, []string{"TA_NORMAL_SOFT=" + c},
			"new a 3 malloc 16 => slow*3\nnew b 3 malloc 5M => slow*3")
		// With no room at all a program does not start, but it does end.
		r := testlib.Run(t, cmd([]string{"TA_NORMAL_HARD=" + c, "TA_SLOW_HARD=" + c}, "/bin/true"))
		if r.Status >= 128 {
			t.Errorf("with no room at all /bin/true ends with status %d: %s", r.Status,
				clip(r.Stderr))
		}
	}
	play(t, []string{"TA_FAST_HARD=64K", "TA_ON_HARDCAP=fail"},
		"new a 600 hot 1000 => fast*64 ENOMEM*536")
}

// TestRoomAtOnce: what is freed makes room for blocks of any other size, whoever
// frees it.
func TestRoomAtOnce(t *testing.T) {
	sizes := []struct{ n, fit int }{{16, 40000}, {1000, 900}, {8 << 10, 128 * 15},
		{64 << 10, 16 * 15}, {500 << 10, 31}, {15 * mib, 1}, {5 * mib, 3}}
	env := []string{"TA_SLOW_HARD=16M", "TA_ON_HARDCAP=fail", "TA_PURGE_DELAY=3600s"}
	for _, from := range sizes {
		script := "light\n"
		for _, to := range sizes {
			script += fmt.Sprintf(`
				new a %d cold %d => slow*%[1]d
				new a 20000 cold 1000
				new a 20 cold 500K
				free a
				new b %[3]d cold %[4]d => slow*%[3]d
				free b
			`, from.fit, from.n, to.fit, to.n)
		}
		t.Run(fmt.Sprint(from.n), func(t *testing.T) { play(t, env, script) })
	}
}

// TestRoomFromThreads is TestRoomAtOnce with blocks that another thread made, which
// goes on running, or freed, or both, or that has ended.
func TestRoomFromThreads(t *testing.T) {
	env := []string{"TA_SLOW_HARD=16M", "TA_ON_HARDCAP=fail", "TA_PURGE_DELAY=3600s"}
	for _, c := range []struct{ name, script string }{
		{"freed by another", `
			new a 240 cold 64K => slow*240
			on 0 free a => freed*240
			new b 15 cold 1M => slow*15`},
		{"made by one that ended", `
			on 0 new a 240 cold 64K => slow*240
			join 0
			free a => freed*240
			new b 15 cold 1M => slow*15`},
		{"made and freed by one that ended", `
			on 0 new a 240 cold 64K => slow*240
			on 0 free a
			join 0
			new b 15 cold 1M => slow*15`},
		{"huge, by another", `
			on 0 new a 3 cold 5M => slow*3
			on 1 free a => freed*3
			new b 15 cold 1M => slow*15`},
		{"by one that asks again", `
			on 0 new a 240 cold 64K => slow*240
			free a => freed*240
			on 0 new b 15 cold 1M => slow*15`},
		{"made by one that idles", `
			on 0 new a 240 cold 64K => slow*240
			free a => freed*240
			new b 15 cold 1M => slow*15`},
		{"made and freed by one that idles", `
			on 0 new a 240 cold 64K => slow*240
			on 0 free a => freed*240
			new b 15 cold 1M => slow*15`},
	} {
		t.Run(c.name, func(t *testing.T) { play(t, env, "light\n"+c.script) })
	}
}

// TestGrowthUnderCap: a block may grow to the cap when what is cached is given back,
// and fails beyond it, or goes on in the next tier, its contents kept.
func TestGrowthUnderCap(t *testing.T) {
	for _, env := range []string{"TA_ON_HARDCAP=fail", "TA_ON_HARDCAP=route_slow"} {
		over, last := "ENOMEM*1", "fast*1"
		if env == "TA_ON_HARDCAP=route_slow" {
			over, last = "fast*1", "normal*1" // while the large one still fills the tier
		}
		t.Run(env, func(t *testing.T) {
			play(t, []string{"TA_FAST_HARD=16M", env, "TA_PURGE_DELAY=3600s"}, `
				new a 1 hot 8M => fast*1
				resize a 16M => fast*1
				resize a 17M => `+over+`
				check a => whole*1
			`)
			play(t, []string{"TA_FAST_HARD=16M", env, "TA_PURGE_DELAY=3600s"}, `
				new a 1 hot 8M => fast*1
				new b 1 hot 6M => fast*1
				free b
				resize a 12M => fast*1
				check a => whole*1
			`)
			play(t, []string{"TA_FAST_HARD=16M", env, "TA_PURGE_DELAY=3600s"}, `
				new a 1 hot 300K => fast*1
				resize a 2M => fast*1
				resize a 5M => fast*1
				resize a 10M => fast*1
				resize a 16M => fast*1
				resize a 9M => fast*1
				resize a 17M => `+over+`
				resize a 100 => `+last+`
			`)
		})
	}
}

// TestCapsInChild: a forked child has what its parent had, its own room, and its own
// counts.
func TestCapsInChild(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=20M", "TA_ON_HARDCAP=fail"}, `
		new a 2 hot 5M => fast*2
		new b 1 hot 20M => ENOMEM*1
		fork
		check a => whole*2
		new c 1 hot 10M => fast*1
		new d 1 hot 100 => ENOMEM*1
		free a => freed*2
		new d 1 hot 10M => fast*1
		json
		end
		check a => whole*2
		new c 1 hot 10M => fast*1
		new d 1 hot 100 => ENOMEM*1
		json
	`)
	child, parent := &p.json[0], &p.json[1]
	child.Tiers.Fast.decided(t, "child", 0, 0, 0, 1, 1)
	parent.Tiers.Fast.decided(t, "parent", 0, 0, 0, 2, 2)
	if c := &child.Tiers.Fast; c.Current != 20*mib || c.AllocCalls != 2 || c.FreeCalls != 2 ||
		child.CallsFailed != 1 {
		t.Errorf("child: %+v, %d calls failed", c, child.CallsFailed)
	}
	if c := &parent.Tiers.Fast; c.Current != 20*mib || c.AllocCalls != 3 || c.FreeCalls != 0 {
		t.Errorf("parent: %+v", c)
	}
}
