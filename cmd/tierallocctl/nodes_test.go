package main

import (
	"testing"

	"tieralloc/numa"
)

func TestNodeWords(t *testing.T) {
	for set, want := range map[uint64]string{
		0: none, 1: "0", 3: "0-1", 5: "0,2", 0b1011101: "0,2-4,6", 1 << 63: "63",
		^uint64(0): "0-63",
	} {
		if got := nodeWords(nodeList(set)); got != want {
			t.Errorf("%b: %q, not %q", set, got, want)
		}
	}
}

// TestPlaces: three nodes as the library would map them, by words that it accepts.
func TestPlaces(t *testing.T) {
	m := numa.Map{Tier: [4]numa.Place{{Nodes: 1}, {Nodes: 0b10, Mode: numa.PreferredMany},
		{Nodes: 0b1100, Mode: numa.WeightedInterleave}}}
	list := places(&m)
	if len(list) != 3 || list[0].tier != "FAST" || nodeWords(list[2].nodes) != "2-3" {
		t.Fatalf("%+v", list)
	}
	if list[0].how == list[1].how || list[1].how == list[2].how {
		t.Errorf("the policies are not told apart: %+v", list)
	}
	if places(&numa.Map{Simulated: true}) != nil {
		t.Error("simulated tiers have places")
	}
}

// TestPlaceWords: whether the kernel may move memory of a tier is told.
func TestPlaceWords(t *testing.T) {
	stays := placeWords(&numa.Place{Nodes: 2, Mode: numa.PreferredMany})
	for _, c := range []struct {
		place numa.Place
		more  string
	}{
		{numa.Place{Nodes: 2, Mode: numa.PreferredMany | numa.Balanced},
			"; the kernel's NUMA balancing may move pages here"},
		{numa.Place{Nodes: 2, Promote: 5, Mode: numa.PreferredMany | numa.Balanced},
			"; the kernel's tiering may promote to node 0,2"},
	} {
		if got := placeWords(&c.place); got != stays+c.more {
			t.Errorf("%+v: %q", c.place, got)
		}
	}
}
