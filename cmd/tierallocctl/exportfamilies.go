package main

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"tieralloc/stats"
	"tieralloc/stats/live"
)

// A family is a metric that each T of a process has.
type family[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
	set   bool // 0 is left out
}

// The labels of the metrics of a process, of a tier and so on.
var (
	ofProcess = []string{"pid", "program"}
	ofCall    = []string{"pid", "program", "function"}
	ofTier    = []string{"pid", "program", "tier"}
	ofNode    = []string{"pid", "program", "tier", "node"}
	ofMove    = []string{"pid", "program", "move"}
	ofDevice  = []string{"pid", "program", "device", "uuid"}
)

// descs are all metrics.
var descs []*prometheus.Desc

func newDesc(name, help string, labels []string) *prometheus.Desc {
	d := prometheus.NewDesc("tieralloc_"+name, help, labels, nil)
	descs = append(descs, d)
	return d
}

// gauge is a family whose value rises and falls.
func gauge[T any](labels []string, name, help string, value func(T) uint64) family[T] {
	return family[T]{desc: newDesc(name, help, labels), kind: prometheus.GaugeValue,
		value: func(t T) float64 { return float64(value(t)) }}
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

// ifSet makes a family one that is absent where it is 0.
func (f family[T]) ifSet() family[T] {
	f.set = true
	return f
}

// less returns a - b, or 0 if the figures of running threads disagree.
func less(a, b uint64) uint64 { return a - min(a, b) }

// processFamilies are the metrics of each process.
var processFamilies = []family[*live.Snapshot]{
	gauge(ofProcess, "process_start_time_seconds",
		"Time at which the process loaded the library, since 1970.",
		func(s *live.Snapshot) uint64 { return s.StartUnixNs }).seconds(),
	gauge(ofProcess, "figures_time_seconds",
		"Time of the figures, since 1970. An idle process does not update them.",
		func(s *live.Snapshot) uint64 { return uint64(max(0, s.At.UnixNano())) }).seconds(),
	gauge(ofProcess, "heap_mapped_bytes", "Address space that the heap holds.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesMapped }),
	gauge(ofProcess, "heap_committed_bytes", "Memory in use or cached, and not purged.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesCommitted }),
	gauge(ofProcess, "heap_cached_bytes", "Committed memory in spans that hold no block.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesCached }),
	gauge(ofProcess, "heap_live_bytes", "Size of the blocks allocated and not freed.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesLive }),
	gauge(ofProcess, "heap_live_blocks", "Blocks allocated and not freed.",
		func(s *live.Snapshot) uint64 { return s.Heap.BlocksLive }),
	gauge(ofProcess, "thread_heaps", "Thread heaps that a running thread owns.",
		func(s *live.Snapshot) uint64 { return s.Heap.ThreadHeaps }),
	counter(ofProcess, "heap_allocated_blocks", "Blocks allocated.",
		func(s *live.Snapshot) uint64 { return s.Heap.BlocksTotalAlloc }),
	counter(ofProcess, "heap_allocated_bytes", "Size of the blocks allocated.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesTotalAlloc }),
	counter(ofProcess, "heap_freed_bytes", "Size of the blocks freed.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesTotalFreed }),
	counter(ofProcess, "heap_purged_bytes", "Memory given back to the kernel by purges.",
		func(s *live.Snapshot) uint64 { return s.Heap.BytesPurged }),
	counter(ofProcess, "failed_calls", "Calls that returned a null pointer or an error.",
		func(s *live.Snapshot) uint64 { return s.CallsFailed }),
}

// tierFamilies are the metrics of each tier that a process uses.
var tierFamilies = []family[*stats.Tier]{
	gauge(ofTier, "tier_charged_bytes", "Memory charged to the tier: in use or cached.",
		func(t *stats.Tier) uint64 { return t.BytesCurrent }),
	gauge(ofTier, "tier_peak_bytes", "Largest tier_charged_bytes.",
		func(t *stats.Tier) uint64 { return t.BytesPeak }),
	gauge(ofTier, "tier_live_bytes",
		"Size of the blocks in the tier; of a forked child, those from after the fork.",
		func(t *stats.Tier) uint64 { return less(t.BytesEntered, t.BytesLeft) }),
	gauge(ofTier, "tier_cached_bytes", "Charged memory that no live block has.",
		func(t *stats.Tier) uint64 {
			return less(t.BytesCurrent, less(t.BytesEntered, t.BytesLeft))
		}),
	counter(ofTier, "tier_entered_blocks", "Blocks allocated in the tier or moved into it.",
		func(t *stats.Tier) uint64 { return t.BlocksEntered }),
	counter(ofTier, "tier_entered_bytes", "Size of the blocks of tier_entered_blocks_total.",
		func(t *stats.Tier) uint64 { return t.BytesEntered }),
	counter(ofTier, "tier_left_bytes", "Size of the blocks freed in the tier or moved out of it.",
		func(t *stats.Tier) uint64 { return t.BytesLeft }),
	counter(ofTier, "tier_soft_cap_exceeded", "Requests that left the tier over its soft cap.",
		func(t *stats.Tier) uint64 { return t.SoftExceeded }),
	counter(ofTier, "tier_soft_cap_rerouted",
		"Requests that went to a slower tier because of the soft cap.",
		func(t *stats.Tier) uint64 { return t.Rerouted }),
	counter(ofTier, "tier_hard_cap_reached", "Requests that would have passed the hard cap.",
		func(t *stats.Tier) uint64 { return t.CapacityViolations }),
	counter(ofTier, "tier_hard_cap_rerouted",
		"Requests that went to a slower tier because of the hard cap.",
		func(t *stats.Tier) uint64 { return t.RoutedSlow }),
	counter(ofTier, "tier_refused", "Requests that failed because of the hard cap.",
		func(t *stats.Tier) uint64 { return t.Refused }),
	counter(ofTier, "tier_throttle_wait_seconds", "Waiting time that the throttle has charged.",
		func(t *stats.Tier) uint64 { return t.SimulatedWaitNs }).seconds(),
	counter(ofTier, "tier_throttle_sleeps", "Times that a thread slept for the throttle.",
		func(t *stats.Tier) uint64 { return t.ThrottleSleeps }),
	counter(ofTier, "tier_move_attempts", "Attempts to move memory out of the tier.",
		func(t *stats.Tier) uint64 { return t.Migrations.Attempted }),
	counter(ofTier, "tier_moved_pages", "Memory pages moved out of the tier.",
		func(t *stats.Tier) uint64 { return t.Migrations.MovedPages }),
	counter(ofTier, "tier_unmoved_pages", "Memory pages that the kernel did not move.",
		func(t *stats.Tier) uint64 { return t.Migrations.FailedPages }),
	gauge(ofTier, "tier_soft_cap_bytes", "Soft cap of the tier. Absent: none.",
		func(t *stats.Tier) uint64 { return t.CapacitySoft }).ifSet(),
	gauge(ofTier, "tier_hard_cap_bytes", "Hard cap of the tier. Absent: none.",
		func(t *stats.Tier) uint64 { return t.CapacityHard }).ifSet(),
}

// tierHeat are the metrics of each tier of a process that follows.
var tierHeat = []family[*stats.Tier]{
	gauge(ofTier, "tier_hot_bytes", "Memory that the last sample found hot.",
		func(t *stats.Tier) uint64 { return t.BytesHot }),
	gauge(ofTier, "tier_cold_bytes", "Memory that the last sample found cold.",
		func(t *stats.Tier) uint64 { return t.BytesCold }),
}

// moveFamilies are the metrics of each kind of moves.
var moveFamilies = []family[*stats.Moves]{
	counter(ofMove, "follow_regions", "Regions that met this under TA_ON_SOFTCAP=follow.",
		func(m *stats.Moves) uint64 { return m.Regions }),
	counter(ofMove, "follow_bytes", "Size of the blocks of follow_regions_total.",
		func(m *stats.Moves) uint64 { return m.Bytes }),
}

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

// deviceFamilies are the metrics of each CUDA device of a process.
var deviceFamilies = []family[*stats.Device]{
	gauge(ofDevice, "device_memory_bytes", "Memory that the device has.",
		func(d *stats.Device) uint64 { return d.BytesDevice }),
	gauge(ofDevice, "device_reserved_bytes", "Segments on the device, in use or cached.",
		func(d *stats.Device) uint64 { return d.BytesReserved }),
	gauge(ofDevice, "device_live_bytes", "Size of the blocks allocated and not freed.",
		func(d *stats.Device) uint64 { return d.BytesLive }),
	gauge(ofDevice, "device_requested_bytes", "What those blocks were asked for with.",
		func(d *stats.Device) uint64 { return d.BytesAsked }),
	gauge(ofDevice, "device_cached_bytes", "Free blocks that may be handed out at once.",
		func(d *stats.Device) uint64 { return d.BytesCachedLocal + d.BytesCachedGlobal }),
	gauge(ofDevice, "device_pending_bytes",
		"Freed blocks that work of the device or a graph capture may still use.",
		func(d *stats.Device) uint64 { return d.BytesPending + d.BytesHeld }),
	gauge(ofDevice, "device_private_bytes", "Free blocks of graphs' pools.",
		func(d *stats.Device) uint64 { return d.BytesPrivate }),
	gauge(ofDevice, "device_foreign_bytes", "Live memory of the driver's own.",
		func(d *stats.Device) uint64 { return d.BytesForeign }),
	gauge(ofDevice, "device_spilled_bytes", "Segments in host memory.",
		func(d *stats.Device) uint64 { return d.BytesSpilled }),
	gauge(ofDevice, "device_live_blocks", "Blocks allocated and not freed.",
		func(d *stats.Device) uint64 { return d.BlocksLive }),
	counter(ofDevice, "device_allocations", "Requests for memory.",
		func(d *stats.Device) uint64 { return d.AllocCalls }),
	counter(ofDevice, "device_frees", "Frees of blocks that the heap knows.",
		func(d *stats.Device) uint64 { return d.FreeCalls }),
	counter(ofDevice, "device_invalid_frees", "Frees of what is no live block.",
		func(d *stats.Device) uint64 { return d.FreesInvalid }),
	counter(ofDevice, "device_hits", "Requests served from cached memory.",
		func(d *stats.Device) uint64 { return d.HitsLocal + d.HitsGlobal + d.HitsSplit }),
	counter(ofDevice, "device_misses", "Requests that needed a new segment of the driver.",
		func(d *stats.Device) uint64 { return d.Misses }),
	counter(ofDevice, "device_refused", "Requests that failed for want of memory.",
		func(d *stats.Device) uint64 { return d.Refused }),
	counter(ofDevice, "device_driver_refused", "Times that the driver had no memory for a segment.",
		func(d *stats.Device) uint64 { return d.DriverRefused }),
	counter(ofDevice, "device_waits", "Requests that waited for the device.",
		func(d *stats.Device) uint64 { return d.Waits }),
	counter(ofDevice, "device_spills", "Segments taken from host memory.",
		func(d *stats.Device) uint64 { return d.Spills }),
	counter(ofDevice, "device_pressures", "Times that the cache shrank on a nearly full device.",
		func(d *stats.Device) uint64 { return d.Pressures }),
	counter(ofDevice, "device_throttle_wait_seconds", "Waiting time that the throttle has charged.",
		func(d *stats.Device) uint64 {
			return d.Tiers[stats.DeviceFast].SimulatedWaitNs +
				d.Tiers[stats.DeviceSlow].SimulatedWaitNs
		}).seconds(),
	gauge(ofDevice, "device_soft_cap_bytes", "Soft cap of the device. Absent: none.",
		func(d *stats.Device) uint64 { return d.Tiers[stats.DeviceFast].CapacitySoft }).ifSet(),
	gauge(ofDevice, "device_hard_cap_bytes", "Hard cap of the device. Absent: none.",
		func(d *stats.Device) uint64 { return d.Tiers[stats.DeviceFast].CapacityHard }).ifSet(),
}

// uuidText writes a UUID as nvidia-smi does, without the prefix GPU- or MIG-. One that is not known
// is empty.
func uuidText(uuid [2]uint64) string {
	if uuid == [2]uint64{} {
		return ""
	}
	b := make([]byte, 0, 16)
	for _, word := range uuid {
		for i := range 8 {
			b = append(b, byte(word>>(8*i)))
		}
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

var (
	ofAccount = []string{"group", "user", "account"}
	ofGroup   = []string{"group", "user"}

	membersDesc = newDesc("group_members", "Running processes of the group (TA_GROUP).",
		ofGroup)
)

// groupFamilies are the metrics of each tier and device of a group.
var groupFamilies = []family[*groupAccount]{
	gauge(ofAccount, "group_used_bytes", "What the members of the group have reserved.",
		func(a *groupAccount) uint64 { return a.Used }),
	gauge(ofAccount, "group_granted_bytes", "What they may reserve without asking the group.",
		func(a *groupAccount) uint64 { return a.Granted }),
	counter(ofAccount, "group_refused",
		"Reservations that the group refused at its hard cap. Requests that a process itself "+
			"sends to a slower tier are in tier_hard_cap_reached_total only.",
		func(a *groupAccount) uint64 { return a.Refused }),
	counter(ofAccount, "group_waits",
		"Requests below the process's TA_GROUP_MIN that waited for other members.",
		func(a *groupAccount) uint64 { return a.Waits }),
	counter(ofAccount, "group_taken_bytes",
		"What members that ran short took of what others were granted and did not use.",
		func(a *groupAccount) uint64 { return a.Taken }),
	gauge(ofAccount, "group_soft_cap_bytes", "Soft cap of the group. Absent: none.",
		func(a *groupAccount) uint64 { return a.SoftCap }).ifSet(),
	gauge(ofAccount, "group_hard_cap_bytes", "Hard cap of the group. Absent: none.",
		func(a *groupAccount) uint64 { return a.HardCap }).ifSet(),
}

// collectGroups collects all groups with a name.
func collectGroups(ch chan<- prometheus.Metric, groups []*processGroup) {
	for _, g := range groups {
		name, user := printable(g.Name), userName(g.Owner)
		ch <- gaugeOf(membersDesc, float64(g.living()), name, user)
		for i := range g.Accounts {
			a := &g.Accounts[i]
			collect(ch, groupFamilies, a, name, user, a.Name)
		}
	}
}
