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
	def: "device",
	meaning: "One CUDA device, over all contexts of the process. Sizes are of blocks and " +
		"segments, whatever the device does with them.",
	figures: []figure{
		f("ordinal", count, setting, plain,
			"Number of the device, as the process counts its devices."),
		f("uuid", text, setting, plain,
			"UUID of the device, as nvidia-smi shows it without GPU- or MIG- before it; "+
				"empty when the driver did not tell.").
			typed("[2]uint64").
			note("Its 16 bytes as they lie in memory; 0, 0: unknown.").
			write("w.key(\"uuid\")", "w.uuid(d.Uuid[0], d.Uuid[1])").
			schema(`{"type": "string", "pattern": "^([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})?$"}`),
		f("pci", text, setting, plain,
			"Place of the device on the PCI bus, as NVML writes it; empty when the driver "+
				"did not tell.").
			typed("uint64").
			note("1 + (domain<<16 | bus<<8 | device<<3); 0: unknown.").
			write("w.key(\"pci\")", "w.pci(d.Pci)").
			schema(`{"type": "string", "pattern": "^([0-9a-f]{8}:[0-9a-f]{2}:[0-9a-f]{2}\\.0)?$"}`),
		f("bytes_device", bytes, setting, plain, "Memory that the device has."),
		f("contexts", count, gauge, exact,
			"CUDA contexts of the process on the device that have a heap now."),
		f("reuse", word, setting, plain,
			"When a freed block may be handed out again (TA_CUDA_REUSE).").
			coded("reuseNames", 1).
			note("0: sync, 1: event.").
			words("sync", "event"),
		f("suballoc", word, setting, plain,
			"Which plain requests are parts of larger segments (TA_CUDA_SUBALLOC).").
			coded("suballocNames", 1).
			note("0: small, 1: all.").
			words("small", "all"),
		f("on_hardcap", word, setting, plain,
			"What happens to a request that would pass the hard cap (TA_CUDA_ON_HARDCAP).").
			coded("spillNames", 1).
			note("0: fail, 1: spill.").
			words("fail", "spill"),
		f("managed", truth, setting, plain,
			"Segments are managed memory (TA_CUDA_MANAGED): for those, on the device or on "+
				"the host is where they prefer to be. False also where the driver has none."),
		f("segment_size", bytes, setting, plain,
			"Size of the segments that blocks below 10 MiB are parts of "+
				"(TA_CUDA_SEGMENT_SIZE)."),
		f("cache_limit", bytes, setting, plain,
			"Free memory that is kept at most (TA_CUDA_CACHE_LIMIT); 2^63 when there is no "+
				"limit."),
		f("stream_local", count, setting, plain,
			"Free blocks that are kept as they are for each stream, before they are merged "+
				"with their neighbours."),
		f("global_limit", count, setting, plain,
			"Free blocks that are kept for all streams; 2^63 when there is no limit."),
		f("alloc_calls", count, counter, exact,
			"Requests for memory: those served by the heap (the three kinds of hits, and "+
				"misses), by the driver (foreign_calls), and refused."),
		f("free_calls", count, counter, exact, "Frees of blocks that the heap knows."),
		f("hits_local", count, counter, exact,
			"Requests served by a whole block that the same stream had freed."),
		f("hits_global", count, counter, exact,
			"Requests served by a whole block that was free for every stream."),
		f("hits_split", count, counter, exact,
			"Requests served by a part of a larger free block."),
		f("misses", count, counter, exact, "Requests that needed a new segment of the driver."),
		f("foreign_calls", count, counter, exact,
			"Requests that the driver serves itself, pitched or managed ones for example."),
		f("refused", count, counter, exact,
			"Requests that failed for want of memory, of the device or below the hard cap."),
		f("waits", count, counter, exact,
			"Requests that had to wait until the device had finished something."),
		f("frees_invalid", count, counter, exact,
			"Frees of blocks that were free already, and of addresses inside of blocks: "+
				"refused with the driver's own error."),
		f("frees_unknown", count, counter, exact,
			"Frees of addresses that the heap does not know, handed to the driver."),
		f("efficiency", ratio, derived, ofParts,
			"Hits of all kinds / alloc_calls; 0 before the first request.").
			write("w.key(\"efficiency\")", "w.fraction(hits(d), d.AllocCalls)"),
		f("blocks_live", count, gauge, exact,
			"Blocks allocated and not freed, foreign and spilled ones too."),
		f("bytes_asked", bytes, gauge, exact,
			"What the live blocks in segments on the device were asked for with."),
		f("bytes_asked_peak", bytes, peak, exact, "Largest bytes_asked."),
		f("bytes_live", bytes, gauge, exact,
			"Size of the same blocks as they are: rounded up to 512 bytes or more."),
		f("bytes_peak", bytes, peak, exact, "Largest bytes_live."),
		f("bytes_reserved", bytes, gauge, exact,
			"Size of the segments on the device: what the driver has given and not got "+
				"back. It is the sum of bytes_live, the two cached, bytes_pending, bytes_held, "+
				"bytes_private and bytes_lost, less bytes_asleep."),
		f("bytes_reserved_peak", bytes, peak, exact, "Largest bytes_reserved."),
		f("bytes_cached_local", bytes, gauge, exact,
			"Free blocks that one stream may have at once, and no other."),
		f("bytes_cached_global", bytes, gauge, exact, "Free blocks that every stream may have."),
		f("bytes_pending", bytes, gauge, exact,
			"Freed blocks that work of the device may still use."),
		f("bytes_held", bytes, gauge, exact,
			"Freed blocks that wait for the end of a graph capture."),
		f("bytes_private", bytes, gauge, exact,
			"Free blocks of graphs' pools: no others may have them, and they do not go back "+
				"while the pool lives."),
		f("bytes_lost", bytes, gauge, exact,
			"Freed blocks that are never handed out again, since the driver has failed."),
		f("bytes_asleep", bytes, gauge, exact,
			"Live and free blocks of regions that sleep: they have addresses and no memory."),
		f("bytes_foreign", bytes, gauge, exact,
			"Live memory of the driver's own, where its size is known."),
		f("bytes_spilled", bytes, gauge, exact, "Size of the segments in host memory."),
		f("largest_free", bytes, gauge, exact,
			"Size of the largest free block (of the two cached kinds)."),
		f("fragmentation_ratio", ratio, derived, ofParts,
			"1 - largest_free / (bytes_cached_local + bytes_cached_global); 0 when nothing "+
				"is free.").write("w.key(\"fragmentation_ratio\")", "w.deviceFragmentation(d)"),
		f("segments", count, gauge, exact, "Segments that there are now, on the host too."),
		f("splits", count, counter, exact, "Free blocks that were cut in two."),
		f("merges", count, counter, exact, "Neighbouring free blocks that were made one."),
		f("blocks_warmed", count, counter, exact, "Blocks put into the cache by warm-ups."),
		f("spills", count, counter, exact,
			"Segments taken from host memory since the device's was used up."),
		f("bytes_total_spilled", bytes, counter, exact,
			"Size of all of them, those given back too."),
		f("releases", count, counter, exact, "Segments given back to the driver."),
		f("bytes_released", bytes, counter, exact, "Size of those segments."),
		f("driver_refused", count, counter, exact,
			"Times that the driver had no memory for a segment. What is cached is then "+
				"given back, and the driver asked again."),
		f("pressures", count, counter, exact,
			"Times that the cache shrank since the device was nearly full."),
		f("driver_calls", group, nested, plain,
			"Calls that the heap made of the driver.").
			of(driverCalls).
			field("DriverCalls", "DriverCalls").
			tool("map[string]uint64"),
		f("tiers", group, nested, plain,
			"The device's own tiers.").
			of(deviceTiers).
			field("Tiers", "[2]DeviceTier").
			note("Indexed by Device….").
			write("w.deviceTiers(d)").
			tool("deviceTiers"),
		hidden("LeakCount", "uint64", "Leaks in use."),
		f("leaks", list, nested, plain,
			"The first 32 of the blocks that are live at the end of the process, where "+
				"TA_CUDA_LEAKS asks for them; blocks_live is their number.").
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
		f("fast", group, nested, plain, "Memory of the device.").ref(deviceTier).tool("*tier"),
		f("slow", group, nested, plain,
			"Host memory that blocks are spilled to (TA_CUDA_ON_HARDCAP=spill).").
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
	def: "device_tier",
	meaning: "One tier of a device. capacity_violations and the figures after it are " +
		"requests; what was charged is in whole segments.",
	figures: []figure{
		f("alloc_calls", count, counter, exact, "Blocks handed out in the tier."),
		f("free_calls", count, counter, exact, "Those that were freed."),
		f("bytes_current", bytes, gauge, exact,
			"What is charged to the tier: segments, in use or cached, and foreign "+
				"allocations."),
		f("bytes_peak", bytes, peak, exact, "Largest bytes_current."),
		f("bytes_total_alloc", bytes, counter, exact,
			"Rounded size of the blocks that alloc_calls counts."),
		f("bytes_total_freed", bytes, counter, exact,
			"Rounded size of the blocks that free_calls counts."),
		f("simulated_wait_ns", ns, counter, exact,
			"Waiting time that TA_CUDA_BW and TA_CUDA_LAT have charged."),
		f("capacity_soft", limit, setting, plain,
			"The soft cap in force, of the tier and those in same_memory together; 0 when "+
				"there is none."),
		f("capacity_hard", limit, setting, plain,
			"The hard cap in force, the smaller one of TA_CUDA_HARD and TA_CUDA_PROPORTION; "+
				"0 when there is none."),
		f("capacity_violations", count, counter, exact,
			"Requests that would have passed the hard cap even after cached memory was "+
				"given back."),
		f("soft_exceeded", count, counter, exact,
			"Requests that the tier took although they left it over its soft cap."),
		f("routed_slow", count, counter, exact,
			"Requests that went to the slow tier because of a cap."),
		f("refused", count, counter, exact, "Requests that failed because of the hard cap."),
		f("throttle_sleeps", count, counter, exact,
			"Times that a thread slept for simulated_wait_ns."),
		f("throttle_overshoot_ns", ns, counter, exact,
			"Time that those sleeps lasted longer than they should have."),
		f("throttle_bw", rate, setting, plain,
			"Bandwidth of the tier's model, in bytes per second; 0: unlimited."),
		f("throttle_lat_ns", ns, setting, plain,
			"Latency of an allocation in the tier's model; 0: none."),
		f("bytes_per_node", group, gauge, plain,
			"Empty: where spilled pages are only the driver knows.").
			write("w.key(\"bytes_per_node\")", "w.open('{')", "w.close('}')").
			schema(`{"type": "object", "additionalProperties": false}`),
		f("migrations", group, nested, plain,
			"All 0: the library moves no device memory, and the driver moves spilled pages "+
				"by itself.").ref(migrations).write("w.noMigrations()"),
	},
}

var leak = &object{
	title:  "A device's `leaks`",
	goType: "Leak", tool: "leak", method: "leak(l *stats.Leak)", arg: "l",
	comment: []string{"Leak is one live block."},
	def:     "leak",
	meaning: "One live block of device memory.",
	figures: []figure{
		f("address", count, setting, exact, "Device address of the block."),
		f("bytes", bytes, setting, exact, "Size that was asked for."),
		f("stream", count, setting, exact,
			"Handle of the stream that it was allocated for; 0 when for none."),
		f("number", count, setting, exact,
			"Number of the allocation on the device, counted from 1."),
	},
}
