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
	type node = testlib.SysfsNode
	for _, c := range []struct {
		name   string
		tree   testlib.Sysfs
		change func(*numa.Topology)
		by     Order
		want   kinds
	}{
		{name: "one node", tree: testlib.OneNode, by: ByDistance, want: kinds{same: 1}},
		{name: "two sockets", tree: testlib.Sockets, by: ByFigures, want: kinds{same: 3}},
		{name: "two sockets, no figures", tree: testlib.Sockets.Without(figures), by: ByDistance,
			want: kinds{same: 3}},
		{name: "bound to a socket, no figures", tree: testlib.Sockets.Without(figures),
			change: func(t *numa.Topology) { t.Running = 2 }, by: ByDistance, want: kinds{same: 3}},
		{name: "bound to the socket with less bandwidth",
			tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1, Read: [2]int{100, 400}},
				node{Node: 1, CPUs: "1", MiB: 1, Read: [2]int{100, 100}}),
			change: func(t *numa.Topology) { t.Running = 2 }, by: ByFigures, want: kinds{same: 3}},
		{name: "cxl by tier", tree: testlib.WithCXL, by: ByTier, want: kinds{same: 3, slower: 4}},
		{name: "bound to a socket beside cxl", tree: testlib.WithCXL,
			change: func(t *numa.Topology) { t.Running = 1 },
			by:     ByTier, want: kinds{same: 3, slower: 4}},
		{name: "cxl by figures", tree: testlib.WithCXL.Without(tiering), by: ByFigures,
			want: kinds{same: 3, slower: 4}},
		{name: "cxl by distance", tree: testlib.WithCXL.Without(tiering).Without(figures),
			by: ByDistance, want: kinds{same: 3, slower: 4}},
		{name: "hbm by tier", tree: testlib.WithHBM, by: ByTier,
			want: kinds{faster: 2, same: 1, slower: 4}},
		{name: "hbm by figures", tree: testlib.WithHBM.Without(tiering), by: ByFigures,
			want: kinds{faster: 2, same: 1, slower: 4}},
		{name: "hbm by distance", tree: testlib.WithHBM.Without(tiering).Without(figures),
			by: ByDistance, want: kinds{same: 1, slower: 6}},
		{name: "hbm without the figures of one",
			tree: testlib.WithHBM.Without(tiering).Without("node2/access1"),
			by:   ByDistance, want: kinds{same: 1, slower: 6}},
		{name: "hbm without the tier of one", tree: testlib.WithHBM.Without("memory_tier28"),
			by:   ByFigures,
			want: kinds{faster: 2, same: 1, slower: 4}},
		{name: "sparse", tree: testlib.Sparse, by: ByDistance,
			want: kinds{same: 0x101, slower: 1 << 63}},
		{name: "no processors is slower", tree: testlib.NoMemory, by: ByDistance,
			want: kinds{same: 1, slower: 4}},
		{name: "distances alike", tree: testlib.NoMemory.With(testlib.SysfsNodes+"node0/distance",
			"10 10 10\n").
			With(testlib.SysfsNodes+"node1/distance", "10 10 10\n"), by: ByDistance,
			want: kinds{same: 1, slower: 4}},
		{name: "distances not known", tree: testlib.NoMemory.Without("/distance"), by: ByDistance,
			want: kinds{same: 1, slower: 4}},
		{name: "where it may run not known",
			tree:   testlib.WithCXL.Without(tiering).Without(figures),
			change: func(t *numa.Topology) { t.Running = 0 }, by: ByDistance,
			want: kinds{same: 3, slower: 4}},
		{name: "no processors at all", tree: testlib.Sockets.Without(figures),
			change: func(t *numa.Topology) { t.Running, t.CPUs = 0, 0 }, by: ByDistance,
			want: kinds{same: 3}},
		// The kernel takes the nearest memory for processors that have none.
		{name: "processors without memory", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0",
			Distances: "10 20 40"},
			node{Node: 1, MiB: 1, Distances: "20 10 40"},
			node{Node: 2, MiB: 1, Distances: "40 40 10"}),
			by: ByDistance, want: kinds{same: 2, slower: 4}},
		{name: "processors without memory, two alike as near",
			tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", Distances: "10 30 30"},
				node{Node: 1, MiB: 1, Distances: "30 10 30", Tier: 20},
				node{Node: 2, MiB: 1, Distances: "30 30 10", Tier: 30}),
			by: ByTier, want: kinds{same: 2, slower: 4}},
		{name: "tier 0 is a tier", tree: testlib.WithHBM,
			change: func(t *numa.Topology) { t.Node[1].MemoryTier = 0 },
			by:     ByTier, want: kinds{faster: 2, same: 1, slower: 4}},
		{name: "tiers are told apart however near",
			tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1, Tier: 11},
				node{Node: 1, MiB: 1, Tier: 12}),
			by: ByTier, want: kinds{same: 1, slower: 2}},
		{name: "tiers part sockets", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1,
			Tier: 11}, node{Node: 1, CPUs: "1", MiB: 1, Tier: 12}),
			change: func(t *numa.Topology) { t.Running = 2 }, by: ByTier,
			want: kinds{faster: 1, same: 2}},
		{name: "many tiers", tree: testlib.SysfsOf(node{Node: 3, CPUs: "0", MiB: 1, Tier: 9},
			node{Node: 4, MiB: 1, Tier: 5}, node{Node: 5, MiB: 1, Tier: 7},
			node{Node: 6, MiB: 1, Tier: 11}, node{Node: 7, MiB: 1, Tier: 200}), by: ByTier,
			want: kinds{faster: 3 << 4, same: 1 << 3, slower: 3 << 6}},
		{name: "20% of latency are alike", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1,
			Read: [2]int{100, 1000}},
			node{Node: 1, MiB: 1, Read: [2]int{120, 1000}},
			node{Node: 2, MiB: 1, Read: [2]int{121, 1000}}),
			by: ByFigures, want: kinds{same: 3, slower: 4}},
		{name: "20% of bandwidth are alike", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1,
			Read: [2]int{100, 1200}},
			node{Node: 1, MiB: 1, Read: [2]int{100, 1000}},
			node{Node: 2, MiB: 1, Read: [2]int{100, 999}},
			node{Node: 3, MiB: 1, Read: [2]int{100, 1441}}),
			by: ByFigures, want: kinds{faster: 8, same: 3, slower: 4}},
		{name: "bandwidth tells up to 1.5 times the latency",
			tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1, Read: [2]int{100, 100}},
				node{Node: 1, MiB: 1, Read: [2]int{150, 400}},
				node{Node: 2, MiB: 1, Read: [2]int{151, 400}}),
			by: ByFigures, want: kinds{faster: 2, same: 1, slower: 4}},
		{name: "latency alone above that", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1,
			Read: [2]int{151, 400}},
			node{Node: 1, MiB: 1, Read: [2]int{100, 100}}), by: ByFigures,
			want: kinds{faster: 2, same: 1}},
		{name: "no bandwidth", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1,
			Read: [2]int{100, 0}},
			node{Node: 1, MiB: 1, Read: [2]int{130, 0}}), by: ByFigures,
			want: kinds{same: 1, slower: 2}},
		// Three sockets in a row: the one in the middle is no tier of its own.
		{name: "a row of sockets", tree: testlib.SysfsOf(node{Node: 0, CPUs: "0", MiB: 1,
			Distances: "10 20 30"},
			node{Node: 1, CPUs: "1", MiB: 1, Distances: "20 10 20"},
			node{Node: 2, CPUs: "2", MiB: 1, Distances: "30 20 10"}),
			by: ByDistance, want: kinds{same: 7}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := probed(t, c.tree)
			if c.change != nil {
				c.change(top)
			}
			if got, by := sort(top, top.Usable()), OrderOf(top, top.Usable()); got != c.want ||
				by != c.by {
				t.Errorf("%#x by %d, not %#x by %d", got, by, c.want, c.by)
			}
		})
	}
}

