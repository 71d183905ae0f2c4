package plan

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"tieralloc/internal/testlib"
	"tieralloc/numa"
)

func TestSort(t *testing.T) {
	const tiering, figures = "memory_tiering", "access1"
	for _, c := range []struct {
		name   string
		tree   testlib.Sysfs
		change func(*numa.Topology)
		want   groups
	}{
		{name: "one node", tree: testlib.OneNode, want: groups{first: 1}},
		{name: "two sockets", tree: testlib.Sockets, want: groups{first: 3}},
		{name: "two testlib.Sockets, no figures", tree: testlib.Sockets.Without(figures), want: groups{first: 3}},
		{name: "bound to a socket, no figures", tree: testlib.Sockets.Without(figures),
			change: func(t *numa.Topology) { t.Running = 2 }, want: groups{first: 2, second: 1}},
		{name: "cxl by tier", tree: testlib.WithCXL, want: groups{first: 3, second: 4}},
		{name: "cxl by figures", tree: testlib.WithCXL.Without(tiering), want: groups{first: 3, second: 4}},
		{name: "cxl by distance", tree: testlib.WithCXL.Without(tiering).Without(figures), want: groups{first: 3, second: 4}},
		{name: "hbm by tier", tree: testlib.WithHBM, want: groups{first: 2, second: 1, rest: 4}},
		{name: "hbm by figures", tree: testlib.WithHBM.Without(tiering), want: groups{first: 2, second: 1, rest: 4}},
		{name: "hbm by distance", tree: testlib.WithHBM.Without(tiering).Without(figures), want: groups{first: 1, second: 2, rest: 4}},
		{name: "hbm without the figures of one", tree: testlib.WithHBM.Without(tiering).Without("node2/access1"),
			want: groups{first: 1, second: 2, rest: 4}},
		{name: "hbm without the tier of one", tree: testlib.WithHBM.Without("memory_tier28"), want: groups{first: 2, second: 1, rest: 4}},
		{name: "sparse", tree: testlib.Sparse, want: groups{first: 0x101, second: 1 << 63}},
		{name: "no processors is farther", tree: testlib.NoMemory, want: groups{first: 1, second: 4}},
		{name: "distances alike", tree: testlib.NoMemory.With(testlib.SysfsNodes+"node0/distance", "10 10 10\n").
			With(testlib.SysfsNodes+"node1/distance", "10 10 10\n"), want: groups{first: 1, second: 4}},
		{name: "distances not known", tree: testlib.NoMemory.Without("/distance"), want: groups{first: 1, second: 4}},
		{name: "where it may run not known", tree: testlib.Sockets.Without(figures),
			change: func(t *numa.Topology) { t.Running = 0 }, want: groups{first: 3}},
		{name: "no processors at all", tree: testlib.Sockets.Without(figures),
			change: func(t *numa.Topology) { t.Running, t.CPUs = 0, 0 }, want: groups{first: 3}},
		{name: "tier 0 is a tier", tree: testlib.WithHBM, change: func(t *numa.Topology) { t.Node[1].MemoryTier = 0 },
			want: groups{first: 2, second: 1, rest: 4}},
		{name: "tiers are told apart however near", tree: testlib.SysfsOf(testlib.SysfsNode{Node: 0, CPUs: "0", MiB: 1, Tier: 11}, testlib.SysfsNode{Node: 1, MiB: 1, Tier: 12}),
			want: groups{first: 1, second: 2}},
		{name: "four tiers", tree: testlib.SysfsOf(testlib.SysfsNode{Node: 3, CPUs: "0", MiB: 1, Tier: 9}, testlib.SysfsNode{Node: 5, MiB: 1, Tier: 7},
			testlib.SysfsNode{Node: 6, MiB: 1, Tier: 11}, testlib.SysfsNode{Node: 7, MiB: 1, Tier: 200}), want: groups{first: 1 << 5, second: 1 << 3, rest: 3 << 6}},
		{name: "20% of latency are alike", tree: testlib.SysfsOf(testlib.SysfsNode{Node: 0, CPUs: "0", MiB: 1, Read: [2]int{100, 1000}},
			testlib.SysfsNode{Node: 1, MiB: 1, Read: [2]int{120, 1000}}, testlib.SysfsNode{Node: 2, MiB: 1, Read: [2]int{121, 1000}}),
			want: groups{first: 3, second: 4}},
		{name: "20% of bandwidth are alike", tree: testlib.SysfsOf(testlib.SysfsNode{Node: 0, CPUs: "0", MiB: 1, Read: [2]int{100, 1200}},
			testlib.SysfsNode{Node: 1, MiB: 1, Read: [2]int{100, 1000}}, testlib.SysfsNode{Node: 2, MiB: 1, Read: [2]int{100, 999}}),
			want: groups{first: 3, second: 4}},
		{name: "no bandwidth", tree: testlib.SysfsOf(testlib.SysfsNode{Node: 0, CPUs: "0", MiB: 1, Read: [2]int{100, 0}},
			testlib.SysfsNode{Node: 1, MiB: 1, Read: [2]int{400, 0}}), want: groups{first: 1, second: 2}},
		// Three sockets in a row: the one in the middle is no tier of its own.
		{name: "a row of sockets", tree: testlib.SysfsOf(testlib.SysfsNode{Node: 0, CPUs: "0", MiB: 1, Distances: "10 20 30"},
			testlib.SysfsNode{Node: 1, CPUs: "1", MiB: 1, Distances: "20 10 20"}, testlib.SysfsNode{Node: 2, CPUs: "2", MiB: 1, Distances: "30 20 10"}),
			want: groups{first: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := probed(t, c.tree)
			if c.change != nil {
				c.change(top)
			}
			if got := sort(top, top.Usable()); got != c.want {
				t.Errorf("%#x, not %#x", got, c.want)
			}
		})
	}
}

