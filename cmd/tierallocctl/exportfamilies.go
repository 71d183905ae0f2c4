package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"tieralloc/stats"
	"tieralloc/stats/live"
)

// A family is a metric that each T of a process has.
type family[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

// The labels of the metrics of a process, of a tier and so on, as labelPairs sorts them.
var (
	processLabels = []string{"pid", "program"}
	callLabels    = []string{"function", "pid", "program"}
	tierLabels    = []string{"pid", "program", "tier"}
	nodeLabels    = []string{"node", "pid", "program", "tier"}
	moveLabels    = []string{"move", "pid", "program"}
	deviceLabels  = []string{"device", "pid", "program", "uuid"}
)

func newDesc(name, help string, labels []string) *prometheus.Desc {
	return prometheus.NewDesc("tieralloc_"+name, help, labels, nil)
}

// gauge is a family whose value rises and falls.
func gauge[T any](labels []string, name, help string, value func(T) uint64) family[T] {
	return family[T]{newDesc(name, help, labels), prometheus.GaugeValue,
		func(t T) float64 { return float64(value(t)) }}
}

// counter is a family whose value never falls.
func counter[T any](labels []string, name, help string, value func(T) uint64) family[T] {
	f := gauge(labels, name+"_total", help, value)
	f.kind = prometheus.CounterValue
	return f
}

// seconds makes a family of nanoseconds one of seconds.
func (f family[T]) seconds() family[T] {
	ns := f.value
	f.value = func(t T) float64 { return ns(t) / 1e9 }
	return f
}

// less returns a - b, or 0 if the figures of running threads disagree.
func less(a, b uint64) uint64 { return a - min(a, b) }

// processFamilies are the metrics of each process.
var processFamilies = func() []family[*live.Snapshot] {
	type T = *live.Snapshot
	l := processLabels
	return []family[T]{
		gauge(l, "process_start_time_seconds",
			"Time at which the process loaded the library, since 1970.",
			func(s T) uint64 { return s.StartUnixNs }).seconds(),
		gauge(l, "figures_time_seconds",
			"Time of the figures, since 1970. An idle process does not update them.",
			func(s T) uint64 { return uint64(max(0, s.At.UnixNano())) }).seconds(),
		gauge(l, "heap_mapped_bytes", "Address space that the heap holds.",
			func(s T) uint64 { return s.Heap.BytesMapped }),
		gauge(l, "heap_committed_bytes", "Memory in use or cached, and not purged.",
			func(s T) uint64 { return s.Heap.BytesCommitted }),
		gauge(l, "heap_cached_bytes", "Committed memory in spans that hold no block.",
			func(s T) uint64 { return s.Heap.BytesCached }),
		gauge(l, "heap_live_bytes", "Size of the blocks allocated and not freed.",
			func(s T) uint64 { return s.Heap.BytesLive }),
		gauge(l, "heap_live_blocks", "Blocks allocated and not freed.",
			func(s T) uint64 { return s.Heap.BlocksLive }),
		gauge(l, "thread_heaps", "Thread heaps that a running thread owns.",
			func(s T) uint64 { return s.Heap.ThreadHeaps }),
		counter(l, "heap_allocated_blocks", "Blocks allocated.",
			func(s T) uint64 { return s.Heap.BlocksTotalAlloc }),
		counter(l, "heap_allocated_bytes", "Size of the blocks allocated.",
			func(s T) uint64 { return s.Heap.BytesTotalAlloc }),
		counter(l, "heap_freed_bytes", "Size of the blocks freed.",
			func(s T) uint64 { return s.Heap.BytesTotalFreed }),
		counter(l, "heap_purged_bytes", "Memory given back to the kernel by purges.",
			func(s T) uint64 { return s.Heap.BytesPurged }),
		counter(l, "failed_calls", "Calls that returned a null pointer or an error.",
			func(s T) uint64 { return s.CallsFailed }),
	}
}()

// tierFamilies are the metrics of each tier that a process uses.
var tierFamilies = func() []family[*stats.Tier] {
	type T = *stats.Tier
	l := tierLabels
	return []family[T]{
		gauge(l, "tier_charged_bytes", "Memory charged to the tier: in use or cached.",
			func(t T) uint64 { return t.BytesCurrent }),
		gauge(l, "tier_peak_bytes", "Largest tier_charged_bytes.",
			func(t T) uint64 { return t.BytesPeak }),
		gauge(l, "tier_live_bytes",
			"Size of the blocks in the tier; of a forked child, those from after the fork.",
			func(t T) uint64 { return less(t.BytesEntered, t.BytesLeft) }),
		gauge(l, "tier_cached_bytes", "Charged memory that no live block has.",
			func(t T) uint64 { return less(t.BytesCurrent, less(t.BytesEntered, t.BytesLeft)) }),
		counter(l, "tier_entered_blocks", "Blocks allocated in the tier or moved into it.",
			func(t T) uint64 { return t.BlocksEntered }),
		counter(l, "tier_entered_bytes", "Size of the blocks of tier_entered_blocks_total.",
			func(t T) uint64 { return t.BytesEntered }),
		counter(l, "tier_left_bytes", "Size of the blocks freed in the tier or moved out of it.",
			func(t T) uint64 { return t.BytesLeft }),
		counter(l, "tier_soft_cap_exceeded", "Requests that left the tier over its soft cap.",
			func(t T) uint64 { return t.SoftExceeded }),
		counter(l, "tier_soft_cap_rerouted",
			"Requests that went to a slower tier because of the soft cap.",
			func(t T) uint64 { return t.Rerouted }),
		counter(l, "tier_hard_cap_reached", "Requests that would have passed the hard cap.",
			func(t T) uint64 { return t.CapacityViolations }),
		counter(l, "tier_hard_cap_rerouted",
			"Requests that went to a slower tier because of the hard cap.",
			func(t T) uint64 { return t.RoutedSlow }),
		counter(l, "tier_refused", "Requests that failed because of the hard cap.",
			func(t T) uint64 { return t.Refused }),
		counter(l, "tier_throttle_wait_seconds", "Waiting time that the throttle has charged.",
			func(t T) uint64 { return t.SimulatedWaitNs }).seconds(),
		counter(l, "tier_throttle_sleeps", "Times that a thread slept for the throttle.",
			func(t T) uint64 { return t.ThrottleSleeps }),
		counter(l, "tier_move_attempts", "Attempts to move memory out of the tier.",
			func(t T) uint64 { return t.Migrations.Attempted }),
		counter(l, "tier_moved_pages", "Memory pages moved out of the tier.",
			func(t T) uint64 { return t.Migrations.MovedPages }),
		counter(l, "tier_unmoved_pages", "Memory pages that the kernel did not move.",
			func(t T) uint64 { return t.Migrations.FailedPages }),
	}
}()

// tierCaps are the metrics of each cap that is set.
var tierCaps = func() []family[*stats.Tier] {
	type T = *stats.Tier
	return []family[T]{
		gauge(tierLabels, "tier_soft_cap_bytes", "Soft cap of the tier. Absent: none.",
			func(t T) uint64 { return t.CapacitySoft }),
		gauge(tierLabels, "tier_hard_cap_bytes", "Hard cap of the tier. Absent: none.",
			func(t T) uint64 { return t.CapacityHard }),
	}
}()

// tierHeat are the metrics of each tier of a process that follows.
var tierHeat = func() []family[*stats.Tier] {
	type T = *stats.Tier
	return []family[T]{
		gauge(tierLabels, "tier_hot_bytes", "Memory that the last sample found hot.",
			func(t T) uint64 { return t.BytesHot }),
		gauge(tierLabels, "tier_cold_bytes", "Memory that the last sample found cold.",
			func(t T) uint64 { return t.BytesCold }),
	}
}()

// moveFamilies are the metrics of each kind of moves.
var moveFamilies = func() []family[*stats.Moves] {
	type T = *stats.Moves
	return []family[T]{
		counter(moveLabels, "follow_regions", "Regions that met this under TA_ON_SOFTCAP=follow.",
			func(m T) uint64 { return m.Regions }),
		counter(moveLabels, "follow_bytes", "Size of the blocks of follow_regions_total.",
			func(m T) uint64 { return m.Bytes }),
	}
}()

// A moveKind is a kind of moves, by its key in the report.
type moveKind struct {
	name string
	of   func(*stats.Following) *stats.Moves
}

var moveKinds = []moveKind{
	{"up_room", func(f *stats.Following) *stats.Moves { return &f.UpRoom }},
	{"up_hotter", func(f *stats.Following) *stats.Moves { return &f.UpHotter }},
	{"down_colder", func(f *stats.Following) *stats.Moves { return &f.DownColder }},
	{"down_softcap", func(f *stats.Following) *stats.Moves { return &f.DownSoftcap }},
	{"refused", func(f *stats.Following) *stats.Moves { return &f.Refused }},
	{"put_off", func(f *stats.Following) *stats.Moves { return &f.PutOff }},
	{"out_cold", func(f *stats.Following) *stats.Moves { return &f.OutCold }},
	{"out_unknown", func(f *stats.Following) *stats.Moves { return &f.OutUnknown }},
	{"out_again", func(f *stats.Following) *stats.Moves { return &f.OutAgain }},
	{"out_refused", func(f *stats.Following) *stats.Moves { return &f.OutRefused }},
}
