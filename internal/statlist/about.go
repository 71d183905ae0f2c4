package main

// aboutReport describes the report.
const aboutReport = "Report of one process. Keys keep their order. Calls and totals count from " +
	"load; in a forked child from the fork if a report, a log or a live page is wanted or a " +
	"report was made before, else from its parent's load. Gauges " +
	"include blocks from before the fork, so live = total_alloc - total_freed except in a " +
	"forked child."

// aboutExactness says what the descriptions mean by exact.
const aboutExactness = "Figures are exact when no other thread is inside the library while the " +
	"report is written; else each was true around that time. 'Class-rounded' bytes are sizes of " +
	"blocks, not requested sizes. 'Span-granular' peaks are exact for " +
	"committed spans, and an upper bound for the blocks in them."

// aboutPage begins docs/statistics.md.
var aboutPage = []string{
	"The keys of the [report](tool.md#the-report); [stats.schema.json](stats.schema.json) has a " +
		"sentence on each.",
	aboutReport,
	aboutExactness,
	"Counters never fall; peaks are the largest values of gauges. " +
		"`bytes_…` are bytes, `…_ns` nanoseconds, `…_ratio` fractions of 1, and figures are " +
		"exact, unless parentheses say otherwise. A `TA_` variable in parentheses is the setting " +
		"that the key shows ([configuration.md](configuration.md)).",
}
