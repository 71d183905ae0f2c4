package numa

import (
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// tiering turns the kernel's memory tiering on, at the pace of a test.
const tiering = `
	[ -d /sys/kernel/debug/sched ] || mount -t debugfs debugfs /sys/kernel/debug
	echo 2 >/proc/sys/kernel/numa_balancing && echo 1 >/sys/kernel/mm/numa/demotion_enabled ||
		exit 99
	for line in scan_delay_ms:100 scan_period_min_ms:100 scan_period_max_ms:1000 \
		hot_threshold_ms:5000; do
		echo ${line#*:} >/sys/kernel/debug/sched/numa_balancing/${line%:*} || exit 99
	done
`

// TestKernelTiering: a kernel that moves memory between nodes by its use, beside the library.
func TestKernelTiering(t *testing.T) {
	t.Parallel()
	const byHand = "TA_NODE_FAST=0 TA_NODE_NORMAL=0 TA_NODE_SLOW=2 "
	g := guest{nodes: "160/1/100/50000 384/0/200/25000 384/0/400/6000",
		words: "transparent_hugepage=never",
		// a small node
		files: []string{testlib.Lib(t) + "=/guest/libtieralloc.so", program(t, "plain"),
			program(t, "hotset")}}
	plain := func(name, env, before, policy string, nodes ...int) check {
		return check{name: name, env: byHand + env, script: before + "/guest/plain " + blocks,
			judge: both(on(blockSizes, nodes...), policed(policy))}
	}
	g.checks = []check{
		// The machine begins with numa_balancing at 1, or 0.
		plain("no caps", "", "", "prefer(many)=balancing:0", 0),
		plain("cold without tiering", "TA_DEFAULT_HINT=cold", "", "prefer(many)=balancing:2", 2),
		plain("told not to", "TA_NUMA_BALANCING=0", tiering, "prefer(many):0", 0),
		plain("hard cap", "TA_FAST_HARD=128M TA_NORMAL_HARD=128M", tiering, "prefer(many):0", 0),
		plain("soft cap", "TA_NORMAL_SOFT=128M", tiering, "prefer(many)=balancing:0", 0),
		plain("cold beside a cap", "TA_FAST_HARD=128M TA_DEFAULT_HINT=cold", tiering,
			"prefer(many)=balancing:2", 2),
		plain("past a cap", "TA_NUMA_BALANCING=1 TA_NORMAL_HARD=128M", "",
			"prefer(many)=balancing:0", 0),
		plain("cold", "TA_DEFAULT_HINT=cold",
			tiering+"echo 3600000 >/sys/kernel/debug/sched/numa_balancing/scan_delay_ms\n",
			"prefer(many)=balancing:0,2", 2),
		// What is used in slow memory goes to the fast node, as far as this has room.
		promotes("overflow of the node", byHand, "96 80 90", 90),
		promotes("cold in use", byHand+"TA_DEFAULT_HINT=cold", "48 80 90", 90),
		softly(promotes("overflow of a soft cap", byHand+"TA_NORMAL_SOFT=48M", "48 80 90", 90)),
		stays("cold beside a cap in use", byHand+"TA_DEFAULT_HINT=cold TA_FAST_HARD=16M", "48 10",
			2),
		stays("cold and told not to", byHand+"TA_DEFAULT_HINT=cold TA_NUMA_BALANCING=0", "48 10",
			2),
	}
	g.run(t)
}

// policed judges a run of plain.c by the policy of its blocks' mappings.
func policed(policy string) func(*testing.T, *results) {
	return func(t *testing.T, r *results) {
		t.Helper()
		for _, a := range r.blockAreas(t, 0) {
			if a.policy != policy {
				t.Errorf("%x-%x: policy %s, not %s", a.start, a.end, a.policy, policy)
			}
		}
	}
}

// promotes is a run of hotset.c that ends with some percent of the hot set on node 0, of which the
// kernel has promoted what did not begin there.
func promotes(name, env, args string, percent int64) check {
	return check{name: name, env: env, script: tiering + "/guest/hotset " + args,
		judge: func(t *testing.T, r *results) {
			first, hot := r.numbers(t, "first")[0], r.numbers(t, "hot")[0]
			promoted := r.numbers(t, "promoted")[0][0]
			all := hot[0] + hot[1] + hot[2]
			t.Logf("hot pages %v, at first %v; %d promoted", hot, first, promoted)
			if hot[0]*100 < all*percent || first[0]*100 >= all*percent ||
				promoted*10 < (hot[0]-first[0])*9 {
				t.Errorf("less than %d%% of the hot set are on node 0:\n%s", percent, r.stdout)
			}
		}}
}

// softly is a run of hotset.c whose soft cap counts what the kernel has promoted past it.
func softly(c check) check {
	judge := c.judge
	c.judge = func(t *testing.T, r *results) {
		judge(t, r)
		s := r.stats(t, "hotset.json")
		in, out, there := s.Tiers["normal"].MovedIn, s.Tiers["slow"].MovedOut,
			s.Tiers["slow"].PerNode[0]
		if in != out || in < there*9/10 || in > there*11/10 || there < 8*mib {
			t.Errorf("%s of slow memory are on node 0; the soft cap counts %s, and slow memory "+
				"lacks %s", kib(there), kib(in), kib(out))
		}
	}
	return c
}

// stays is a run of hotset.c of which the kernel moves nothing off a node.
func stays(name, env, args string, node int) check {
	return check{name: name, env: env, script: tiering + "/guest/hotset " + args,
		judge: func(t *testing.T, r *results) {
			for _, pages := range append(r.numbers(t, "hot"), r.numbers(t, "cold")...) {
				if all := pages[0] + pages[1] + pages[2]; pages[node] != all || all == 0 {
					t.Errorf("pages %v", pages)
				}
			}
		}}
}

// TestControlPlane: memory of the control plane, which no tier is charged with, is on the slow node
// and has no huge pages, though the machine makes them of all memory. A small part stays on the
// processors' node: stacks, and the data of the library.
func TestControlPlane(t *testing.T) {
	t.Parallel()
	g := guest{nodes: "384/1 384/0", words: "transparent_hugepage=always",
		files: []string{testlib.Lib(t) + "=/guest/libtieralloc.so", program(t, "plain")}}
	for _, c := range []struct{ name, env string }{
		{"background", "TA_BACKGROUND=1"}, {"log", "TA_LOG=info TA_LOG_FILE=/dev/null"},
		{"simulated", "TA_BACKGROUND=1 TA_USE_LIBNUMA=0"},
	} {
		env, control := c.env, "-control"
		if c.name != "simulated" {
			env += " TA_NODE_NORMAL=0 TA_NODE_SLOW=1"
			control = "-control=apart"
		}
		g.checks = append(g.checks, check{name: c.name, env: env,
			script: "/guest/plain " + control + " 64x10",
			judge: func(t *testing.T, r *results) {
				private := slices.DeleteFunc(r.areas(t), func(a area) bool {
					return slices.ContainsFunc(a.words,
						func(word string) bool { return strings.HasPrefix(word, "file=") })
				})
				bytes := sum(private)
				if bytes[0] > mib || c.name != "simulated" && bytes[1] < mib/4 {
					t.Errorf("%v bytes by node", bytes)
				}
				if huge := r.hugeBytes(t); huge != 0 {
					t.Errorf("%d bytes of huge pages", huge)
				}
			}})
	}
	g.run(t)
}

// TestOneKindOfMemory: where all nodes are equally fast no memory has a policy, and none is asked
// for.
func TestOneKindOfMemory(t *testing.T) {
	t.Parallel()
	g := guest{nodes: "256/1 256/1", files: []string{testlib.Lib(t) + "=/guest/libtieralloc.so",
		program(t, "plain"), program(t, "refuse")}}
	for _, c := range []struct{ name, env string }{
		{"plain", ""}, {"cold", "TA_DEFAULT_HINT=cold"}, {"told to", "TA_NUMA_BALANCING=1"},
		{"caps", "TA_NORMAL_SOFT=16M TA_SLOW_HARD=64M"}, {"control plane", "TA_BACKGROUND=1"},
	} {
		args := blocks
		if c.name == "control plane" {
			args = "-control " + blocks
		}
		g.checks = append(g.checks, check{name: c.name, env: c.env,
			script: "/guest/refuse -kill /guest/plain " + args, judge: policed("default")})
	}
	g.run(t)
}
