package numa

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

func TestSort(t *testing.T) {
	const tiering, figures = "memory_tiering", "access1"
	for _, c := range []struct {
		name   string
		tree   tree
		change func(*Topology)
		want   groups
	}{
		{name: "one node", tree: oneNode, want: groups{first: 1}},
		{name: "two sockets", tree: sockets, want: groups{first: 3}},
		{name: "two sockets, no figures", tree: sockets.without(figures), want: groups{first: 3}},
		{name: "bound to a socket, no figures", tree: sockets.without(figures),
			change: func(t *Topology) { t.Running = 2 }, want: groups{first: 2, second: 1}},
		{name: "cxl by tier", tree: withCXL, want: groups{first: 3, second: 4}},
		{name: "cxl by figures", tree: withCXL.without(tiering), want: groups{first: 3, second: 4}},
		{name: "cxl by distance", tree: withCXL.without(tiering).without(figures), want: groups{first: 3, second: 4}},
		{name: "hbm by tier", tree: withHBM, want: groups{first: 2, second: 1, rest: 4}},
		{name: "hbm by figures", tree: withHBM.without(tiering), want: groups{first: 2, second: 1, rest: 4}},
		{name: "hbm by distance", tree: withHBM.without(tiering).without(figures), want: groups{first: 1, second: 2, rest: 4}},
		{name: "hbm without the figures of one", tree: withHBM.without(tiering).without("node2/access1"),
			want: groups{first: 1, second: 2, rest: 4}},
		{name: "hbm without the tier of one", tree: withHBM.without("memory_tier28"), want: groups{first: 2, second: 1, rest: 4}},
		{name: "sparse", tree: sparse, want: groups{first: 0x101, second: 1 << 63}},
		{name: "no processors is farther", tree: noMemory, want: groups{first: 1, second: 4}},
		{name: "distances alike", tree: noMemory.with(nodesFolder+"node0/distance", "10 10 10\n").
			with(nodesFolder+"node1/distance", "10 10 10\n"), want: groups{first: 1, second: 4}},
		{name: "distances not known", tree: noMemory.without("/distance"), want: groups{first: 1, second: 4}},
		{name: "where it may run not known", tree: sockets.without(figures),
			change: func(t *Topology) { t.Running = 0 }, want: groups{first: 3}},
		{name: "no processors at all", tree: sockets.without(figures),
			change: func(t *Topology) { t.Running, t.CPUs = 0, 0 }, want: groups{first: 3}},
		{name: "tier 0 is a tier", tree: withHBM, change: func(t *Topology) { t.Node[1].MemoryTier = 0 },
			want: groups{first: 2, second: 1, rest: 4}},
		{name: "tiers are told apart however near", tree: treeOf(shape{node: 0, cpus: "0", mib: 1, tier: 11}, shape{node: 1, mib: 1, tier: 12}),
			want: groups{first: 1, second: 2}},
		{name: "four tiers", tree: treeOf(shape{node: 3, cpus: "0", mib: 1, tier: 9}, shape{node: 5, mib: 1, tier: 7},
			shape{node: 6, mib: 1, tier: 11}, shape{node: 7, mib: 1, tier: 200}), want: groups{first: 1 << 5, second: 1 << 3, rest: 3 << 6}},
		{name: "20% of latency are alike", tree: treeOf(shape{node: 0, cpus: "0", mib: 1, read: [2]int{100, 1000}},
			shape{node: 1, mib: 1, read: [2]int{120, 1000}}, shape{node: 2, mib: 1, read: [2]int{121, 1000}}),
			want: groups{first: 3, second: 4}},
		{name: "20% of bandwidth are alike", tree: treeOf(shape{node: 0, cpus: "0", mib: 1, read: [2]int{100, 1200}},
			shape{node: 1, mib: 1, read: [2]int{100, 1000}}, shape{node: 2, mib: 1, read: [2]int{100, 999}}),
			want: groups{first: 3, second: 4}},
		{name: "no bandwidth", tree: treeOf(shape{node: 0, cpus: "0", mib: 1, read: [2]int{100, 0}},
			shape{node: 1, mib: 1, read: [2]int{400, 0}}), want: groups{first: 1, second: 2}},
		// Three sockets in a row: the one in the middle is no tier of its own.
		{name: "a row of sockets", tree: treeOf(shape{node: 0, cpus: "0", mib: 1, distances: "10 20 30"},
			shape{node: 1, cpus: "1", mib: 1, distances: "20 10 20"}, shape{node: 2, cpus: "2", mib: 1, distances: "30 20 10"}),
			want: groups{first: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := probed(t, c.tree)
			if c.change != nil {
				c.change(top)
			}
			if got := top.sort(top.Usable()); got != c.want {
				t.Errorf("%#x, not %#x", got, c.want)
			}
		})
	}
}

// TestSortAnything: whatever the figures are, the groups are a partition, and a node
// of a later one is never the faster one by all measures.
func TestSortAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	top := new(Topology)
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
			*node = Node{ReadLatency: 1 + few(200), WriteLatency: few(200), ReadBandwidth: few(100), MemoryTier: few(3)}
			if rng.IntN(100) == 0 {
				node.ReadLatency, node.WriteBandwidth = ^uint32(0), ^uint32(0)
			}
			for m := range node.Distance {
				node.Distance[m] = uint8(few(128))
			}
		}
		usable := top.Usable()
		g := top.sort(usable)
		if g.first|g.second|g.rest != usable || g.first&g.second != 0 || (g.first|g.second)&g.rest != 0 ||
			g.first == 0 && usable != 0 || g.second == 0 && g.rest != 0 {
			t.Fatalf("%#x of %#x", g, usable)
		}
		by := top.sortKey(usable)
		for fast := g.first; fast != 0; fast &= fast - 1 {
			for slow := g.second | g.rest; slow != 0; slow &= slow - 1 {
				f, s := uint(bits.TrailingZeros64(fast)), uint(bits.TrailingZeros64(slow))
				if top.key(s, by) < top.key(f, by) &&
					(by != byFigures || top.Node[s].bandwidth() > top.Node[f].bandwidth()) {
					t.Fatalf("node %d is sorted before %d: %d by %d", f, s, by, top.key(f, by))
				}
			}
		}
	}
}
