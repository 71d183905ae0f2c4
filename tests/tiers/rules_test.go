package tiers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// ways are the functions of libc that allocate a number of bytes.
var ways = []string{"malloc", "calloc", "realloc", "memalign:64", "memalign:64K"}

// TestRuleSizes asks for the sizes around each bound, by turns, so that a class that
// the bound cuts has free blocks when it is asked for the other side.
func TestRuleSizes(t *testing.T) {
	bounds := []int{1, 16, 17, 100, 128, 129, 1000, 1024, 1025, 4096, 10000, 65536, 262144, 262145,
		1 << 20, 4 << 20, 4<<20 + 1, 5 << 20}
	ops := []struct {
		op   string
		cold func(n, bound int) bool
	}{
		{">=", func(n, b int) bool { return n >= b }},
		{">", func(n, b int) bool { return n > b }},
		{"<=", func(n, b int) bool { return n <= b }},
		{"<", func(n, b int) bool { return n < b }},
		{"=", func(n, b int) bool { return n == b }},
	}
	for i, bound := range bounds {
		o := ops[i%len(ops)]
		t.Run(fmt.Sprintf("size%s%d", o.op, bound), func(t *testing.T) {
			script := ""
			for round := range 3 {
				for _, n := range []int{bound - 1, bound, bound + 1} {
					for _, how := range ways {
						tier := "normal"
						if o.cold(n, bound) {
							tier = "slow"
						}
						script += fmt.Sprintf("new b%d 2 %s %d => %s*2\n", round&1, how, n, tier)
					}
				}
				script += fmt.Sprintf("free b%d\n", (round+1)&1)
			}
			play(t, []string{fmt.Sprintf("TA_RULES=size%s%d:cold", o.op, bound)}, script)
		})
	}
}

// TestRuleEveryOp is TestRuleSizes of one bound, in the middle of a class of the fast
// path, for every operator and with ranges.
func TestRuleEveryOp(t *testing.T) {
	for rule, cold := range map[string][2]int{ // the sizes that are cold, both ends included
		"size>=1000:cold": {1000, 1 << 40}, "size>1000:cold": {1001, 1 << 40},
		"size<=1000:cold": {0, 1000}, "size<1000:cold": {0, 999}, "size=1000:cold": {1000, 1000},
		"size=1000-1010:cold": {1000, 1010}, "size>=1000,size<1010:cold": {1000, 1009},
		"size=1K-2K:cold": {1024, 2048}, "size>1K,size<=1M,size<500K:cold": {1025, 500<<10 - 1},
	} {
		script := ""
		for range 2 {
			for _, n := range []int{0, 1, 990, 999, 1000, 1001, 1009, 1010, 1011, 1023, 1024, 1025,
				2047, 2048, 2049, 500<<10 - 1, 500 << 10, 1 << 20, 6 << 20} {
				tier := "normal"
				if n >= cold[0] && n <= cold[1] {
					tier = "slow"
				}
				script += fmt.Sprintf("new b 3 malloc %d => %s*3\n", n, tier)
			}
			script += "free b\n"
		}
		t.Run(rule, func(t *testing.T) { play(t, []string{"TA_RULES=" + rule}, script) })
	}
}

// TestRuleOrder: the first rule that holds decides, before the thread's hint; the
// hint of ta_alloc before all of them.
func TestRuleOrder(t *testing.T) {
	p := play(t, []string{"TA_RULES= size>=1M : hot ; size>=100K:cold;size=500-600:prefer_fast;program=other:pin_fast;"}, `
		new a 2 malloc 1M => fast*2
		new b 2 malloc 1048575 => slow*2
		new c 2 malloc 100000 => normal*2
		new d 2 malloc 500 => fast*2
		new e 2 malloc 601 => normal*2
		hint cold => default
		new f 2 malloc 601 => slow*2
		new g 2 malloc 500 => fast*2
		new h 2 malloc 2M => fast*2
		hint hot => cold
		new i 2 malloc 200K => slow*2
		new j 2 malloc 1000 => fast*2
		new k 2 cold 2M => slow*2
		new l 2 warm 200K => normal*2
		new m 2 warm 500 => normal*2
		on 0 new n 2 malloc 700 => normal*2
		on 0 new o 2 malloc 200K => slow*2
		hint warm => hot
		new p 2 malloc 700 => normal*2
		new q 3 malloc 200K => slow*3
		free l
		new r 3 malloc 200K => slow*3
	`)
	if p.exit.Policy.Rules != 4 {
		t.Errorf("%d rules", p.exit.Policy.Rules)
	}
	// A block that grows over a bound goes where the rule wants it, and stays there
	// when it shrinks and no rule holds.
	play(t, []string{"TA_RULES=size>=1M:cold"}, `
		new a 2 malloc 100 => normal*2
		resize a 900K => normal*2
		resize a 2M => slow*2
		resize a 8M => slow*2
		resize a 100K => slow*2
		new b 2 hot 100 => fast*2
		resize b 900K => fast*2
		resize b 3M => slow*2
	`)
}

