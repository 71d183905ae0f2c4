package document

import "tieralloc/stats"

// devices writes nothing in a process that used none: what it does not have is not
// worth a key.
func (w *writer) devices(r *stats.Report) {
	if r.DeviceCount == 0 {
		return
	}
	w.key("devices")
	w.open('[')
	for i := uint64(0); i < r.DeviceCount && i < stats.DeviceMax; i++ {
		w.item()
		w.device(&r.Devices[i&(stats.DeviceMax-1)])
	}
	w.close(']')
}

func (w *writer) device(d *stats.Device) {
	w.open('{')
	w.count("ordinal", d.Ordinal)
	w.key("uuid")
	w.uuid(d.Uuid[0], d.Uuid[1])
	w.key("pci")
	w.pci(d.Pci)
	w.count("bytes_device", d.BytesDevice)
	w.count("contexts", d.Contexts)
	w.word("reuse", reuseNames[d.Reuse&1])
	w.word("suballoc", suballocNames[d.Suballoc&1])
	w.word("on_hardcap", spillNames[d.OnHardcap&1])
	w.truth("managed", d.Managed != 0)
	w.count("segment_size", d.SegmentSize)
	w.count("cache_limit", d.CacheLimit)
	w.count("stream_local", d.StreamLocal)
	w.count("global_limit", d.GlobalLimit)
	w.deviceCalls(d)
	w.deviceBytes(d)
	w.deviceEvents(d)
	w.driverCalls(&d.DriverCalls)
	w.key("tiers")
	w.open('{')
	for i := uint(0); i < stats.DeviceTierCount; i++ {
		w.key(deviceTierNames[i&1])
		w.deviceTier(&d.Tiers[i&1])
	}
	w.close('}')
	w.leaks(d)
	w.close('}')
}

func (w *writer) deviceCalls(d *stats.Device) {
	w.count("alloc_calls", d.AllocCalls)
	w.count("free_calls", d.FreeCalls)
	w.count("hits_local", d.HitsLocal)
	w.count("hits_global", d.HitsGlobal)
	w.count("hits_split", d.HitsSplit)
	w.count("misses", d.Misses)
	w.count("foreign_calls", d.ForeignCalls)
	w.count("refused", d.Refused)
	w.count("waits", d.Waits)
	w.count("frees_invalid", d.FreesInvalid)
	w.count("frees_unknown", d.FreesUnknown)
	w.key("efficiency")
	w.fraction(min(d.HitsLocal+d.HitsGlobal+d.HitsSplit, d.AllocCalls), d.AllocCalls)
}

func (w *writer) deviceBytes(d *stats.Device) {
	w.count("blocks_live", d.BlocksLive)
	w.count("bytes_asked", d.BytesAsked)
	w.count("bytes_asked_peak", d.BytesAskedPeak)
	w.count("bytes_live", d.BytesLive)
	w.count("bytes_peak", d.BytesPeak)
	w.count("bytes_reserved", d.BytesReserved)
	w.count("bytes_reserved_peak", d.BytesReservedPeak)
	w.count("bytes_cached_local", d.BytesCachedLocal)
	w.count("bytes_cached_global", d.BytesCachedGlobal)
	w.count("bytes_pending", d.BytesPending)
	w.count("bytes_held", d.BytesHeld)
	w.count("bytes_private", d.BytesPrivate)
	w.count("bytes_lost", d.BytesLost)
	w.count("bytes_foreign", d.BytesForeign)
	w.count("bytes_spilled", d.BytesSpilled)
	w.count("largest_free", d.LargestFree)
	free := d.BytesCachedLocal + d.BytesCachedGlobal
	w.key("fragmentation_ratio")
	w.fraction(free-min(d.LargestFree, free), free)
}

