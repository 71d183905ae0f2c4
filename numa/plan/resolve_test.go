package plan

import (
	"io"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/sysfs"
	"tieralloc/internal/testlib"
	"tieralloc/numa"
	"tieralloc/numa/probe"
)

func place(nodes uint64, mode uint32) numa.Place { return numa.Place{Nodes: nodes, Mode: mode} }

// settings is what a user asks for: nodes and how they are spread, by tier.
func settings(fast, normal, slow uint64, spread ...uint32) *config.Settings {
	s := &config.Settings{UseLibnuma: true}
	for i, nodes := range []uint64{fast, normal, slow} {
		s.Tiers[i].Nodes = nodes
		if i < len(spread) {
			s.Tiers[i].Spread = spread[i]
		}
	}
	return s
}

// complaints runs a function that writes lines to a descriptor.
func complaints(tb testing.TB, run func(fd uintptr)) string {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	run(w.Fd())
	w.Close()
	text, err := io.ReadAll(r)
	r.Close()
	if err != nil {
		tb.Fatal(err)
	}
	return string(text)
}

// planned is plan, with the lines that it wrote.
func planned(tb testing.TB, s *config.Settings, t *numa.Topology) (m numa.Map, bad uintptr,
	lines string) {
	tb.Helper()
	lines = complaints(tb, func(fd uintptr) { bad = plan(s, t, &m, fd) })
	if int(bad) != strings.Count(lines, "\n") {
		tb.Errorf("%d bad, lines:\n%s", bad, lines)
	}
	return m, bad, lines
}