// TestRuleProgram: a rule for this program's file name holds, by any pattern, and one
// for another does not.
func TestRuleProgram(t *testing.T) {
	for rule, tier := range map[string]string{
		"program=driver:cold": "slow", "program=dri*:cold": "slow", "program=*:cold": "slow",
		"program=d?iv*r:cold":  "slow",
		"program=driver?:cold": "normal", "program=river:cold": "normal",
		"program=drive:cold":                    "normal",
		"program=other:hot;program=driver:cold": "slow", "program=other:cold": "normal",
	} {
		p := play(t, []string{"TA_RULES=" + rule},
			fmt.Sprintf("new a 2 malloc 100 => %[1]s*2\nnew b 2 malloc 5M => %[1]s*2", tier))
		for i, x := range p.exit.tiers() { // nothing else of the program is elsewhere
			here := []string{"fast", "normal", "slow"}[i] == tier
			if here != (x.AllocCalls == p.exit.Heap.Allocs) || !here && x.Current != 0 {
				t.Errorf("%s: tier %d has %d of %d blocks", rule, i, x.AllocCalls,
					p.exit.Heap.Allocs)
			}
		}
	}
}

// TestRuleThread: a rule goes by the thread's name, also after it has changed.
func TestRuleThread(t *testing.T) {
	play(t, []string{"TA_RULES=thread=io-*:cold;thread=exactly-fifteen:hot;thread=half,size>=1K:cold"}, `
		new a 3 malloc 100 => normal*3
		name io-1 => 0
		new b 3 malloc 100 => slow*3
		new c 3 malloc 5M => slow*3
		new d 3 calloc 30000 => slow*3
		name worker => 0
		new e 3 malloc 100 => normal*3
		prctl io-2 => 0
		new f 3 malloc 100 => slow*3
		hint hot => default
		new g 3 malloc 100 => slow*3
		prctl exactly-fifteen => 0
		new h 3 malloc 100 => fast*3
		prctl exactly-fourtee => 0
		new i 3 malloc 100 => fast*3
		hint warm => hot
		new j 3 malloc 100 => normal*3
		name half => 0
		new k 3 malloc 1023 => normal*3
		new l 3 malloc 1024 => slow*3
		on 0 new m 3 malloc 1024 => slow*3
		on 0 name io-3 => 0
		on 0 new n 300 malloc 50 => slow*300
		on 0 resize m 500 => slow*3
		new o 300 malloc 50 => normal*300
		on 1 name none => 0
		on 1 new p 300 malloc 50 => normal*300
		join 0
		on 2 name plain => 0
		on 2 new q 300 malloc 50 => normal*300
		free n
		free p
		on 1 new r 300 malloc 50 => normal*300
		apart o b => apart
		name a-name-of-more-than-15 => 34
		new s 3 malloc 1024 => slow*3
	`)
}

// TestRuleThreadInherits: a new thread has its creator's name, and so its rules.
func TestRuleThreadInherits(t *testing.T) {
	play(t, []string{"TA_RULES=thread=io:cold"}, `
		name io => 0
		on 0 new a 300 malloc 40 => slow*300
		name other => 0
		new b 3 malloc 40 => normal*3
		on 0 new c 300 malloc 40 => slow*300
		fork
		new d 3 malloc 40 => normal*3
		name io => 0
		new e 3 malloc 40 => slow*3
		end
		new f 3 malloc 40 => normal*3
	`)
}

// TestRuleThreadRenamed: a name that another thread gives counts a little later: at
// a call into the slow path once a fraction of a second has passed.
func TestRuleThreadRenamed(t *testing.T) {
	play(t, []string{"TA_RULES=thread=io:cold", "TA_PURGE_DELAY=1ms"}, `
		on 0 new a 300 malloc 40 => normal*300
		rename 0 io => 0
		tick 1 200
		on 0 tick 2 10
		on 0 new b 300 malloc 40 => slow*300
		on 0 new c 3 malloc 5M => slow*3
		rename 0 other => 0
		tick 1 200
		on 0 tick 2 10
		on 0 new d 300 malloc 40 => normal*300
	`)
}