func (w *writer) deviceEvents(d *stats.Device) {
	w.count("segments", d.Segments)
	w.count("splits", d.Splits)
	w.count("merges", d.Merges)
	w.count("blocks_warmed", d.BlocksWarmed)
	w.count("spills", d.Spills)
	w.count("bytes_total_spilled", d.BytesTotalSpilled)
	w.count("releases", d.Releases)
	w.count("bytes_released", d.BytesReleased)
	w.count("driver_refused", d.DriverRefused)
	w.count("pressures", d.Pressures)
}

func (w *writer) driverCalls(c *stats.DriverCalls) {
	w.key("driver_calls")
	w.open('{')
	w.count("map", c.Map)
	w.count("map_managed", c.MapManaged)
	w.count("unmap", c.Unmap)
	w.count("zero", c.Zero)
	w.count("synchronize", c.Synchronize)
	w.count("event_create", c.EventCreate)
	w.count("event_record", c.EventRecord)
	w.count("event_query", c.EventQuery)
	w.count("stream_wait", c.StreamWait)
	w.count("info", c.Info)
	w.close('}')
}

// deviceTier has the keys that every tier has, also those that say nothing here: the
// library moves no device memory, and where spilled pages are only the driver knows.
func (w *writer) deviceTier(t *stats.DeviceTier) {
	w.open('{')
	w.count("alloc_calls", t.AllocCalls)
	w.count("free_calls", t.FreeCalls)
	w.count("bytes_current", t.BytesCurrent)
	w.count("bytes_peak", t.BytesPeak)
	w.count("bytes_total_alloc", t.BytesTotalAlloc)
	w.count("bytes_total_freed", t.BytesTotalFreed)
	w.count("simulated_wait_ns", t.SimulatedWaitNs)
	w.count("capacity_soft", t.CapacitySoft)
	w.count("capacity_hard", t.CapacityHard)
	w.count("capacity_violations", t.CapacityViolations)
	w.count("soft_exceeded", t.SoftExceeded)
	w.count("routed_slow", t.RoutedSlow)
	w.count("refused", t.Refused)
	w.count("throttle_sleeps", t.ThrottleSleeps)
	w.count("throttle_overshoot_ns", t.ThrottleOvershootNs)
	w.count("throttle_bw", t.ThrottleBW)
	w.count("throttle_lat_ns", t.ThrottleLatNs)
	w.key("bytes_per_node")
	w.open('{')
	w.close('}')
	var none stats.Migrations
	w.migrations(&none)
	w.close('}')
}

func (w *writer) leaks(d *stats.Device) {
	w.key("leaks")
	w.open('[')
	for i := uint64(0); i < d.LeakCount && i < stats.LeakMax; i++ {
		l := &d.Leaks[i&(stats.LeakMax-1)]
		w.item()
		w.open('{')
		w.count("address", l.Address)
		w.count("bytes", l.Bytes)
		w.count("stream", l.Stream)
		w.count("number", l.Number)
		w.close('}')
	}
	w.close(']')
}

// uuid writes a device's UUID as nvidia-smi does, without the GPU- or MIG- before it;
// an unknown one as an empty string. a and b are its bytes, the first one lowest.
func (w *writer) uuid(a, b uint64) {
	w.put('"')
	for i := uint(0); i < 16 && a|b != 0; i++ {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			w.put('-')
		}
		word := a
		if i >= 8 {
			word = b
		}
		w.digits16(word>>(i&7*8), 2)
	}
	w.put('"')
}

// pci writes a device's place on the bus (Device.Pci) as NVML does; an unknown one as
// an empty string.
func (w *writer) pci(id uint64) {
	w.put('"')
	if id != 0 {
		id--
		w.digits16(id>>16, 8)
		w.put(':')
		w.digits16(id>>8, 2)
		w.put(':')
		w.digits16(id>>3&31, 2)
		w.text(".0")
	}
	w.put('"')
}

// digits16 writes the lowest hexadecimal digits of v, at most 16.
func (w *writer) digits16(v uint64, digits uint) {
	for ; digits > 0; digits-- {
		w.put(hexDigit(byte(v >> ((digits - 1) & 15 * 4))))
	}
}