// TestSortAnything: whatever the figures are, the groups are a partition, and a node
// of a later one is never the faster one by all measures.
func TestSortAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	top := new(numa.Topology)
	few := func(most int) uint32 { return uint32(rng.IntN(most)) * uint32(rng.IntN(3)) }
	for range 1_000 {
		top.Online = rng.Uint64() & rng.Uint64() & rng.Uint64()
		top.Memory, top.CPUs, top.Tiered = top.Online&rng.Uint64(), top.Online&rng.Uint64(), top.Online
		top.Running, top.Allowed = top.CPUs&rng.Uint64(), rng.Uint64()
		if rng.IntN(2) == 0 {
			top.Tiered = 0
		}
		for n := range top.Node {
			node := &top.Node[n]
			*node = numa.Node{ReadLatency: 1 + few(200), WriteLatency: few(200), ReadBandwidth: few(100), MemoryTier: few(3)}
			if rng.IntN(100) == 0 {
				node.ReadLatency, node.WriteBandwidth = ^uint32(0), ^uint32(0)
			}
			for m := range node.Distance {
				node.Distance[m] = uint8(few(128))
			}
		}
		usable := top.Usable()
		g := sort(top, usable)
		if g.first|g.second|g.rest != usable || g.first&g.second != 0 || (g.first|g.second)&g.rest != 0 ||
			g.first == 0 && usable != 0 || g.second == 0 && g.rest != 0 {
			t.Fatalf("%#x of %#x", g, usable)
		}
		by := sortKey(top, usable)
		for fast := g.first; fast != 0; fast &= fast - 1 {
			for slow := g.second | g.rest; slow != 0; slow &= slow - 1 {
				f, s := uint(bits.TrailingZeros64(fast)), uint(bits.TrailingZeros64(slow))
				if key(top, s, by) < key(top, f, by) &&
					(by != byFigures || bandwidth(&top.Node[s]) > bandwidth(&top.Node[f])) {
					t.Fatalf("node %d is sorted before %d: %d by %d", f, s, by, key(top, f, by))
				}
			}
		}
	}
}
