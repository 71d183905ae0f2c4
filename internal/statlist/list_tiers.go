package main

var hostTiers = &object{
	title: "`tiers`",
	tool:  "hostTiers",
	figures: []figure{
		f("fast", group, nested, plain, "The fastest memory.").obvious().ref(tier).tool("*tier"),
		f("normal", group, nested, plain,
			"The default memory.").obvious().
			ref(tier).
			tool("*tier"),
		f("slow", group, nested, plain, "The slowest memory.").obvious().ref(tier).tool("*tier"),
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
	meaning: "One memory tier. A block counts for its span's tier. alloc_calls, free_calls, " +
		"bytes_total_alloc and bytes_total_freed go with a span that moves, so they may fall. " +
		"Bytes live in the tier = bytes_total_alloc - bytes_total_freed = bytes_entered - " +
		"bytes_left (in a forked child: of blocks from after the fork, until older ones move). " +
		"Requests over a cap count by spans: runs of blocks of one class, or large blocks. A " +
		"request sent to a slower tier counts there again. A large block over two tiers counts " +
		"in its first byte's tier, its bytes where they are.",
	figures: []figure{
		f("alloc_calls", count, gauge, exact,
			"Blocks allocated in the tier's spans.").obvious(),
		f("free_calls", count, gauge, exact, "Blocks freed in those spans.").obvious(),
		f("bytes_current", bytes, gauge, inSpans,
			"Memory charged: handed out or cached, not purged."),
		f("bytes_peak", bytes, peak, spanGranular, "Largest bytes_current."),
		f("bytes_total_alloc", bytes, gauge, inClasses,
			"Size of the blocks of alloc_calls.").obvious(),
		f("bytes_total_freed", bytes, gauge, inClasses,
			"Size of the blocks of free_calls.").obvious(),
		f("blocks_entered", count, counter, exact,
			"Blocks allocated in the tier or moved into it."),
		f("blocks_left", count, counter, exact,
			"Blocks freed in the tier or moved out of it."),
		f("bytes_entered", bytes, counter, inClasses,
			"Size of the blocks of blocks_entered.").obvious(),
		f("bytes_left", bytes, counter, inClasses,
			"Size of the blocks of blocks_left.").obvious(),
		f("simulated_wait_ns", ns, counter, exact,
			"Time charged by the throttle."),
		f("capacity_soft", limit, setting, plain,
			"The soft cap.").obvious(),
		f("capacity_hard", limit, setting, plain,
			"The hard cap, for same_memory too.").obvious(),
		f("kernel_moved_in", bytes, gauge, sampled,
			"Memory of other tiers that the kernel brought to this tier's nodes. A soft cap "+
				"counts it. 0 unless the tier has only a soft cap and NUMA balancing is on."),
		f("kernel_moved_out", bytes, gauge, sampled,
			"Memory of this tier on other nodes; a soft cap does not count it."),
		f("bytes_hot", bytes, gauge, sampled,
			"With TA_ON_SOFTCAP=follow: memory touched more often, per page and second, than the "+
				"mean."),
		f("bytes_cold", bytes, gauge, sampled,
			"With TA_ON_SOFTCAP=follow: other memory sampled twice."),
		f("capacity_violations", count, counter, exact,
			"Requests that did not fit under the hard cap, even after cached memory was "+
				"returned."),
		f("soft_exceeded", count, counter, exact,
			"Requests served over the soft cap.").obvious(),
		f("rerouted", count, counter, exact,
			"Requests sent to a slower tier, whole or in part, because of the soft cap."),
		f("routed_slow", count, counter, exact,
			"Requests sent to a slower tier, whole or in part, because of the hard cap."),
		f("refused", count, counter, exact,
			"Requests refused because of the hard cap.").obvious(),
		f("throttle_sleeps", count, counter, exact,
			"Times that a thread slept for simulated_wait_ns.").obvious(),
		f("throttle_overshoot_ns", ns, counter, exact,
			"Time that sleeps lasted too long.").obvious(),
		f("throttle_bw", rate, setting, plain,
			"Bandwidth of the tier's model.").obvious(),
		f("throttle_burst", bytes, setting, plain,
			"Bytes that pass before the bandwidth counts.").obvious(),
		f("throttle_lat_ns", ns, setting, plain,
			"Latency of an allocation in the model.").obvious(),
		f("hugepages", word, setting, plain,
			"Page size requested (TA_HUGEPAGES).").
			field("HugePagesWanted", "uint64").
			coded("names.huge", 7).
			note("A config.Huge….").
			words("auto", "off", "thp", "2M", "1G"),
		f("hugepage_fallbacks", count, counter, exact,
			"Mappings with ordinary pages, for lack of huge ones.").obvious().
			field("HugeFallbacks", "uint64"),
		f("nodes", list, setting, plain,
			"NUMA nodes of the tier; empty when simulated.").obvious().
			field("TierNodes", "uint64").
			note("A bit for each.").
			write("w.tierNodes(t)").
			tool("[]int").
			schema(`{"type": "array", "items": {"$ref": "#/$defs/node"}}`),
		f("same_memory", list, setting, plain,
			"Other tiers on the same nodes. The caps hold for all together.").
			write("w.sameMemory(r, tier)").
			tool("[]string").
			schema(`{"type": "array", "items": {"enum": ["fast", "normal", "slow"]}}`),
		f("bytes_per_node", group, gauge, plain,
			"Touched memory on each NUMA node, by number.").obvious().
			typed("[NodeMax]uint64").
			write("w.bytesPerNode(r, t)").
			tool("map[string]uint64").
			schema(`{"type": "object", "propertyNames": {"pattern": "^(0|[1-9][0-9]*)$"}, "additionalProperties": {"$ref": "#/$defs/bytes"}}`),
		f("migrations", group, nested, plain,
			"Memory moved out of the tier.").obvious().
			ref(migrations).field("Migrations", "Migrations"),
	},
}

var migrations = &object{
	title:  "A tier's `migrations`",
	goType: "Migrations", tool: "migrations", method: "migrations(m *stats.Migrations)", arg: "m",
	comment: []string{"Migrations counts what was moved out of a tier."},
	def:     "migrations",
	meaning: "Memory moved out of a tier.",
	figures: []figure{
		f("attempted", count, counter, exact,
			"Attempts to move memory out.").obvious(),
		f("moved_pages", count, counter, exact,
			"Kernel pages moved.").obvious(),
		f("failed_pages", count, counter, exact,
			"Kernel pages left.").obvious(),
	},
}
