package main

var device = &object{
	title:  "`devices`",
	goType: "Device", tool: "device", method: "device(d *stats.Device)", arg: "d",
	comment: []string{
		"Device is what one CUDA device's heap counts, over all contexts of the process. The " +
			"host knows " +
			"all of it; the device is never asked.",
		"",
		"\tHitsLocal + HitsGlobal + HitsSplit + Misses + ForeignCalls + Refused = AllocCalls",
		"\tBytesReserved = BytesLive + BytesCachedLocal + BytesCachedGlobal + BytesPending + " +
			"BytesHeld +",
		"\t                BytesPrivate + BytesLost - BytesAsleep",
		"\tBytesAsked <= BytesLive",
		"\tLargestFree <= BytesCachedLocal + BytesCachedGlobal",
		"\tTiers[DeviceFast].BytesCurrent = BytesReserved + BytesForeign",
		"\tTiers[DeviceSlow].BytesCurrent = BytesSpilled",
	},
	def:     "device",
	meaning: "One CUDA device, over all contexts of the process.",
	figures: []figure{
		f("ordinal", count, setting, plain,
			"Number of the device in the process.").obvious(),
		f("uuid", text, setting, plain,
			"As nvidia-smi shows it, without GPU- or MIG-; empty: unknown.").obvious().
			typed("[2]uint64").
			note("Its 16 bytes as they lie in memory; 0, 0: unknown.").
			write("w.key(\"uuid\")", "w.uuid(d.Uuid[0], d.Uuid[1])").
			schema(`{"type": "string", "pattern": "^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?$"}`),
		f("pci", text, setting, plain,
			"Place on the PCI bus; empty: unknown.").obvious().
			typed("uint64").
			note("1 + (domain<<16 | bus<<8 | device<<3); 0: unknown.").
			write("w.key(\"pci\")", "w.pci(d.Pci)").
			schema(`{"type": "string", "pattern": "^([0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\\.0)?$"}`),
		f("bytes_device", bytes, setting, plain,
			"Memory of the device.").obvious(),
		f("contexts", count, gauge, exact,
			"The process's CUDA contexts that have a heap.").obvious(),
		f("reuse", word, setting, plain,
			"When a freed block may be reused (TA_CUDA_REUSE).").
			coded("names.reuse", 1).
			note("0: sync, 1: event.").
			words("sync", "event"),
		f("suballoc", word, setting, plain,
			"Which plain requests share segments (TA_CUDA_SUBALLOC).").
			coded("names.suballoc", 1).
			note("0: small, 1: all.").
			words("small", "all"),
		f("on_hardcap", word, setting, plain,
			"What happens at the hard cap (TA_CUDA_ON_HARDCAP).").
			coded("names.spill", 1).
			note("0: fail, 1: spill.").
			words("fail", "spill"),
		f("managed", truth, setting, plain,
			"Whether segments are managed memory (TA_CUDA_MANAGED)."),
		f("segment_size", bytes, setting, plain,
			"Size of segments for blocks below 10 MiB (TA_CUDA_SEGMENT_SIZE)."),
		f("cache_limit", bytes, setting, plain,
			"TA_CUDA_CACHE_LIMIT; 2^63: no limit."),
		f("stream_local", count, setting, plain,
			"Free blocks kept unmerged for each stream."),
		f("global_limit", count, setting, plain,
			"Free blocks kept for all streams; 2^63: no limit."),
		f("alloc_calls", count, counter, exact,
			"Hits, misses, foreign_calls and refused together."),
		f("free_calls", count, counter, exact,
			"Frees of blocks that the heap knows.").obvious(),
		f("hits_local", count, counter, exact,
			"Requests served by a whole block that the same stream had freed."),
		f("hits_global", count, counter, exact,
			"Requests served by a whole block free for every stream."),
		f("hits_split", count, counter, exact,
			"Requests served by a part of a larger free block."),
		f("misses", count, counter, exact,
			"Requests served by a new segment.").obvious(),
		f("foreign_calls", count, counter, exact,
			"Requests served by the driver, such as pitched memory."),
		f("refused", count, counter, exact,
			"Requests that failed for lack of memory or by the hard cap."),
		f("waits", count, counter, exact,
			"Requests that waited for the device."),
		f("frees_invalid", count, counter, exact,
			"Frees of free blocks and inside blocks, answered with the driver's error."),
		f("frees_unknown", count, counter, exact,
			"Frees of unknown addresses, passed to the driver.").obvious(),
		f("efficiency", ratio, derived, ofParts,
			"Hits / alloc_calls; 0 before the first request.").
			write("w.key(\"efficiency\")", "w.fraction(hits(d), d.AllocCalls)"),
		f("blocks_live", count, gauge, exact,
			"Blocks not freed, foreign and spilled ones included."),
		f("bytes_asked", bytes, gauge, exact,
			"Requested size of live blocks in the device's segments."),
		f("bytes_asked_peak", bytes, peak, exact, "Largest bytes_asked.").obvious(),
		f("bytes_live", bytes, gauge, exact,
			"The same, rounded up to 512 bytes or more."),
		f("bytes_peak", bytes, peak, exact, "Largest bytes_live.").obvious(),
		f("bytes_reserved", bytes, gauge, exact,
			"Segments on the device: bytes_live and all of bytes_cached_local to bytes_lost, "+
				"less bytes_asleep."),
		f("bytes_reserved_peak", bytes, peak, exact, "Largest bytes_reserved.").obvious(),
		f("bytes_cached_local", bytes, gauge, exact,
			"Free blocks that one stream may reuse at once."),
		f("bytes_cached_global", bytes, gauge, exact,
			"Free blocks that every stream may reuse."),
		f("bytes_pending", bytes, gauge, exact,
			"Freed blocks that the device may still use."),
		f("bytes_held", bytes, gauge, exact,
			"Freed blocks that wait for a graph capture's end."),
		f("bytes_private", bytes, gauge, exact,
			"Free blocks of graphs' pools, kept while the pool lives."),
		f("bytes_lost", bytes, gauge, exact,
			"Freed blocks never reused, since the driver failed."),
		f("bytes_asleep", bytes, gauge, exact,
			"Blocks of sleeping regions: addresses without memory."),
		f("bytes_foreign", bytes, gauge, exact,
			"Live memory of the driver's own, if its size is known."),
		f("bytes_spilled", bytes, gauge, exact,
			"Segments in host memory.").obvious(),
		f("largest_free", bytes, gauge, exact,
			"Largest cached block.").obvious(),
		f("fragmentation_ratio", ratio, derived, ofParts,
			"1 - largest_free / (bytes_cached_local + bytes_cached_global); 0 when nothing is "+
				"free.").write("w.key(\"fragmentation_ratio\")", "w.deviceFragmentation(d)"),
		f("segments", count, gauge, exact,
			"Segments, on the host too.").obvious(),
		f("splits", count, counter, exact,
			"Free blocks cut in two.").obvious(),
		f("merges", count, counter, exact,
			"Neighbouring free blocks joined.").obvious(),
		f("blocks_warmed", count, counter, exact,
			"Blocks cached by warm-ups.").obvious(),
		f("spills", count, counter, exact,
			"Segments taken from host memory.").obvious(),
		f("bytes_total_spilled", bytes, counter, exact,
			"Their size, returned ones included.").obvious(),
		f("releases", count, counter, exact,
			"Segments returned to the driver."),
		f("bytes_released", bytes, counter, exact,
			"Their size.").obvious(),
		f("driver_refused", count, counter, exact,
			"Times that the driver had no memory for a segment."),
		f("pressures", count, counter, exact,
			"Times that the cache shrank because the device was nearly full."),
		f("driver_calls", group, nested, plain,
			"Driver calls that the heap made.").obvious().
			of(driverCalls).
			field("DriverCalls", "DriverCalls").
			tool("map[string]uint64"),
		f("tiers", group, nested, plain,
			"The device's own tiers.").obvious().
			of(deviceTiers).
			field("Tiers", "[2]DeviceTier").
			note("Indexed by Device….").
			write("w.deviceTiers(d)").
			tool("deviceTiers"),
		hidden("LeakCount", "uint64", "Leaks in use."),
		f("leaks", list, nested, plain,
			"With TA_CUDA_LEAKS: the first 32 blocks live at the end of the process.").
			list(leak).
			typed("[LeakMax]Leak").
			write("w.leaks(d)").
			tool("[]leak"),
	},
}

