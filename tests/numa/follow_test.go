package numa

import (
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestFollow: without a hint the hot half of a program's memory finds its way to the fast node,
// under a cap that holds.
func TestFollow(t *testing.T) {
	t.Parallel()
	const follow = "TA_ON_SOFTCAP=follow "
	g := guest{nodes: "256/1/100/50000 384/0/400/6000", words: "transparent_hugepage=never",
		files: []string{testlib.Lib(t) + "=/guest/libtieralloc.so", program(t, "plain"),
			program(t, "hotset")}}
	g.checks = []check{
		followed("blocks under a hard cap", follow+"TA_NORMAL_HARD=56M", "48 1000 90", 56),
		followed("blocks under a soft cap", follow+"TA_NORMAL_SOFT=56M TA_NORMAL_HARD=72M",
			"48 1000 90", 72),
		followed("parts of a block", follow+"TA_NORMAL_HARD=56M", "48 1000 90 one", 56),
		{name: "no cap", env: follow, script: "/guest/plain " + blocks,
			stderr: "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: no tier has both a cap " +
				"(TA_NORMAL_SOFT, TA_NORMAL_HARD and so on) and slower memory\n"},
		{name: "the kernel moves it", env: follow + "TA_NORMAL_HARD=56M TA_NUMA_BALANCING=1",
			script: "/guest/plain " + blocks,
			stderr: "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: with " +
				"TA_NUMA_BALANCING=1 the kernel moves this memory\n"},
		{name: "one kind of memory", env: follow + "TA_NORMAL_HARD=56M TA_USE_LIBNUMA=0",
			script: "/guest/plain " + blocks,
			stderr: "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: the tiers are " +
				"simulated, there is one kind of memory only\n"},
	}
	g.run(t)
}

// followed is a run of hotset.c that ends with 90% of the hot set on node 0, and with no more than
// capMiB of the heap there.
func followed(name, env, args string, capMiB int64) check {
	return check{name: name, env: env, script: "/guest/hotset " + args,
		judge: func(t *testing.T, r *results) {
			first, hot := r.numbers(t, "first")[0], r.numbers(t, "hot")[0]
			cold := r.numbers(t, "cold")[0]
			all := hot[0] + hot[1]
			t.Logf("hot pages %v, at first %v; cold %v", hot, first, cold)
			if hot[0]*100 < all*90 || first[0]*100 >= all*90 {
				t.Errorf("less than 90%% of the hot set are on node 0:\n%s", r.stdout)
			}
			if there := (hot[0] + cold[0]) * 4096; there > capMiB*mib {
				t.Errorf("%s are on node 0", kib(there))
			}
			if strings.Contains(r.stdout, "by age") {
				t.Error(r.stdout)
			}
		}}
}
