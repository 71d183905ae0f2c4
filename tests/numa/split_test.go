package numa

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestSplitBlocks: blocks twice as large as the fast tier's cap have one half on its node and the
// other on the next, through realloc and ta_move.
func TestSplitBlocks(t *testing.T) {
	t.Parallel()
	g := guest{nodes: "1152/2/100/50000 1152/0/200/25000 1152/0/400/6000", files: []string{
		testlib.Lib(t) + "=/guest/libtieralloc.so", program(t, "known"),
	}}
	for _, c := range []struct{ size, cap string }{{"64", "32"}, {"1024", "512"}} {
		for _, env := range []string{"TA_FAST_HARD=", "TA_FAST_SOFT="} {
			if c.size == "1024" && env == "TA_FAST_SOFT=" {
				continue
			}
			g.checks = append(g.checks, check{
				name: env[3:12] + c.size,
				env: "TA_NODE_NORMAL=1 TA_NODE_SLOW=2 TA_DEFAULT_HINT=prefer_fast " + env +
					c.cap + "M", script: "/guest/known split " + c.size,
				judge: both(says("split"), judgeHalves),
			})
		}
	}
	g.run(t)
}

// judgeHalves: by numa_maps one half of the block lies on each of two nodes, in two mappings with
// the policy of their tier; and the report says the same.
func judgeHalves(t *testing.T, r *results) {
	row := r.numbers(t, "new")[0]
	half := row[0] * 4096 // what is touched of it
	if row[0] != row[1] || row[2] != 0 {
		t.Errorf("pages %v", row)
	}
	s := r.stats(t, "report.json")
	for node, policy := range []string{"prefer(many):0", "prefer(many):1"} {
		on := int64(0)
		for _, a := range r.areas(t) {
			if strings.Replace(a.policy, "=balancing", "", 1) == policy &&
				a.end-a.start >= uint64(half) {
				on += a.bytes[node]
				onlyOn(t, []area{a}, node)
			}
		}
		if on < half || on > half+mib {
			t.Errorf("%s on node %d, of blocks of %s", kib(on), node, kib(2*half))
		}
	}
	for node, name := range []string{"fast", "normal"} {
		tier := s.Tiers[name]
		if got := tier.PerNode[node]; got < half || tier.Current < got ||
			tier.Current-(half+row[3]/2*4096) > 4*mib {
			t.Errorf("%s: %s of %s charged are on node %d", name, kib(got), kib(tier.Current), node)
		}
	}
}
