package main

import (
	"slices"
	"testing"
	"time"

	"tieralloc/stats/live"
)

// process is a page with a report for tests of what is made of it.
func process(t *testing.T, pid int, start int64, state live.State) *page {
	return &page{path: "/dev/shm/x", pid: pid, program: "prog", start: time.Unix(start, 0),
		state: state, report: goodReport(t)}
}

func TestCompareSamples(t *testing.T) {
	before, now := process(t, 1, 5, live.Running), process(t, 1, 5, live.Running)
	b, n := before.report, now.report
	n.UptimeNs = b.UptimeNs + 2e9
	n.Heap.BlocksTotalAlloc = b.Heap.BlocksTotalAlloc + 500
	n.Heap.BytesTotalAlloc = b.Heap.BytesTotalAlloc + 1<<20
	n.Tiers.Fast.AllocCalls = b.Tiers.Fast.AllocCalls + 300
	n.Tiers.Normal.AllocCalls = b.Tiers.Normal.AllocCalls - 1 // a span has moved away
	n.Tiers.Slow.SimulatedWaitNs = b.Tiers.Slow.SimulatedWaitNs + 1e9
	n.Tiers.Fast.Migrations.MovedPages = b.Tiers.Fast.Migrations.MovedPages + 8

	was, is := b.Devices[0], n.Devices[0]
	is.AllocCalls = was.AllocCalls + 40
	is.Tiers.Fast.BytesTotalAlloc = was.Tiers.Fast.BytesTotalAlloc + 6<<20
	is.Tiers.Slow.SimulatedWaitNs = was.Tiers.Slow.SimulatedWaitNs + 2e9
	n.Devices = append([]*device{{Ordinal: 5, Tiers: is.Tiers}}, is) // one more came to be used

	list := compareSamples(sample{pages: []*page{before}}, sample{pages: []*page{now}})
	if len(list) != 1 {
		t.Fatalf("%d processes", len(list))
	}
	a := list[0]
	if want := (rates{allocs: 250, bytes: 1 << 19, wait: 15e8, moved: 4}); a.rates != want {
		t.Errorf("%+v, not %+v", a.rates, want)
	}
	if want := [3]rates{{allocs: 150, moved: 4}, {}, {wait: 5e8}}; a.tiers != want {
		t.Errorf("%+v, not %+v", a.tiers, want)
	}
	if want := [8]rates{1: {allocs: 20, bytes: 3 << 20, wait: 1e9}}; a.devices != want {
		t.Errorf("%+v, not %+v", a.devices, want)
	}
	if a.memory() != n.Heap.BytesCommitted || a.violations() != 11 {
		t.Errorf("memory %d, violations %d", a.memory(), a.violations())
	}
}

// TestNoRates: nothing is compared with another process, with figures that were not
// updated, or with none.
func TestNoRates(t *testing.T) {
	now := process(t, 1, 5, live.Running)
	now.report.UptimeNs += 1e9
	now.report.Heap.BlocksTotalAlloc += 500
	unborn := process(t, 1, 5, live.Running)
	unborn.report = nil
	killed := *now
	killed.state = live.Killed
	same := process(t, 1, 5, live.Running)
	for name, c := range map[string][2]*page{
		"another start": {process(t, 1, 4, live.Running), now},
		"no update":     {same, same},
		"none before":   {unborn, now},
		"none now":      {now, unborn},
		"killed":        {process(t, 1, 5, live.Running), &killed},
		"backwards":     {now, same},
	} {
		list := compareSamples(sample{pages: c[:1]}, sample{pages: c[1:]})
		if len(list) != 1 || list[0].rates != (rates{}) || list[0].tiers != [3]rates{} {
			t.Errorf("%s: %+v", name, list)
		}
	}
	if list := compareSamples(sample{pages: []*page{now}}, sample{}); len(list) != 0 {
		t.Errorf("a process that is gone: %+v", list)
	}
}

func TestOrders(t *testing.T) {
	list := []activity{
		{page: process(t, 3, 1, live.Running), rates: rates{allocs: 1, bytes: 30, wait: 2}},
		{page: process(t, 1, 1, live.Killed), rates: rates{allocs: 9, bytes: 90, wait: 9}},
		{page: process(t, 2, 1, live.Running), rates: rates{allocs: 2, bytes: 20, wait: 2}},
	}
	list[0].program, list[2].program = "b", "a"
	list[0].report.Heap.BytesCommitted++
	for _, o := range orders {
		want := map[string][]int{"memory": {3, 2, 1}, "allocations": {2, 3, 1}, "bytes": {3, 2, 1},
			"wait":    {2, 3, 1},
			"program": {2, 3, 1}, "pid": {2, 3, 1}}[o.name]
		o.sort(list)
		var got []int
		for _, a := range list {
			got = append(got, a.pid)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", o.name, got, want)
		}
	}
}
