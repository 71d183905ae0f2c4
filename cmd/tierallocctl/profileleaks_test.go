package main

import (
	"strings"
	"testing"
)

// TestLeakGrowth: blocks of 1 KiB over a profiled time, of which one in 16 was sampled.
func TestLeakGrowth(t *testing.T) {
	const kib = 1 << 10
	for name, c := range map[string]struct {
		allocated, blocks, recent int64
		want                      growth
	}{
		"steady":                {10000, 10000, 5000, steadyGrowth},
		"a few were freed":      {10000, 9600, 4800, steadyGrowth},
		"many were freed":       {10000, 9400, 4700, noGrowth},
		"at the start":          {10000, 10000, 0, noGrowth},
		"a start that tails":    {10000, 10000, 2400, noGrowth},
		"slower and slower":     {10000, 10000, 2600, steadyGrowth},
		"from a third on":       {10000, 10000, 7500, steadyGrowth},
		"from two fifths on":    {10000, 10000, 8333, steadyGrowth},
		"the last half only":    {10000, 10000, 10000, lateGrowth},
		"three samples":         {63, 63, 31, noGrowth},
		"four samples":          {64, 64, 32, steadyGrowth},
		"all freed":             {10000, 0, 0, noGrowth},
		"damaged":               {-5, -10, 20, noGrowth},
		"allocated less (sums)": {10, 10000, 5000, steadyGrowth},
	} {
		f := leakFigures{c.allocated, c.blocks, c.blocks * kib, c.recent * kib, c.blocks / 16}
		if got := f.growth(); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

const parrotLeaks = `parrot (process 1234), 1m4s: 112 MiB in use
estimates from one sample every 512 KiB
1 stack allocates steadily without freeing: 15 MiB. A cache that fills does so as well: the memory may still be reachable

15 MiB in 1,000 blocks, 8.0 MiB of it from the last half of the time
  remember  remember.c:10
  serve     serve.c:20
  main      main.c:30

1 other stack, 32 MiB, nearly all from the last half of the time: a longer profile tells whether growth goes on
`

func TestProfileLeaks(t *testing.T) {
	status, out, stderr := ctlProfile("--leaks", saveProfile(t, "p.pb", parrot()))
	if status != 0 || out != parrotLeaks || stderr != "" {
		t.Errorf("%d %s\n%s", status, stderr, out)
	}
}

// TestLeakOrder: stacks are ordered by what is recent; samples of a stack with other labels are
// added; deep stacks are cut.
func TestLeakOrder(t *testing.T) {
	p := madeProfile()
	const mib = 1 << 20
	for _, tier := range []string{"NORMAL", "SLOW"} {
		addStack(p, "main twice", 10, 10*mib, 10, 10*mib, 0, 5*mib, 0)
		p.Sample[len(p.Sample)-1].Label = map[string][]string{"tier": {tier}}
	}
	addStack(p, "main once", 30, 30*mib, 30, 30*mib, 0, 9*mib, 0)
	addStack(p, "a b c d e f g h i j", 9, 9*mib, 9, 9*mib, 0, 4*mib, 0)
	path := saveProfile(t, "p.pb", p)
	_, out, _ := ctlProfile("--leaks", path)
	twice := strings.Index(out, "\n20 MiB in 20 blocks, 10 MiB of it")
	once := strings.Index(out, "\n30 MiB in 30 blocks, 9.0 MiB of it")
	if twice < 0 || once < twice || !strings.Contains(out, "  and 2 callers\n") {
		t.Error(out)
	}
	_, out, _ = ctlProfile("--leaks", "--lines", "1", path)
	if strings.Contains(out, "once") || !strings.Contains(out, "\nand 2 stacks (--lines 0") {
		t.Error(out)
	}
	p.Sample = p.Sample[:0]
	addStack(p, "main init", 30, 30*mib, 30, 30*mib, 0, 0, 0)
	_, out, _ = ctlProfile("--leaks", saveProfile(t, "p.pb", p))
	if !strings.HasSuffix(out, "\nno stack allocates steadily without freeing\n") {
		t.Error(out)
	}
}
