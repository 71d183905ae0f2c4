package main

// aboutReport describes the report.
const aboutReport = "Report of one process, as ta_stats_json and TA_STATS_FILE give it. Its keys " +
	"keep " +
	"their order. Calls and totals count from the load of the library; in a child that is " +
	"forked where a report, a log or a live page is wanted, or after one was made, from the " +
	"fork, in another child from the parent's start. What is live, mapped, committed or " +
	"cached is all that is, blocks from before the fork included. So live = total_alloc - " +
	"total_freed, except in a forked child."

// aboutExactness says what the descriptions mean by exact.
const aboutExactness = "Exactness. 'Exact' holds when the other threads are quiescent, that is " +
	"inside no " +
	"call of the library, while the report is written; with threads at work each such " +
	"figure is one that was true around that time, and sums of several need not add up. " +
	"'Class-rounded' bytes are the sizes of blocks, not the sizes asked for, which the " +
	"fast path does not see. 'Span-granular' figures, the peaks, are taken only when a " +
	"span is taken or given back: they are exact for committed spans, and an upper bound " +
	"for the blocks in them."

// aboutPage begins docs/statistics.md.
var aboutPage = []string{
	"This page lists every key of the report, which `ta_stats_json`, `TA_STATS_FILE` and " +
		"`tierallocctl stats --json` give. [stats.schema.json](stats.schema.json) says the same " +
		"to " +
		"programs, and the structures of `tieralloc.h` have some of the figures under the same " +
		"names.",
	aboutReport,
	aboutExactness,
	"The kinds of figures:",
}

// aboutKinds explains the kinds, for the same page.
var aboutKinds = [][2]string{
	{kindNames[gauge], "what is now. It rises and falls."},
	{kindNames[counter], "what happened so far. It never falls."},
	{kindNames[peak], "the largest value of a gauge so far."},
	{kindNames[derived], "computed from other figures when the report is written."},
	{kindNames[setting], "a setting in force, or what tells one thing from another."},
}