func TestPlan(t *testing.T) {
	many := func(nodes uint64) numa.Place { return place(nodes, numa.PreferredMany) }
	all := func(nodes uint64) numa.Place { return place(nodes, numa.Default) }
	alone := all // the kernel's choice
	capOf := func(set func(*config.Settings)) *config.Settings {
		s := settings(0, 0, 0)
		set(s)
		return s
	}
	const inter, weighted = config.SpreadInterleave, config.SpreadWeighted
	for _, c := range []struct {
		name      string
		tree      testlib.Sysfs
		set       *config.Settings
		want      [3]numa.Place
		pin       numa.Place
		simulated bool
	}{
		{name: "one node", tree: testlib.OneNode, set: settings(0, 0, 0), simulated: true},
		{name: "one node, named", tree: testlib.OneNode, set: settings(1, 1, 1), simulated: true},
		{name: "one node, interleaved", tree: testlib.OneNode, set: settings(1, 0, 0, inter),
			simulated: true},
		{name: "sockets", tree: testlib.Sockets, set: settings(0, 0, 0), simulated: true},
		{name: "off", tree: testlib.WithCXL, set: &config.Settings{}, simulated: true},
		{name: "slower memory", tree: testlib.WithCXL, set: settings(0, 0, 0),
			want: [3]numa.Place{alone(3), alone(3), many(4)}, pin: place(3, numa.Strict)},
		{name: "slower memory and a cap", tree: testlib.WithCXL,
			set:  capOf(func(s *config.Settings) { s.Tiers[2].Soft = 1 }),
			want: [3]numa.Place{many(3), many(3), many(4)}, pin: place(3, numa.Strict)},
		{name: "slower memory and a part of it", tree: testlib.WithCXL,
			set:  capOf(func(s *config.Settings) { s.Tiers[0].HardPart = 1 }),
			want: [3]numa.Place{many(3), many(3), many(4)}, pin: place(3, numa.Strict)},
		{name: "faster and slower memory", tree: testlib.WithHBM, set: settings(0, 0, 0),
			want: [3]numa.Place{many(2), alone(1), many(4)}, pin: place(2, numa.Strict)},
		{name: "sockets, one tier named", tree: testlib.Sockets, set: settings(0, 0, 2),
			want: [3]numa.Place{many(1), many(1), many(2)}, pin: place(1, numa.Strict)},
		{name: "sockets, fast named", tree: testlib.Sockets, set: settings(1, 0, 0),
			want: [3]numa.Place{many(1), many(2), many(2)}, pin: place(1, numa.Strict)},
		// Nothing is left for NORMAL: it shares what has taken its nodes.
		{name: "fast named on the only processors", tree: testlib.WithHBM, set: settings(1, 0, 0),
			want: [3]numa.Place{many(1), alone(1), many(4)}, pin: place(1, numa.Strict)},
		{name: "fast named on more", tree: testlib.WithHBM, set: settings(3, 0, 0),
			want: [3]numa.Place{many(3), many(3), many(4)}, pin: place(3, numa.Strict)},
		{name: "the same named for all", tree: testlib.WithHBM, set: settings(2, 2, 2),
			want: [3]numa.Place{many(2), many(2), many(2)}, pin: place(2, numa.Strict)},
		{name: "all named", tree: testlib.WithCXL, set: settings(4, 2, 1),
			want: [3]numa.Place{many(4), many(2), many(1)}, pin: place(4, numa.Strict)},
		{name: "all nodes named", tree: testlib.WithCXL, set: settings(7, 0, 0),
			want: [3]numa.Place{all(7), all(7), all(7)}, pin: all(7)},
		{name: "nodes given up", tree: testlib.WithCXL, set: settings(0, 0, 5),
			want: [3]numa.Place{many(2), many(2), many(5)}, pin: place(2, numa.Strict)},
		{name: "interleaved and weighted", tree: testlib.WithCXL,
			set: settings(1, 6, 6, config.SpreadPrefer, inter, weighted),
			want: [3]numa.Place{many(1), place(6, numa.Interleave),
				place(6, numa.WeightedInterleave)}, pin: place(1, numa.Strict)},
		{name: "interleaved fast", tree: testlib.WithCXL, set: settings(3, 0, 0, inter),
			want: [3]numa.Place{place(3, numa.Interleave), alone(3), many(4)},
			pin:  place(3, numa.Strict)},
		// A way of spreading without nodes says nothing.
		{name: "no nodes to interleave", tree: testlib.WithCXL, set: settings(0, 0, 0, inter),
			want: [3]numa.Place{alone(3), alone(3), many(4)}, pin: place(3, numa.Strict)},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := probed(t, c.tree)
			m, _, lines := planned(t, c.set, top)
			if [3]numa.Place(m.Tier[:3]) != c.want || m.Tier[3] != (numa.Place{}) ||
				m.Pin != c.pin ||
				m.Simulated != c.simulated || m.Nodes != top.Memory || lines != "" {
				t.Errorf("%+v %q", m, lines)
			}
		})
	}
}

// TestPlanClosed: a cpuset may leave one group of nodes, or one node.
func TestPlanClosed(t *testing.T) {
	top := probed(t, testlib.WithHBM)
	top.Allowed = 6
	if m, _, _ := planned(t, settings(0, 0, 0), top); m.Simulated || m.Nodes != 7 ||
		m.Tier != [4]numa.Place{place(2, numa.Default), place(2, numa.Default),
			place(4, numa.PreferredMany)} {
		t.Errorf("two of three: %+v", m)
	}
	top.Allowed = 4
	if m, _, _ := planned(t, settings(0, 0, 4), top); !m.Simulated || m.Nodes != 7 ||
		m.Tier != [4]numa.Place{} {
		t.Errorf("one of three: %+v", m)
	}
	top.Allowed = 0
	if m, _, _ := planned(t, settings(0, 0, 0), top); !m.Simulated {
		t.Errorf("none of three: %+v", m)
	}
}

