package main

var hostTiers = &object{
	title: "`tiers`",
	tool:  "hostTiers",
	figures: []figure{
		f("fast", group, nested, plain, "The fastest memory.").ref(tier).tool("*tier"),
		f("normal", group, nested, plain,
			"Where memory comes from unless something else is asked for.").
			ref(tier).
			tool("*tier"),
		f("slow", group, nested, plain, "The slowest memory.").ref(tier).tool("*tier"),
	},
}

var tier = &object{
	title:  "A tier: `tiers.fast` and so on",
	goType: "Tier", tool: "tier", method: "tier(r *stats.Report, tier uint)", arg: "t",
	begin: "t := &r.Tiers[tier&3]",
	comment: []string{
		"Tier is one memory tier. A block counts for the tier that its span is in now.",
		"",
		"\tBytesTotalAlloc - BytesTotalFreed = BytesEntered - BytesLeft = bytes live in the tier",
		"",
		"In a forked child these are the bytes of the blocks allocated since the fork, less " +
			"those freed. What has entered and left never falls.",
	},
	def: "tier",
	meaning: "One memory tier. A block counts for the tier that its span is in now: a span " +
		"that moves takes its counts along, what was freed in it too. So bytes_total_alloc " +
		"- bytes_total_freed = bytes live in the tier (in a forked child: of blocks from " +
		"after the fork), and both may fall. bytes_entered - bytes_left is the same, and " +
		"neither falls: there a block that moves leaves the one tier and enters the other. " +
		"(In a forked child a figure that blocks from before the fork would bring below 0 " +
		"as they move is 0, and these equations then do not hold.) Capacity is decided by " +
		"requests, each for a span: a run of blocks of one class, or one large block. One " +
		"that is sent on to a slower tier is a request there as well. A large block over " +
		"two tiers counts as a block for the tier of its first byte, with its bytes for the " +
		"tiers that they are in.",
	figures: []figure{
		f("alloc_calls", count, gauge, exact,
			"Blocks allocated in spans that are in the tier now."),
		f("free_calls", count, gauge, exact, "Blocks freed in those spans."),
		f("bytes_current", bytes, gauge, inSpans,
			"Bytes of the spans charged to the tier now: handed out or cached, and not "+
				"purged."),
		f("bytes_peak", bytes, peak, spanGranular, "Largest bytes_current."),
		f("bytes_total_alloc", bytes, gauge, inClasses,
			"Size of the blocks that alloc_calls counts."),
		f("bytes_total_freed", bytes, gauge, inClasses,
			"Size of the blocks that free_calls counts."),
		f("blocks_entered", count, counter, exact,
			"Blocks that were allocated in the tier or moved into it."),
		f("blocks_left", count, counter, exact,
			"Blocks that were freed in the tier or moved out of it."),
		f("bytes_entered", bytes, counter, inClasses,
			"Size of the blocks that blocks_entered counts."),
		f("bytes_left", bytes, counter, inClasses, "Size of the blocks that blocks_left counts."),
		f("simulated_wait_ns", ns, counter, exact,
			"Waiting time that the tier's throttle has charged, for allocations and for "+
				"bytes moved out of it and into it."),
		f("capacity_soft", limit, setting, plain, "The soft cap in force; 0 when there is none."),
		f("capacity_hard", limit, setting, plain,
			"The hard cap in force, of the tier and those in same_memory together; 0 when "+
				"there is none."),
		f("kernel_moved_in", bytes, gauge, sampled,
			"Memory of tiers on other nodes that the kernel has moved to this tier's nodes, "+
				"at most a second old. It counts against a soft cap. 0 unless a soft cap alone "+
				"governs some tier and the kernel's NUMA balancing is on."),
		f("kernel_moved_out", bytes, gauge, sampled,
			"Memory of this tier that is on other nodes, as kernel_moved_in. A soft cap "+
				"does not count it."),
		f("bytes_hot", bytes, gauge, sampled,
			"With TA_ON_SOFTCAP=follow: memory that the last sample found hot, that is touched "+
				"more often per page and second than the mean page of all memory whose use is "+
				"known. 0 where the process does not follow."),
		f("bytes_cold", bytes, gauge, sampled,
			"The rest of the tier's memory whose use is known. Memory that was not sampled "+
				"twice is in neither."),
		f("capacity_violations", count, counter, exact,
			"Requests that would have passed the hard cap even after cached memory was "+
				"given back."),
		f("soft_exceeded", count, counter, exact,
			"Requests that the tier took although they left it over its soft cap."),
		f("rerouted", count, counter, exact,
			"Requests that went to a slower tier, all of them or but for a first part, "+
				"because of the soft cap."),
		f("routed_slow", count, counter, exact,
			"Requests that went to a slower tier, all of them or but for a first part, "+
				"because of the hard cap."),
		f("refused", count, counter, exact, "Requests that failed because of the hard cap."),
		f("throttle_sleeps", count, counter, exact,
			"Times that a thread slept for simulated_wait_ns; 0 unless policy.throttle is "+
				"sleep."),
		f("throttle_overshoot_ns", ns, counter, exact,
			"Time that those sleeps lasted longer than they should have."),
		f("throttle_bw", rate, setting, plain,
			"Bandwidth of the tier's model, in bytes per second; 0: unlimited."),
		f("throttle_burst", bytes, setting, plain,
			"Bytes that may be allocated at once before the bandwidth counts; 0 without a "+
				"bandwidth."),
		f("throttle_lat_ns", ns, setting, plain,
			"Latency of an allocation in the tier's model; 0: none."),
		f("hugepages", word, setting, plain,
			"Page size asked for (TA_HUGEPAGES). auto: huge pages by measure where the tier has "+
				"neither a hard cap nor nodes of its own.").
			field("HugePagesWanted", "uint64").
			coded("hugeNames", 7).
			note("A config.Huge….").
			words("auto", "off", "thp", "2M", "1G"),
		f("hugepage_fallbacks", count, counter, exact,
			"Mappings that had to do with ordinary pages, for the kernel had no huge ones.").
			field("HugeFallbacks", "uint64"),
		f("nodes", list, setting, plain,
			"NUMA nodes of the tier; empty when it is simulated.").
			field("TierNodes", "uint64").
			note("A bit for each.").
			write("w.tierNodes(t)").
			tool("[]int").
			schema(`{"type": "array", "items": {"$ref": "#/$defs/node"}}`),
		f("same_memory", list, setting, plain,
			"The other tiers on the same nodes. They are one account: the caps of each hold "+
				"for all of them together.").
			write("w.sameMemory(r, tier)").
			tool("[]string").
			schema(`{"type": "array", "items": {"enum": ["fast", "normal", "slow"]}}`),
		f("bytes_per_node", group, gauge, plain,
			"Memory of the tier on each NUMA node, by node number; every entry of nodes has "+
				"one. As the kernel answered when the report was written: only pages that were "+
				"touched count.").
			typed("[NodeMax]uint64").
			write("w.bytesPerNode(r, t)").
			tool("map[string]uint64").
			schema(`{"type": "object", "propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}, "additionalProperties": {"$ref": "#/$defs/bytes"}}`),
		f("migrations", group, nested, plain,
			"Memory moved out of the tier.").ref(migrations).field("Migrations", "Migrations"),
	},
}

var migrations = &object{
	title:  "A tier's `migrations`",
	goType: "Migrations", tool: "migrations", method: "migrations(m *stats.Migrations)", arg: "m",
	comment: []string{"Migrations counts what was moved out of a tier."},
	def:     "migrations",
	meaning: "Memory moved out of a tier.",
	figures: []figure{
		f("attempted", count, counter, exact, "Attempts to move memory out of the tier."),
		f("moved_pages", count, counter, exact, "Kernel pages that moved."),
		f("failed_pages", count, counter, exact, "Kernel pages that the kernel did not move."),
	},
}
