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
		f("bytes_mapped", bytes, gauge, exact, "Address space the heap holds, used or not."),
		f("bytes_committed", bytes, gauge, inSpans,
			"Mapped memory that is handed out or cached and was not purged since: what the "+
				"kernel may have resident for the heap."),
		f("bytes_live", bytes, gauge, inClasses,
			"Size of the blocks allocated and not freed. What programs asked for is less: "+
				"sizes are rounded up to a class before they are counted."),
		f("bytes_peak", bytes, peak, spanGranular,
			"Largest bytes_committed. Spans count whole and cached ones count, so it is "+
				"above the largest bytes_live."),
		f("bytes_cached", bytes, gauge, inSpans,
			"Committed memory that holds no block and waits for reuse or purge."),
		f("bytes_total_alloc", bytes, counter, inClasses, "Size of all blocks ever allocated."),
		f("bytes_total_freed", bytes, counter, inClasses, "Size of all blocks ever freed."),
		f("blocks_live", count, gauge, exact, "Blocks allocated and not freed."),
		f("blocks_total_alloc", count, counter, exact, "Blocks ever allocated."),
		f("blocks_total_freed", count, counter, exact, "Blocks ever freed."),
		f("fragmentation_ratio", ratio, derived, ofParts,
			"1 - bytes_live / bytes_committed: the part of the committed memory that no "+
				"block has. 0 when nothing is committed.").
			write("w.key(\"fragmentation_ratio\")", "w.fraction(unused(h), h.BytesCommitted)"),
		f("cross_thread_frees", count, counter, exact,
			"Blocks freed by another thread than the one whose heap they belong to."),
		f("thread_heaps", count, gauge, exact, "Thread heaps that a running thread owns."),
		f("thread_heaps_abandoned", count, gauge, exact,
			"Thread heaps whose thread has ended and that wait to be adopted."),
		f("segments", count, gauge, exact, "Segments mapped now."),
		f("spans_free", count, gauge, exact, "Spans in segments that are not in use."),
		f("purges", count, counter, exact, "Times that memory was given back to the kernel."),
		f("bytes_purged", bytes, counter, inPages,
			"Memory ever given back to the kernel by purges."),
		f("huge_blocks_live", count, gauge, exact,
			"Live blocks that have a mapping of their own; they are in blocks_live too."),
		f("huge_bytes_live", bytes, gauge, exact,
			"Size of those blocks; it is in bytes_live too."),
		f("huge_cache_hits", count, counter, exact,
			"Blocks with a mapping of their own that were served from cached mappings."),
		f("huge_cache_misses", count, counter, exact,
			"Blocks with a mapping of their own that needed a new mapping."),
		f("bytes_hugepages_advised", bytes, counter, exact,
			"Mappings for which huge pages were asked by measure (TA_HUGEPAGES=auto)."),
		f("zero_blocks_live", count, gauge, exact,
			"With TA_SECURE=1: live blocks of 0 bytes, of no size class; they are in "+
				"blocks_live too."),
		f("quarantine_blocks", count, gauge, exact,
			"With TA_SECURE=1: freed blocks that are kept from reuse; they count as freed."),
		f("quarantine_bytes", bytes, gauge, inClasses, "Size of those blocks."),
		f("unguarded_blocks", count, counter, exact,
			"With TA_SECURE=1: large blocks that were made without guards, or lost them, "+
				"because mappings or addresses were scarce."),
		f("size_classes", list, nested, plain,
			"The size classes that were ever used, smallest first.").
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
		f("size", bytes, setting, exact, "Size of a block of the class."),
		f("blocks_live", count, gauge, exact, "Blocks allocated and not freed."),
		f("blocks_total_alloc", count, counter, exact, "Blocks ever allocated."),
		f("blocks_total_freed", count, counter, exact, "Blocks ever freed."),
		f("pages", count, gauge, exact,
			"The allocator's pages (runs of blocks of one class) that the class has now."),
		f("bytes_pages", bytes, gauge, exact, "Memory of those pages, free blocks included."),
	},
}