func TestPlanRefuses(t *testing.T) {
	const head = "tieralloc: TA_NODE_"
	const may = `": expected nodes with memory that this process may use (`
	for _, c := range []struct {
		name    string
		tree    testlib.Sysfs
		allowed uint64
		set     *config.Settings
		want    string // lines, without their head
		places  [3]uint64
	}{
		{"a node that is not there", testlib.WithCXL, 7, settings(1<<7, 0, 0),
			`FAST="7` + may + `0-2), node 7 does not exist; using 0-1`, [3]uint64{3, 3, 4}},
		{"one there and one not", testlib.WithCXL, 7, settings(0, 0x11, 0),
			`NORMAL="0,4` + may + `0-2), node 4 does not exist; using 0-1`, [3]uint64{3, 3, 4}},
		{"nodes that are not there", testlib.WithCXL, 7, settings(0, 0, 0xd0<<56),
			`SLOW="60,62-63` + may + `0-2), nodes 60,62-63 do not exist; using 2`,
			[3]uint64{3, 3, 4}},
		{"a node without memory", testlib.NoMemory, 7, settings(2, 0, 0),
			`FAST="1` + may + `0,2), node 1 has no memory; using 0`, [3]uint64{1, 1, 4}},
		{"a closed node", testlib.WithHBM, 5, settings(2, 0, 0),
			`FAST="1` + may + `0,2), node 1 is not in this process's cpuset; using 0`,
			[3]uint64{1, 1, 4}},
		{"closed nodes", testlib.WithHBM, 1, settings(0, 6, 0),
			`NORMAL="1-2` + may + `0), nodes 1-2 are not in this process's cpuset; using 0`,
			[3]uint64{}},
		{"everything wrong at once", testlib.NoMemory, 3, settings(0x9f, 0, 0),
			`FAST="0-4,7` + may +
				`0), nodes 3-4,7 do not exist, node 1 has no memory, node 2 is not in this ` +
				`process's cpuset; using 0`,
			[3]uint64{}},
		{"no node at all is open", testlib.WithHBM, 0, settings(1, 0, 0),
			`FAST="0` + may + `none), node 0 is not in this process's cpuset; using none`,
			[3]uint64{}},
		{"spread is shown", testlib.WithCXL, 7,
			settings(0x300, 1<<9, 0, config.SpreadInterleave, config.SpreadWeighted),
			`FAST="interleave:8-9` + may + `0-2), nodes 8-9 do not exist; using 0-1` + "\n" + head +
				`NORMAL="weighted:9` + may + `0-2), node 9 does not exist; using 0-1`,
			[3]uint64{3, 3, 4}},
		{"a good one beside a bad one", testlib.Sockets, 3, settings(1, 4, 0),
			`NORMAL="2` + may + `0-1), node 2 does not exist; using 1`, [3]uint64{1, 2, 2}},
		{"some nodes of another", testlib.WithCXL, 7, settings(1, 3, 0),
			`NORMAL="0-1": expected the nodes of TA_NODE_FAST (0) or none of them; using 1`,
			[3]uint64{1, 2, 4}},
		{"some nodes of two", testlib.WithHBM, 7, settings(1, 2, 3),
			`SLOW="0-1": expected the nodes of TA_NODE_FAST (0) or none of them; using 2`,
			[3]uint64{1, 2, 4}},
		{"interleaved over more", testlib.WithCXL, 7,
			settings(3, 7, 4, config.SpreadPrefer, config.SpreadInterleave),
			`NORMAL="interleave:0-2": expected the nodes of TA_NODE_FAST (0-1) or none of them; using 0-1`, [3]uint64{3, 3, 4}},
		{"one node", testlib.OneNode, 1, settings(2, 0, 0),
			`FAST="1` + may + `0), node 1 does not exist; using 0`, [3]uint64{}},
		{"libnuma is off", testlib.WithCXL, 7, &config.Settings{Tiers: settings(0, 8, 4).Tiers},
			`NORMAL="3": expected no nodes beside TA_USE_LIBNUMA=0; using simulated tiers` + "\n" +
				head +
				`SLOW="2": expected no nodes beside TA_USE_LIBNUMA=0; using simulated tiers`,
			[3]uint64{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			top := probed(t, c.tree)
			top.Allowed = c.allowed
			m, _, lines := planned(t, c.set, top)
			if want := head + c.want + "\n"; lines != want {
				t.Errorf("lines\n%swant\n%s", lines, want)
			}
			for i, nodes := range c.places {
				if m.Tier[i].Nodes != nodes {
					t.Errorf("tier %d has nodes %#x, not %#x", i, m.Tier[i].Nodes, nodes)
				}
			}
			if m.Simulated != (c.places == [3]uint64{}) {
				t.Errorf("simulated: %v", m.Simulated)
			}
		})
	}
}

