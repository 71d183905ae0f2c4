package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"tieralloc/stats"
	"tieralloc/stats/live"
)

// sample is the contents of all live pages at about one time.
type sample struct {
	at    time.Time
	pages []*page
	err   error // of pages that could not be read
}

func takeSample() sample {
	pages, err := allPages()
	return sample{time.Now(), pages, err}
}

// activity is a process with its rates between two samples.
type activity struct {
	*page
	rates   rates
	tiers   [3]rates               // valid if there is a report
	devices [stats.DeviceMax]rates // in the order of the report
}

// rates are per second.
type rates struct {
	allocs, bytes float64
	wait          float64 // ns
	moved         float64 // pages
}

// processKey identifies a process, also among those that had the same number.
type processKey struct {
	path  string
	start int64
}

func (p *page) key() processKey { return processKey{p.path, p.start.UnixNano()} }

// compareSamples computes the rates of the second sample's processes since the first.
func compareSamples(before, now sample) []activity {
	old := map[processKey]*page{}
	for _, p := range before.pages {
		old[p.key()] = p
	}
	var list []activity
	for _, p := range now.pages {
		a := activity{page: p}
		if o := old[p.key()]; o != nil && o.report != nil && p.report != nil {
			a.measure(o.report, p.report)
		}
		list = append(list, a)
	}
	return list
}

// measure fills in the rates between two reports of a process. They are zero if there was no update
// in between.
func (a *activity) measure(before, now *report) {
	if now.UptimeNs <= before.UptimeNs || a.state == live.Killed {
		return
	}
	seconds := float64(now.UptimeNs-before.UptimeNs) / 1e9
	per := func(was, is uint64) float64 {
		if is < was { // memory that moved to another tier took its counts along
			return 0
		}
		return float64(is-was) / seconds
	}
	a.rates.allocs = per(before.Heap.BlocksTotalAlloc, now.Heap.BlocksTotalAlloc)
	a.rates.bytes = per(before.Heap.BytesTotalAlloc, now.Heap.BytesTotalAlloc)
	for i, n := range now.tiers() {
		b := before.tiers()[i]
		r := &a.tiers[i]
		r.allocs = per(b.AllocCalls, n.AllocCalls)
		r.bytes = per(b.BytesTotalAlloc, n.BytesTotalAlloc)
		r.wait = per(b.SimulatedWaitNs, n.SimulatedWaitNs)
		r.moved = per(b.Migrations.MovedPages, n.Migrations.MovedPages)
		a.rates.wait += r.wait
		a.rates.moved += r.moved
	}
	for i, n := range now.Devices {
		for _, b := range before.Devices {
			if b.Ordinal == n.Ordinal {
				a.devices[i] = rates{allocs: per(b.AllocCalls, n.AllocCalls),
					bytes: per(b.Tiers.Fast.BytesTotalAlloc, n.Tiers.Fast.BytesTotalAlloc),
					wait: per(b.Tiers.Fast.SimulatedWaitNs+b.Tiers.Slow.SimulatedWaitNs,
						n.Tiers.Fast.SimulatedWaitNs+n.Tiers.Slow.SimulatedWaitNs)}
				a.rates.wait += a.devices[i].wait
			}
		}
	}
}

// memory returns the committed bytes of the process's heap.
func (a *activity) memory() uint64 {
	if a.report == nil {
		return 0
	}
	return a.report.Heap.BytesCommitted
}

// violations counts the requests that met a hard cap.
func (a *activity) violations() (n uint64) {
	if a.report != nil {
		for _, t := range a.report.tiers() {
			n += t.CapacityViolations
		}
	}
	return n
}

// order is a way to sort processes.
type order struct {
	name    string
	compare func(a, b activity) int
}

var orders = []order{
	{"memory", func(a, b activity) int { return cmp.Compare(b.memory(), a.memory()) }},
	{"allocations", func(a, b activity) int { return cmp.Compare(b.rates.allocs, a.rates.allocs) }},
	{"bytes", func(a, b activity) int { return cmp.Compare(b.rates.bytes, a.rates.bytes) }},
	{"wait", func(a, b activity) int { return cmp.Compare(b.rates.wait, a.rates.wait) }},
	{"program", func(a, b activity) int { return strings.Compare(a.program, b.program) }},
	{"pid", func(activity, activity) int { return 0 }},
}

// sort sorts running processes before those that have ended, then by the order, then by number.
func (o order) sort(list []activity) {
	slices.SortStableFunc(list, func(a, b activity) int {
		if a.state.Dead() != b.state.Dead() {
			if a.state.Dead() {
				return 1
			}
			return -1
		}
		return cmp.Or(o.compare(a, b), a.pid-b.pid)
	})
}
