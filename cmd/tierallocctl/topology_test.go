package main

import (
	"bytes"
	"strings"
	"testing"

	"tieralloc/numa"
)

// cxlMachine has a node with CPUs, two without, and one that is closed to us.
func cxlMachine() *configCheck {
	t := &numa.Topology{Online: 0b1111, Memory: 0b1111, CPUs: 0b1001, Running: 1, Allowed: 0b0111,
		Tiered: 1}
	t.Node[0] = numa.Node{MemTotal: 64 << 30, ReadLatency: 100, WriteLatency: 120,
		ReadBandwidth: 50000, MemoryTier: 4}
	t.Node[0].Distance[0], t.Node[0].Distance[2] = 10, 31
	t.Node[2].MemTotal = 128 << 30
	m := &numa.Map{Nodes: 0b1111, Tier: [4]numa.Place{{Nodes: 1, Mode: numa.PreferredMany},
		{Nodes: 1, Mode: numa.PreferredMany},
		{Nodes: 0b110, Mode: numa.PreferredMany}}}
	return &configCheck{nodes: t, places: m}
}

func TestShowTopology(t *testing.T) {
	var out bytes.Buffer
	showTopology(&out, cxlMachine())
	text := squeeze(out.String())
	for _, words := range []string{
		"distance to 0-3", "64 GiB", "4 100/120 ns 50000/? MB/s 10 ? 31 ?", "3 (closed)",
		"SLOW node 1-2 128 GiB", "FAST and NORMAL are the same memory (node 0)\n",
		"told apart by distance", "export TA_NODE_FAST=0\n", "export TA_NODE_SLOW=1-2\n",
		"closed to this process (cpuset or container): node 3",
		"memory without CPUs, as CXL devices and HBM appear: node 1-2",
		"interleave:1-2", "weighted:1-2",
	} {
		if !strings.Contains(text, words) {
			t.Errorf("%q is missing in\n%s", words, out.String())
		}
	}
}

func TestTopologyNotes(t *testing.T) {
	one := &numa.Topology{Online: 1, Memory: 1, CPUs: 1, Allowed: 1}
	if notes := topologyNotes(one); notes != nil {
		t.Errorf("%q", notes)
	}
	one.Beyond = true
	if notes := topologyNotes(one); len(notes) != 1 || !strings.Contains(notes[0], "63") {
		t.Errorf("%q", notes)
	}
	one = &numa.Topology{Online: 3, Memory: 3, CPUs: 1, Allowed: 3}
	if notes := topologyNotes(one); len(notes) != 1 || strings.Contains(notes[0], "pool") {
		t.Errorf("one node without CPUs needs no pool: %q", notes)
	}
}

// TestWhySimulated: each reason is told apart.
func TestWhySimulated(t *testing.T) {
	seen := map[string]string{}
	for name, c := range map[string]struct {
		env             string
		memory, allowed uint64
	}{
		"told so": {"TA_USE_LIBNUMA=0", 3, 3}, "one node": {"", 1, 1}, "closed": {"", 3, 2},
		"equal": {"", 3, 3}, "mbind": {"TA_NODE_SLOW=0", 3, 3},
	} {
		v := checked(t, c.env)
		why := whySimulated(v.settings, &numa.Topology{Online: c.memory, Memory: c.memory,
			Allowed: c.allowed})
		if other := seen[why]; other != "" {
			t.Errorf("%s and %s: %s", name, other, why)
		}
		seen[why] = name
	}
}
