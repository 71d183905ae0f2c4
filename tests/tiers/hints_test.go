package tiers_test

import (
	"fmt"
	"testing"
)

// sizes are of each way a block is made: small, from a page of many, of few, a page
// of its own, a mapping of its own.
var sizes = []int{0, 1, 100, 1024, 5000, 40000, 200 * kib, 300 * kib, 3 * mib, 4 * mib, 4*mib + 1,
	9 * mib}

// homes are where the hints go.
var homes = []struct{ hint, tier string }{
	{"hot", "fast"}, {"warm", "normal"}, {"cold", "slow"}, {"pin_fast", "fast"},
	{"prefer_fast", "fast"},
}

// TestHints: a block is in the tier of its hint, whatever its size, and its
// statistics are that tier's.
func TestHints(t *testing.T) {
	for _, h := range homes {
		t.Run(h.hint, func(t *testing.T) {
			script := ""
			for i, n := range sizes {
				script += fmt.Sprintf("new b%d 3 %s %d => %s*3\n", i, h.hint, n, h.tier)
			}
			script += "json\n"
			for i := range sizes {
				script += fmt.Sprintf("free b%d => freed*3\n", i)
			}
			script += "json\n"
			p := play(t, nil, script)
			for i, x := range p.json[0].tiers() {
				name := []string{"fast", "normal", "slow"}[i]
				if mine := int64(3 * len(sizes)); name == h.tier && name != "normal" &&
					x.AllocCalls != mine ||
					name != h.tier && name != "normal" && x.AllocCalls != 0 {
					t.Errorf("%d blocks were allocated in %s", x.AllocCalls, name)
				}
			}
			if h.hint != "warm" && p.json[0].Hints[h.hint] < 50*mib {
				t.Errorf("hints: %v", p.json[0].Hints)
			}
			if last := &p.json[1]; h.tier != "normal" &&
				(last.Tiers.Fast.live() != 0 || last.Tiers.Slow.live() != 0) {
				t.Errorf("all is freed, and fast has %d bytes, slow %d", last.Tiers.Fast.live(),
					last.Tiers.Slow.live())
			}
		})
	}
}

// TestApart: blocks of different hints never share a slice, not even when the
// others have been freed before.
func TestApart(t *testing.T) {
	script := "light\n"
	for i, n := range []int{16, 100, 1000, 8192, 60000, 256 * kib, 3 * mib, 5 * mib} {
		script += fmt.Sprintf(`
			new h%[1]d 20 hot %[2]d => fast*20
			new c%[1]d 20 cold %[2]d => slow*20
			new w%[1]d 20 malloc %[2]d => normal*20
			new p%[1]d 20 pin_fast %[2]d => fast*20
			apart h%[1]d c%[1]d => apart
			apart h%[1]d w%[1]d => apart
			apart c%[1]d w%[1]d => apart
			apart h%[1]d p%[1]d => apart
			free h%[1]d
			new d%[1]d 20 cold %[2]d => slow*20
			new i%[1]d 20 hot %[2]d => fast*20
			apart d%[1]d i%[1]d => apart
			apart d%[1]d w%[1]d => apart
			free c%[1]d
			free w%[1]d
			free p%[1]d
			free d%[1]d
			free i%[1]d
		`, i, n)
	}
	play(t, nil, script)
}

// TestUnmodified: a program that knows nothing has all its memory in the tier of
// TA_DEFAULT_HINT.
func TestUnmodified(t *testing.T) {
	for _, h := range homes {
		script := ""
		for i, n := range sizes[1:] {
			script += fmt.Sprintf("new a%d 2 malloc %d => %[3]s*2\nnew b%[1]d 2 calloc %[2]d => "+
				"%[3]s*2\n"+
				"new c%[1]d 1 memalign:128K %[2]d => %[3]s*1\nnew d%[1]d 2 realloc %[2]d => "+
				"%[3]s*2\n", i, n, h.tier)
		}
		p := play(t, []string{"TA_DEFAULT_HINT=" + h.hint}, script)
		if p.exit.Policy.DefaultHint != h.hint {
			t.Errorf("policy %+v", p.exit.Policy)
		}
		for i, x := range p.exit.tiers() {
			here := []string{"fast", "normal", "slow"}[i] == h.tier
			if here && x.AllocCalls != p.exit.Heap.Allocs || !here && x.AllocCalls+x.Current != 0 {
				t.Errorf("%s: tier %d has %d of %d blocks, %d bytes", h.hint, i, x.AllocCalls,
					p.exit.Heap.Allocs, x.Current)
			}
		}
	}
}

