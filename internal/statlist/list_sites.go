package main

import "tieralloc/internal/config"

var site = &object{
	title:  "`sites`",
	goType: "Site", tool: "site", method: "site(s *stats.Site)", arg: "s",
	comment: []string{
		"Site is a stack that allocated, with estimates for all of its blocks (package profile).",
	},
	def: "site",
	meaning: "One stack that allocated, in all threads, tiers and hints. Figures are estimates " +
		"by the heap profile's samples (docs/profiles.md), in requested sizes.",
	figures: []figure{
		f("bytes_total_alloc", bytes, counter, sampled,
			"Size of all blocks allocated.").obvious(),
		f("blocks_total_alloc", count, counter, sampled,
			"Blocks allocated.").obvious(),
		f("blocks_total_freed", count, counter, sampled,
			"Blocks freed.").obvious(),
		f("bytes_live", bytes, gauge, sampled,
			"Size of the blocks allocated and not freed.").obvious(),
		f("blocks_live", count, gauge, sampled, "Blocks allocated and not freed.").obvious(),
		f("bytes_peak", bytes, peak, sampled,
			"bytes_live when the process had most in use, within a hundredth."),
		f("size_median", bytes, derived, sampled, "Median size of the blocks allocated.").obvious(),
		f("lifetime_median_ns", ns, derived, sampled,
			"Median time from allocation to free, within 64 ns; null without frees.").
			schema(`{"type": ["integer", "null"], "minimum": 0, "maximum": 18446744073709551615}`).
			write("w.lifetime(s)").
			field("LifetimeMedianNs", "uint64").
			tool("*uint64"),
		f("hint", word, setting, plain, "Hint of most of the bytes.").
			config("HintWord", config.HintWord, config.HintCount).
			note("A config.Hint…."),
		f("tier", word, setting, plain, "Tier that most of the bytes were allocated in.").
			config("TierWord", config.TierWord, config.TierCount).
			note("A config.Tier…."),
		hidden("StackLen", "uint64", "Of Stack; at most StackMax."),
		f("stack", list, setting, plain,
			"Up to 16 calls, innermost first: FILE+0xADDRESS for addr2line, 0xADDRESS outside "+
				"files, FILE:LINE FUNCTION of Python.").
			typed("[StackMax]Frame").
			write("w.stack(s)").
			schema(`{"type": "array", "items": {"type": "string", "pattern": "0x[0-9a-f]+$|:[0-9]+ "}}`).
			tool("[]string"),
	},
}