var driverCalls = &object{
	title:  "A device's `driver_calls`",
	goType: "DriverCalls", method: "driverCalls(c *stats.DriverCalls)", arg: "c",
	comment: []string{"DriverCalls counts what the heap had the driver do."},
	each:    "Calls of",
	figures: []figure{
		f("map", count, counter, exact, "Calls of cuMemAlloc."),
		f("map_managed", count, counter, exact, "Calls of cuMemAllocManaged."),
		f("unmap", count, counter, exact, "Calls of cuMemFree."),
		f("zero", count, counter, exact, "Calls of cuMemset."),
		f("synchronize", count, counter, exact, "Calls of cuCtxSynchronize."),
		f("event_create", count, counter, exact, "Calls of cuEventCreate."),
		f("event_record", count, counter, exact, "Calls of cuEventRecord and cuCtxRecordEvent."),
		f("event_query", count, counter, exact, "Calls of cuEventQuery."),
		f("stream_wait", count, counter, exact, "Calls of cuStreamWaitEvent."),
		f("info", count, counter, exact, "Calls of cuMemGetInfo."),
	},
}

var deviceTiers = &object{
	title: "A device's `tiers`",
	tool:  "deviceTiers",
	figures: []figure{
		f("fast", group, nested, plain, "Memory of the device.").obvious().
			ref(deviceTier).tool("*tier"),
		f("slow", group, nested, plain,
			"Host memory for spilled blocks.").obvious().
			ref(deviceTier).
			tool("*tier"),
	},
}

