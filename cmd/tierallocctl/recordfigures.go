package main

import (
	"strconv"
	"strings"
	"time"

	"tieralloc/internal/config"
	"tieralloc/stats"
	"tieralloc/stats/live"
)

// The figures of a recording are named by what they are of and what they say: "live",
// "normal.live", "normal.node0", "device0.live". Those that are 0 are left out.

// recordOld is the age from which the figures of a live page are old. A process updates its page on
// the slow path of an allocation or a free, ten times a second at most, so one that sleeps may have
// allocated or freed more since. What the kernel says is never old.
const recordOld = time.Second

// figuresOf are the figures of a process that has so much resident memory. old says that its page's
// are.
func figuresOf(s *live.Snapshot, resident uint64, old bool) map[string]uint64 {
	values := map[string]uint64{}
	set := func(prefix string, list map[string]uint64) {
		for name, v := range list {
			if v != 0 {
				values[prefix+name] = v
			}
		}
	}
	set("", map[string]uint64{"resident": resident})
	if s.Updates == 0 {
		return values
	}
	set("", map[string]uint64{"committed": s.Heap.BytesCommitted, "peak": s.Heap.BytesPeak,
		"live": s.Heap.BytesLive, "cached": s.Heap.BytesCached, "failed": s.CallsFailed})
	if old {
		set("", map[string]uint64{"live_old": s.Heap.BytesLive})
	}
	for i := range s.Tiers[:stats.TierCount] {
		prefix := config.TierWord(uint32(i)) + "."
		t := &s.Tiers[i]
		set(prefix, map[string]uint64{"charged": t.BytesCurrent, "peak": t.BytesPeak,
			"live": less(t.BytesEntered, t.BytesLeft), "soft": t.CapacitySoft,
			"hard": t.CapacityHard, "soft_met": t.SoftExceeded + t.Rerouted,
			"hard_met": t.CapacityViolations, "refused": t.Refused,
			"moved": t.Migrations.MovedPages << kernelPageShift})
		for k, node := range s.Nodes[:min(s.NodeCount, stats.NodeMax)] {
			set(prefix, map[string]uint64{"node" + strconv.FormatUint(node, 10): t.BytesPerNode[k]})
		}
	}
	for i := range s.Devices[:min(s.DeviceCount, stats.DeviceMax)] {
		d := &s.Devices[i]
		t := &d.Tiers[stats.DeviceFast]
		set("device"+strconv.FormatUint(d.Ordinal, 10)+".", map[string]uint64{
			"charged": d.BytesReserved, "peak": d.BytesReservedPeak, "live": d.BytesLive,
			"cached": d.BytesCachedLocal + d.BytesCachedGlobal, "spilled": d.BytesSpilled,
			"soft": t.CapacitySoft, "hard": t.CapacityHard,
			"soft_met": t.SoftExceeded + t.RoutedSlow, "hard_met": t.CapacityViolations,
			"refused": d.Refused})
	}
	return values
}

const kernelPageShift = 12

// lastWord is what a figure says.
func lastWord(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }
