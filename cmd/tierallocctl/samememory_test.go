package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"tieralloc/numa"
)

// twoKinds is the places of the tiers on a machine with one slower node.
var twoKinds = &numa.Map{Nodes: 3, Tier: [4]numa.Place{{Nodes: 1}, {Nodes: 1},
	{Nodes: 2, Mode: numa.PreferredMany}}}

// TestSameInPlan: tiers of one memory are named with the caps that hold for all of them.
func TestSameInPlan(t *testing.T) {
	all := &numa.Map{Nodes: 3, Tier: [4]numa.Place{{Nodes: 3}, {Nodes: 3}, {Nodes: 3}}}
	for _, c := range []struct {
		places *numa.Map
		env    string
		want   []string
	}{
		{&numa.Map{Simulated: true}, "TA_FAST_HARD=32M", nil},
		{&numa.Map{Tier: [4]numa.Place{{Nodes: 1}, {Nodes: 2}, {Nodes: 4}}}, "TA_FAST_HARD=32M",
			nil},
		{twoKinds, "", []string{"FAST and NORMAL are the same memory (node 0)"}},
		{twoKinds, "TA_FAST_HARD=32M TA_SLOW_HARD=1G",
			[]string{"FAST and NORMAL are the same memory (node 0); TA_FAST_HARD=32M holds for " +
				"both"}},
		{twoKinds, "TA_FAST_SOFT=16M TA_NORMAL_HARD=1024M", []string{
			"FAST and NORMAL are the same memory (node 0); TA_FAST_SOFT=16M and " +
				"TA_NORMAL_HARD=1024M hold for both"}},
		{all, "TA_SLOW_HARD=1G",
			[]string{"FAST, NORMAL and SLOW are the same memory (node 0-1); TA_SLOW_HARD=1G " +
				"holds for all"}},
	} {
		v := checked(t, strings.Fields(c.env)...)
		v.places = c.places
		if got := sameInPlan(strings.Fields(c.env), v); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, not %q", c.env, got, c.want)
		}
	}
}

// TestContradictingCap: of two caps on one memory the larger is a mistake, and the smaller is
// named.
func TestContradictingCap(t *testing.T) {
	env := environ{"TA_FAST_HARD=8G", "TA_NORMAL_HARD=4G"}
	v := checked(t, env...)
	v.places = twoKinds
	v.mistakes = []mistake{{name: "TA_FAST_HARD"}}
	if got := sameInPlan(env, v); len(got) != 1 ||
		!strings.HasSuffix(got[0], "; TA_NORMAL_HARD=4G holds for both") {
		t.Errorf("%q", got)
	}
}

// TestSameInReport: run's and stats' tables are followed by the tiers that are one memory.
func TestSameInReport(t *testing.T) {
	r := goodReport(t)
	r.Tiers.Fast.SameMemory, r.Tiers.Normal.SameMemory = []string{"normal"}, []string{"fast"}
	r.Tiers.Normal.Nodes = r.Tiers.Fast.Nodes
	for name, write := range map[string]func(*bytes.Buffer){
		"run":   func(w *bytes.Buffer) { summarize(w, r) },
		"stats": func(w *bytes.Buffer) { describe(w, r) },
	} {
		var out bytes.Buffer
		write(&out)
		const line = "FAST and NORMAL are the same memory (node 0); the soft cap of 32 MiB and " +
			"the hard cap of 64 MiB hold for both\n"
		if !strings.Contains(out.String(), line) {
			t.Errorf("%s: no %q in\n%s", name, line, out.String())
		}
	}
	r.Tiers.Fast.SameMemory, r.Tiers.Normal.SameMemory = []string{"normal", "slow"},
		[]string{"fast", "slow"}
	r.Tiers.Slow.SameMemory = []string{"slow", "nonsense", "normal"}
	if got := sameInReport(r); len(got) != 1 ||
		!strings.HasPrefix(got[0], "FAST, NORMAL and SLOW are") {
		t.Errorf("%q", got)
	}
}

// TestOneMemorySettings: a cap under any name of a memory has its effect, and nothing goes from one
// name to another.
func TestOneMemorySettings(t *testing.T) {
	slowest := &numa.Map{Nodes: 3, Tier: [4]numa.Place{{Nodes: 1}, {Nodes: 2}, {Nodes: 2}}}
	for _, c := range []struct {
		places *numa.Map
		env    string
		idle   string
	}{
		{twoKinds, "TA_FAST_HARD=32M", ""},
		{twoKinds, "TA_FAST_HARD=32M TA_SLOW_HARD=1G", ""},
		{twoKinds, "TA_SLOW_HARD=1G", "TA_SLOW_HARD"},
		{slowest, "TA_FAST_HARD=32M", "TA_FAST_HARD"},
		{slowest, "TA_NORMAL_SOFT=32M", "TA_NORMAL_SOFT"},
		{slowest, "TA_SLOW_HARD=32M", ""},
	} {
		env := environ(strings.Fields(c.env))
		v := checked(t, env...)
		v.places = c.places
		account := v.places.Accounts()
		env.vector(func(envp uintptr) { v.settings.ShareCaps(envp, &account, 2) })
		var names []string
		for _, line := range idleSettings(env, v) {
			name, _, _ := strings.Cut(line, ":")
			names = append(names, name)
		}
		if want := strings.Fields(c.idle); !slices.Equal(names, want) {
			t.Errorf("%s: %q without effect, not %q", c.env, names, want)
		}
	}
}
