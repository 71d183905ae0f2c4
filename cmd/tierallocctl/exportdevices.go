package main

import (
	"fmt"

	"tieralloc/stats"
)

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
