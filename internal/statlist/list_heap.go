package main

var heap = &object{
	title:  "`heap`",
	goType: "Heap", tool: "heap", method: "heap(h *stats.Heap)", arg: "h",
	comment: []string{
		"Heap is the CPU heap as a whole.",
		"",
		"\tBlocksLive = BlocksTotalAlloc - BlocksTotalFreed",
		"\tBytesLive  = BytesTotalAlloc - BytesTotalFreed",
		"\tBytesLive <= BytesCommitted <= BytesMapped",
		"",
		"A forked child counts totals from the fork and has its parent's blocks too, so the " +
			"first two " +
			"do not hold there.",
	},
	figures: []figure{
		f("bytes_mapped", bytes, gauge, exact,
			"Address space of the heap, used or not."),
		f("bytes_committed", bytes, gauge, inSpans,
			"Memory handed out or cached, not purged."),
		f("bytes_live", bytes, gauge, inClasses,
			"Size of the live blocks.").obvious(),
		f("bytes_peak", bytes, peak, spanGranular,
			"Largest bytes_committed."),
		f("bytes_cached", bytes, gauge, inSpans,
			"Committed memory without blocks."),
		f("bytes_total_alloc", bytes, counter, inClasses,
			"Size of the blocks allocated.").obvious(),
		f("bytes_total_freed", bytes, counter, inClasses,
			"Size of the blocks freed.").obvious(),
		f("blocks_live", count, gauge, exact, "Blocks allocated and not freed.").obvious(),
		f("blocks_total_alloc", count, counter, exact,
			"Blocks allocated.").obvious(),
		f("blocks_total_freed", count, counter, exact,
			"Blocks freed.").obvious(),
		f("fragmentation_ratio", ratio, derived, ofParts,
			"1 - bytes_live / bytes_committed; 0 when nothing is committed.").
			write("w.key(\"fragmentation_ratio\")", "w.fraction(unused(h), h.BytesCommitted)"),
		f("cross_thread_frees", count, counter, exact,
			"Blocks freed by a thread other than their heap's owner.").obvious(),
		f("thread_heaps", count, gauge, exact,
			"Thread heaps of running threads.").obvious(),
		f("thread_heaps_abandoned", count, gauge, exact,
			"Heaps of ended threads, not adopted yet."),
		f("segments", count, gauge, exact,
			"Segments mapped.").obvious(),
		f("spans_free", count, gauge, exact,
			"Spans not in use.").obvious(),
		f("purges", count, counter, exact,
			"Times that memory was returned to the kernel."),
		f("bytes_purged", bytes, counter, inPages,
			"Memory purged.").obvious(),
		f("huge_blocks_live", count, gauge, exact,
			"Live blocks with a mapping of their own, also in blocks_live."),
		f("huge_bytes_live", bytes, gauge, exact,
			"Their size, also in bytes_live.").obvious(),
		f("huge_cache_hits", count, counter, exact,
			"Huge blocks served from cached mappings.").obvious(),
		f("huge_cache_misses", count, counter, exact,
			"Huge blocks that needed a new mapping.").obvious(),
		f("bytes_hugepages_advised", bytes, counter, exact,
			"Mappings for which TA_HUGEPAGES=auto advised huge pages.").obvious(),
		f("pressures", count, counter, exact,
			"Times that memory became short: near the control group's limit, by stalls, or for "+
				"another process of TA_GROUP."),
		f("bytes_pressure", bytes, counter, inPages,
			"Unused memory returned because memory was short."),
		f("zero_blocks_live", count, gauge, exact,
			"With TA_SECURE=1: live blocks of 0 bytes, in no size class."),
		f("quarantine_blocks", count, gauge, exact,
			"With TA_SECURE=1: freed blocks kept from reuse."),
		f("quarantine_bytes", bytes, gauge, inClasses,
			"Their size.").obvious(),
		f("unguarded_blocks", count, counter, exact,
			"With TA_SECURE=1: large blocks without guards, for lack of addresses or mappings."),
		f("size_classes", list, nested, plain,
			"The size classes used, smallest first.").obvious().
			list(sizeClass).
			typed("[ClassMax]Class").
			write("w.classes(h)").
			tool(""),
	},
}

var sizeClass = &object{
	title:  "`heap.size_classes`",
	goType: "Class", method: "class(c *stats.Class)", arg: "c",
	comment: []string{
		"Class is one size class. One that never had a block or a page is left out of the " +
			"report. (A " +
			"forked child may free the last of those it inherited: then only BlocksTotalFreed " +
			"tells.)",
	},
	def:     "size_class",
	meaning: "One size class.",
	figures: []figure{
		f("size", bytes, setting, exact,
			"Size of a block.").obvious(),
		f("blocks_live", count, gauge, exact, "Blocks allocated and not freed.").obvious(),
		f("blocks_total_alloc", count, counter, exact,
			"Blocks allocated.").obvious(),
		f("blocks_total_freed", count, counter, exact,
			"Blocks freed.").obvious(),
		f("pages", count, gauge, exact,
			"Its pages (runs of blocks of one class). The first blocks of a thread lie in one of "+
				"class 16."),
		f("bytes_pages", bytes, gauge, exact,
			"Memory of those pages, free blocks included, and of blocks in a page of class 16."),
	},
}