// TestSortAnything: whatever the figures are, the kinds are a partition, the processors' memory
// is in same, and what is faster than it is not slower than it.
func TestSortAnything(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	top := new(numa.Topology)
	few := func(most int) uint32 { return uint32(rng.IntN(most)) * uint32(rng.IntN(3)) }
	for range 1_000 {
		top.Online = rng.Uint64() & rng.Uint64() & rng.Uint64()
		top.Memory, top.CPUs, top.Tiered = top.Online&rng.Uint64(), top.Online&rng.Uint64(),
			top.Online
		top.Running, top.Allowed = top.CPUs&rng.Uint64(), rng.Uint64()
		if rng.IntN(2) == 0 {
			top.Tiered = 0
		}
		for n := range top.Node {
			node := &top.Node[n]
			*node = numa.Node{ReadLatency: 1 + few(200), WriteLatency: few(200),
				ReadBandwidth: few(100), MemoryTier: few(3)}
			if rng.IntN(100) == 0 {
				node.ReadLatency, node.WriteBandwidth = ^uint32(0), ^uint32(0)
			}
			for m := range node.Distance {
				node.Distance[m] = uint8(few(128))
			}
		}
		usable := top.Usable()
		k := sort(top, usable)
		if k.faster|k.same|k.slower != usable || k.faster&k.same != 0 ||
			(k.faster|k.same)&k.slower != 0 || k.same == 0 && usable != 0 {
			t.Fatalf("%#x of %#x", k, usable)
		}
		base := usable & top.Running
		if base&^k.same != 0 {
			t.Fatalf("%#x, but the process runs on %#x", k, base)
		}
		by := OrderOf(top, usable)
		for ; base != 0; base &= base - 1 {
			b := uint(bits.TrailingZeros64(base))
			for n := range uint(64) {
				fast, slow := k.faster>>n&1 != 0, k.slower>>n&1 != 0
				if fast && !isFaster(top, n, b, by) || slow && !isFaster(top, b, n, by) ||
					isFaster(top, n, b, by) && isFaster(top, b, n, by) {
					t.Fatalf("node %d beside %d of %#x by %d", n, b, k, by)
				}
			}
		}
	}
}
