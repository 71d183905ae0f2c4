package bench

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// Numbers of tiers as ta_tier_of has them.
const (
	fast   = 0
	normal = 1
	slow   = 2
)

// policy is variables for testdata/pairs.c, and the tier that they send a block of 64
// bytes to.
type policy struct {
	name string
	env  string
	tier float64
}

var policies = []policy{
	{"none", "TA_RULES=", normal},
	{"size-leaves-alone", "TA_RULES=size>=64M:cold", normal},
	{"size-same-hint", "TA_RULES=size<=1K:warm", normal},
	{"size", "TA_RULES=size<=1K:hot", fast},
	{"thread", "TA_RULES=thread=pairs:cold", slow},
	{"thread-other", "TA_RULES=thread=other:cold", normal},
	{"program", "TA_RULES=program=pairs:cold", slow},
	{"program-other", "TA_RULES=program=other:cold", normal},
	{"lib", "TA_RULES=lib=pairs:cold", slow},
	{"lib-other", "TA_RULES=" + libs(1), normal},
	{"lib-other-8", "TA_RULES=" + libs(8), normal},
	{"lib-other-64", "TA_RULES=" + libs(64), normal},
	{"size-other-8", "TA_RULES=" + strings.Repeat("size=50-60:hot;", 8), normal},
	{"size-other-64", "TA_RULES=" + strings.Repeat("size=50-60:hot;", 64), normal},
	{"thread-other-64", "TA_RULES=" + strings.Repeat("thread=other:cold;", 64), normal},
	{"bandwidth-enough", "TA_NORMAL_BW=64T", normal},
	{"bandwidth-waits", "TA_NORMAL_BW=64M", normal},
	{"latency", "TA_NORMAL_LAT=100ns", normal},
	{"another-throttled", "TA_SLOW_BW=64M", normal},
}

// libs is n rules for libraries that there are not.
func libs(n int) string { return strings.Repeat("lib=libother*.so:cold;", n) }

// BenchmarkRules is what a rule of each kind, and a throttled tier, add to a malloc and
// free of 64 bytes: one at a time, and 256 allocated before the first is freed.
func BenchmarkRules(b *testing.B) {
	program := testlib.CC(b, "pairs.c", "-O2")
	env := map[string][]string{}
	var cases []string
	for _, p := range policies {
		tier := with(b, p.name, p.env).number(b, program, "tier", "64")
		if tier != p.tier {
			b.Fatalf("%s: tier %v instead of %v with %s", p.name, tier, p.tier, p.env)
		}
		for _, mode := range []string{"lifo", "fifo"} {
			cases = append(cases, p.name+"/"+mode)
			env[p.name+"/"+mode] = []string{p.env}
		}
	}
	all := []allocator{with(b, "no rule"), with(b, "rule")}
	contest{all, "ns", 7, 2}.run(b, cases, func(b *testing.B, a allocator, name string) float64 {
		if a.name == "rule" {
			a.env = env[name]
		}
		_, mode, _ := strings.Cut(name, "/")
		return a.number(b, program, mode, "64")
	})
}
