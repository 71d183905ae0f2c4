package main

import (
	"slices"
	"strings"
	"testing"

	"tieralloc/numa"
)

// TestOverflowRemarks: check says with figures which full node breaks whose hard cap, and what
// keeps it.
func TestOverflowRemarks(t *testing.T) {
	const slow = "SLOW: no hard cap, and node 1 has 365 MiB free: when it is full the kernel " +
		"takes other nodes, and the hard cap of FAST and NORMAL does not count that; " +
		"TA_SLOW_HARD of at most 342 MiB keeps it"
	threeKinds := &numa.Map{Nodes: 7, Tier: [4]numa.Place{{Nodes: 1}, {Nodes: 2}, {Nodes: 4}}}
	for _, c := range []struct {
		places *numa.Map
		env    string
		want   []string // what each line begins with
	}{
		{twoKinds, "", nil},
		{twoKinds, "TA_FAST_SOFT=64M", nil},
		{twoKinds, "TA_FAST_HARD=64M", []string{slow}},
		{twoKinds, "TA_FAST_HARD=64M TA_SLOW_HARD=342M", nil},
		{twoKinds, "TA_FAST_HARD=64M TA_SLOW_HARD=343M",
			[]string{"SLOW: a hard cap of 343 MiB, and node 1 has 365 MiB free: "}},
		{twoKinds, "TA_FAST_HARD=64M TA_SLOW_HARD=400M",
			[]string{"SLOW: a hard cap of 400 MiB, and node 1 has 365 MiB free: "}},
		// Nothing is sent to SLOW.
		{twoKinds, "TA_FAST_HARD=64M TA_ON_HARDCAP=fail", nil},
		{threeKinds, "TA_FAST_HARD=64M", []string{"NORMAL: no hard cap, and node 1 has 365 MiB"}},
		{&numa.Map{Simulated: true}, "TA_FAST_HARD=64M TA_DEFAULT_HINT=hot", nil},
		{twoKinds, "TA_FAST_HARD=64M TA_DISABLE=1", nil},
	} {
		v := checked(t, strings.Fields(c.env)...)
		v.places = c.places
		account := c.places.Accounts()
		v.settings.ShareCaps(0, &account, 2)
		got := overflowRemarks(v, func(uintptr) uint64 { return 365 << 20 })
		if !slices.EqualFunc(got, c.want, strings.HasPrefix) {
			t.Errorf("%s: %q", c.env, got)
		}
	}
}

// TestOverflowInReport: memory of SLOW on the node of a cap is named with its bytes; where it is no
// longer there, the peak tells.
func TestOverflowInReport(t *testing.T) {
	r := goodReport(t)
	r.BytesPerNodeSampled = false
	r.Tiers.Fast.SameMemory, r.Tiers.Normal.SameMemory = []string{"normal"}, []string{"fast"}
	r.Tiers.Fast.Nodes, r.Tiers.Normal.Nodes, r.Tiers.Slow.Nodes = []int{0}, []int{0}, []int{1}
	for _, tier := range r.tiers() {
		tier.BytesPerNode, tier.CapacitySoft, tier.CapacityHard = nil, 0, 0
	}
	r.Tiers.Slow.BytesPerNode = map[string]uint64{"0": 91 << 20, "1": 345 << 20}
	r.Tiers.Slow.BytesPeak = 436 << 20
	nodes := &numa.Topology{}
	nodes.Node[1].MemTotal = 391 << 20
	if got := append(overflowInReport(r), pastNodes(r, nodes)...); got != nil {
		t.Errorf("without a cap: %q", got)
	}
	r.Tiers.Fast.CapacityHard, r.Tiers.Normal.CapacityHard = 64<<20, 64<<20
	want := []string{"91 MiB of SLOW on node 0, where the cap of FAST and NORMAL does not count: " +
		"node 1 was full, or the kernel has moved memory"}
	if got := overflowInReport(r); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	want = []string{"SLOW had up to 436 MiB, and node 1 has 391 MiB: the rest was on other " +
		"nodes, if it was used, and no cap counts it there"}
	if got := pastNodes(r, nodes); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	r.Tiers.Slow.BytesPerNode = map[string]uint64{"1": 345 << 20}
	r.Tiers.Slow.BytesPeak = 345 << 20
	if got := append(overflowInReport(r), pastNodes(r, nodes)...); got != nil {
		t.Errorf("all in its place: %q", got)
	}
}