// TestRuleLib: a rule goes by the shared object that calls, which may come and go.
func TestRuleLib(t *testing.T) {
	dir := t.TempDir()
	plugin := filepath.Join(dir, "libplugin.so.1")
	if err := os.Rename(testlib.CC(t, "plugin.cc", "-shared", "-fPIC"), plugin); err != nil {
		t.Fatal(err)
	}
	all := func(tier string) (script string) {
		for i, f := range []string{"malloc", "calloc", "realloc", "memalign", "new", "array",
			"aligned"} {
			for _, n := range []int{50, 1200, 100000, 300 * kib, 5 * mib} {
				script += fmt.Sprintf("new p%d 3 plugin_%s %d => %s*3\n", i, f, n, tier)
			}
		}
		return script
	}
	open := "open " + plugin + " => opened\n"
	for _, c := range []struct{ rules, script string }{
		{"lib=libplugin*:cold", open + all("slow") + `
			new a 3 malloc 50 => normal*3
			new b 3 malloc 5M => normal*3
			new c 3 plugin_strdup 50 => normal*3
			hint hot => default
			new d 3 malloc 50 => fast*3
			new e 3 plugin_malloc 50 => slow*3
			resize a 5000 => normal*3
			on 0 new f 3 plugin_new 50 => slow*3
			on 0 new g 3 malloc 50 => normal*3
			free p1
			close => 0
			check p2 => whole*15
			free p3
			resize p4 99 => slow*15
			new h 3 malloc 100 => fast*3
		` + open + `
			new i 3 plugin_new 50 => slow*3
			new j 3 plugin_malloc 500K => slow*3
			close => 0
		`},
		{"lib=libc.so.6:hot", open + all("normal") +
			"new a 2 plugin_strdup 50 => fast*2\nnew b 2 malloc 50 => normal*2"},
		{"lib=driver:cold", open + all("normal") +
			"new a 2 malloc 50 => slow*2\nnew b 2 calloc 5M => slow*2\nnew c 2 hot 50 => fast*2"},
		{"lib=libplugin.so.?,size>=1000:cold;lib=libplugin*:hot", open + `
			new a 2 plugin_malloc 999 => fast*2
			new b 2 plugin_malloc 1000 => slow*2
			new c 2 malloc 1000 => normal*2
			new d 2 plugin_malloc 999 => fast*2
		`},
		{"size<100:hot;lib=libplugin*,thread=io:cold", open + `
			new a 2 plugin_malloc 99 => fast*2
			new b 2 plugin_malloc 100 => normal*2
			name io => 0
			new c 2 plugin_malloc 99 => fast*2
			new d 2 plugin_malloc 100 => slow*2
			new e 2 malloc 100 => normal*2
		`},
		{"lib=libplugin*,size>1G:pin_fast;lib=libplugin*:cold", open + `
			new a 2 plugin_array 3000000000000000 => ENOMEM*2
			new b 2 plugin_array 50 => slow*2
		`},
		{"lib=plugin:cold;lib=libplugin.so:cold;lib=tmp*:cold", open + all("normal")},
	} {
		t.Run(c.rules, func(t *testing.T) {
			play(t, []string{"TA_RULES=" + c.rules}, c.script)
		})
	}
}

// TestRuleLibReplaced: another object that is loaded at the addresses of one that has
// gone is not taken for it, by no thread.
func TestRuleLibReplaced(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(testlib.CC(t, "plugin.cc", "-shared", "-fPIC"))
	if err != nil {
		t.Fatal(err)
	}
	script := ""
	for i := range 3 {
		for _, o := range []struct{ name, tier string }{{"libcold", "slow"}, {"libhot", "fast"},
			{"libnone", "normal"}} {
			path := filepath.Join(dir, o.name)
			if err := os.WriteFile(path, text, 0o755); err != nil {
				t.Fatal(err)
			}
			script += fmt.Sprintf("open %s => opened\nnew a 5 plugin_malloc 70 => %[2]s*5\non 0 "+
				"new b 5 plugin_malloc 70 => %[2]s*5\n"+
				"new c 3 plugin_new 9000 => %[2]s*3\n", path, o.tier)
			script += []string{"close => 0\n", "on 0 close => 0\n", "on 1 close => 0\n"}[i]
		}
	}
	play(t, []string{"TA_RULES=lib=libcold:cold;lib=libhot:hot"}, script)
}

// TestManyRules fills the list.
func TestManyRules(t *testing.T) {
	var rules []string
	for i := range 63 {
		hint := []string{"hot", "cold"}[i&1]
		rules = append(rules, fmt.Sprintf("size=%d:%s", 1000+i, hint))
	}
	rules = append(rules, "program=driver,thread=driver,lib=driver,size>5000:cold")
	script := ""
	for _, i := range []int{0, 1, 30, 61, 62} {
		script += fmt.Sprintf("new a 2 malloc %d => %s*2\n", 1000+i, []string{"fast", "slow"}[i&1])
	}
	script += "new b 2 malloc 1063 => normal*2\nnew c 2 malloc 5001 => slow*2\nnew d 2 malloc " +
		"5000 => normal*2"
	p := play(t, []string{"TA_RULES=" + strings.Join(rules, ";")}, script)
	if p.exit.Policy.Rules != 64 {
		t.Errorf("%d rules", p.exit.Policy.Rules)
	}
}