// TestResolveRefused: nodes that sysfs has and the kernel does not are as if its
// mbind were closed to us.
func TestResolveRefused(t *testing.T) {
	tr := testlib.SysfsOf(testlib.SysfsNode{Node: 0, CPUs: "0", MiB: 1, Distances: "10 20 40"},
		testlib.SysfsNode{Node: 62, MiB: 1, Distances: "20 10 40"},
		testlib.SysfsNode{Node: 63, MiB: 1, Distances: "40 40 10"})
	top := probed(t, tr)
	var m numa.Map
	var bad uintptr
	for _, c := range []struct {
		set  *config.Settings
		want []string
	}{
		{settings(0, 0, 0), nil}, // nobody asked for nodes: nothing is ignored
		{settings(0, 1<<62, 1<<63), []string{
			`tieralloc: TA_NODE_NORMAL="62": expected a system that lets this process bind memory (mbind failed with errno 22); using simulated tiers`,
			`tieralloc: TA_NODE_SLOW="63": expected a system that lets this process bind memory (mbind failed with errno 22); using simulated tiers`}},
		{settings(2, 0, 1<<63), []string{
			`tieralloc: TA_NODE_FAST="1": expected nodes with memory that this process may use (0,62-63), node 1 does not exist; using 0`,
			`tieralloc: TA_NODE_SLOW="63": expected a system that lets this process bind memory (mbind failed with errno 22); using simulated tiers`}},
	} {
		lines := complaints(t, func(fd uintptr) { bad = Resolve(c.set, top, &m, fd) })
		if lines != strings.Join(append(c.want, ""), "\n") || int(bad) != len(c.want) {
			t.Errorf("%d bad:\n%s", bad, lines)
		}
		if m != (numa.Map{Nodes: top.Memory, Simulated: true}) {
			t.Errorf("%+v", m)
		}
	}
}

// TestResolveHere runs on whatever machine this is: with several nodes each of them
// can be a tier's, with one it makes no difference.
func TestResolveHere(t *testing.T) {
	top := new(numa.Topology)
	probe.Topology(top)
	usable := top.Usable()
	for n := range 64 {
		if usable>>n&1 == 0 {
			continue
		}
		var m numa.Map
		lines := complaints(t, func(fd uintptr) { Resolve(settings(0, 0, 1<<n), top, &m, fd) })
		if several := usable&(usable-1) != 0; lines != "" || m.Simulated == several ||
			several && m.Tier[config.TierSlow] != (place(1<<n, numa.PreferredMany)) {
			t.Errorf("node %d of %#x: %+v %q", n, usable, m, lines)
		}
	}
}

// probed is the topology of a tree, on which this process may run and take memory
// everywhere.
func probed(tb testing.TB, tr testlib.Sysfs) *numa.Topology {
	tb.Helper()
	old := sysfs.Mounted
	sysfs.Mounted = tr.Write(tb)
	tb.Cleanup(func() { sysfs.Mounted = old })
	t := new(numa.Topology)
	if !probe.Topology(t) {
		tb.Fatal("Topology found no nodes")
	}
	t.Allowed, t.Running = t.Online, t.CPUs
	return t
}