// TestSetHint: the hint is the calling thread's own and holds until the next one;
// ta_alloc goes by its own.
func TestSetHint(t *testing.T) {
	play(t, nil, `
		new a 3 malloc 100 => normal*3
		hint cold => default
		new b 3 malloc 100 => slow*3
		new c 3 calloc 5000 => slow*3
		new d 2 malloc 5M => slow*2
		new e 2 hot 100 => fast*2
		on 0 new f 3 malloc 100 => normal*3
		on 0 hint hot => default
		on 0 new g 3 malloc 100 => fast*3
		new h 3 malloc 100 => slow*3
		on 1 new i 3 malloc 100 => normal*3
		hint nonsense => EINVAL
		new j 1 malloc 100 => slow*1
		hint warm => cold
		new k 300 malloc 100 => normal*300
		on 0 new l 300 malloc 100 => fast*300
		join 0
		on 2 new m 3 malloc 100 => normal*3
		on 2 hint pin_fast => default
		on 2 hint prefer_fast => pin_fast
		on 2 new n 3 memalign:4096 70000 => fast*3
		apart a b => apart
		apart a g => apart
		apart b g => apart
	`)
	play(t, []string{"TA_DEFAULT_HINT=cold"}, `
		hint hot => default
		on 0 hint warm => default
		on 0 new a 3 malloc 100 => normal*3
		new b 3 malloc 100 => fast*3
	`)
	play(t, nil, "new a 2 nohint 5 => EINVAL*2")
}

// TestDefaultHint: the process's default is for the threads without a hint of their own, running
// ones too, and TA_DEFAULT goes back to it, or to TA_DEFAULT_HINT.
func TestDefaultHint(t *testing.T) {
	p := play(t, []string{"TA_DEFAULT_HINT=warm"}, `
		on 0 new a 1 malloc 100 => normal*1
		on 1 hint hot => default
		process cold => warm
		json
		new b 3 malloc 100 => slow*3
		new c 3 default 100 => slow*3
		new d 2 calloc 5M => slow*2
		on 0 new e 2 malloc 5M => slow*2
		on 0 new f 3 malloc 200 => slow*3
		on 1 new g 3 malloc 200 => fast*3
		on 1 new h 3 default 200 => fast*3
		on 2 new i 3 malloc 200 => slow*3
		on 1 hint default => hot
		on 1 new j 3 malloc 200 => slow*3
		hint hot => default
		new k 3 default 100 => fast*3
		process nonsense => EINVAL
		process prefer_fast => cold
		on 0 new l 2 memalign:4096 70000 => fast*2
		process default => prefer_fast
		hint default => hot
		new m 3 malloc 100 => normal*3
		on 0 new n 3 default 100 => normal*3
	`)
	if hint := p.json[0].Policy.DefaultHint; hint != "cold" || p.exit.Policy.DefaultHint != "warm" {
		t.Errorf("the report says %s, and %s at the end", hint, p.exit.Policy.DefaultHint)
	}
	play(t, []string{"TA_RULES=size>=1M:cold"}, `
		process hot => warm
		new a 3 malloc 100 => fast*3
		new b 1 malloc 2M => slow*1
		new c 1 default 2M => fast*1
		on 0 new d 3 malloc 100 => fast*3
	`)
}

// TestReallocKeepsTier: a block stays in the tier of its hint however it is
// resized, and by whomever.
func TestReallocKeepsTier(t *testing.T) {
	for _, h := range homes {
		script := ""
		for _, from := range []int{10, 900, 30000, 300 * kib, 5 * mib} {
			for _, to := range sizes[1:] {
				script += fmt.Sprintf("new b 2 %s %d => %[3]s*2\nresize b %[4]d => %[3]s*2\n",
					h.hint, from, h.tier, to)
				script += fmt.Sprintf("on 0 resize b %d => %[2]s*2\non 0 free b\n", from+17, h.tier)
			}
		}
		play(t, nil, script)
	}
	// The thread's own hint does not matter for a block that is there.
	play(t, nil, `
		new a 3 hot 100 => fast*3
		hint cold => default
		resize a 1000 => fast*3
		resize a 5M => fast*3
		resize a 10 => fast*3
		new b 3 malloc 200 => slow*3
		hint hot => cold
		resize b 400K => slow*3
		resize b 300 => slow*3
	`)
}

// TestFreeElsewhere: blocks freed by another thread are the tier's again, and the
// next ones of the hint are where they belong.
func TestFreeElsewhere(t *testing.T) {
	script := ""
	for i, n := range sizes[1:] {
		script += fmt.Sprintf(`
			new h%[1]d %[3]d hot %[2]d => fast*%[3]d
			new c%[1]d %[3]d cold %[2]d => slow*%[3]d
			on 0 free h%[1]d => freed*%[3]d
			on 1 free c%[1]d => freed*%[3]d
			new h %[3]d hot %[2]d => fast*%[3]d
			on 0 new c %[3]d cold %[2]d => slow*%[3]d
			apart h c => apart
			on 1 free h
			free c
		`, i, n, 2+min(200, 8*mib/n))
	}
	p := play(t, nil, script+"json")
	if r := &p.json[0]; r.Tiers.Fast.live() != 0 || r.Tiers.Slow.live() != 0 {
		t.Errorf("all is freed, and fast has %d bytes, slow %d", r.Tiers.Fast.live(),
			r.Tiers.Slow.live())
	}
}