var deviceTier = &object{
	title:  "A tier of a device",
	goType: "DeviceTier", method: "deviceTier(t *stats.DeviceTier)", arg: "t",
	comment: []string{
		"DeviceTier is one tier of a device, in the words of Tier. Segments and foreign " +
			"allocations are " +
			"charged whole.",
	},
	def:     "device_tier",
	like:    tier,
	meaning: "One tier of a device. Whole segments are charged.",
	figures: []figure{
		f("alloc_calls", count, counter, exact,
			"Blocks handed out.").obvious(),
		f("free_calls", count, counter, exact,
			"Blocks freed.").obvious(),
		f("bytes_current", bytes, gauge, exact,
			"Memory charged: segments and foreign allocations."),
		f("bytes_peak", bytes, peak, exact, "Largest bytes_current."),
		f("bytes_total_alloc", bytes, counter, exact,
			"Rounded size of the blocks handed out.").obvious(),
		f("bytes_total_freed", bytes, counter, exact,
			"Rounded size of the blocks freed.").obvious(),
		f("simulated_wait_ns", ns, counter, exact,
			"Time charged by the throttle."),
		f("capacity_soft", limit, setting, plain,
			"The soft cap."),
		f("capacity_hard", limit, setting, plain,
			"The smaller of TA_CUDA_HARD and TA_CUDA_PROPORTION."),
		f("capacity_violations", count, counter, exact,
			"Requests that did not fit under the hard cap, even after cached memory was "+
				"returned."),
		f("soft_exceeded", count, counter, exact,
			"Requests served over the soft cap.").obvious(),
		f("routed_slow", count, counter, exact,
			"Requests sent to the slow tier because of a cap."),
		f("refused", count, counter, exact,
			"Requests refused because of the hard cap."),
		f("throttle_sleeps", count, counter, exact,
			"Times that a thread slept for simulated_wait_ns."),
		f("throttle_overshoot_ns", ns, counter, exact,
			"Time that sleeps lasted too long."),
		f("throttle_bw", rate, setting, plain,
			"Bandwidth of the tier's model."),
		f("throttle_lat_ns", ns, setting, plain,
			"Latency of an allocation in the model."),
		f("bytes_per_node", group, gauge, plain,
			"Empty: only the driver knows where spilled pages are.").obvious().
			write("w.key(\"bytes_per_node\")", "w.open('{')", "w.close('}')").
			schema(`{"type": "object", "additionalProperties": false}`),
		f("migrations", group, nested, plain,
			"All 0: the library moves no device memory.").ref(migrations).write("w.noMigrations()"),
	},
}

var leak = &object{
	title:  "A device's `leaks`",
	goType: "Leak", tool: "leak", method: "leak(l *stats.Leak)", arg: "l",
	comment: []string{"Leak is one live block."},
	def:     "leak",
	meaning: "One live block of device memory.",
	figures: []figure{
		f("address", count, setting, exact,
			"Its device address.").obvious(),
		f("bytes", bytes, setting, exact,
			"Requested size.").obvious(),
		f("stream", count, setting, exact,
			"Handle of its stream; 0: none.").obvious(),
		f("number", count, setting, exact,
			"Number of the allocation on the device, from 1.").obvious(),
	},
}
