package main

// meaning tells a person what a variable is for.
type meaning struct {
	placeholder string // stands for the value in help texts
	text        string
}

// meanings has an entry for each variable of the library; a test holds it to that.
var meanings = map[string]meaning{
	"TA_DISABLE":        {"0|1", "1: as if the library were absent"},
	"TA_INTERPOSE":      {"0|1", "0: malloc and its like go to libc; ta_* still serves"},
	"TA_STRICT":         {"0|1", "1: a bad value ends the program with status 78"},
	"TA_STATS_FILE":     {"PATH", "the file that the report is written to at exit"},
	"TA_STATS_LIVE":     {"0|1|PATH", "live figures for tierallocctl stats and top; 1: in /dev/shm"},
	"TA_LOG":            {"LEVEL", "JSON lines of events; starts the Go runtime"},
	"TA_LOG_FILE":       {"PATH", "the file that the log is written to"},
	"TA_PURGE_DELAY":    {"TIME", "how long freed memory is kept for reuse"},
	"TA_USE_LIBNUMA":    {"0|1", "0: tiers are simulated on any machine"},
	"TA_NUMA_BALANCING": {"auto|0|1", "whether the kernel's NUMA balancing moves memory of tiers with nodes; auto: without a hard cap"},
	"TA_ON_SOFTCAP":     {"WORD", "over a soft cap: reroute, warn or demote (by age, blind to use)"},
	"TA_ON_HARDCAP":     {"WORD", "at a hard cap: route_slow or fail"},
	"TA_DEFAULT_HINT":   {"HINT", "hint where no rule matches"},
	"TA_RULES":          {"RULES", "hints by size, thread, program and library"},
	"TA_THROTTLE":       {"WORD", "account: count the waits of throttled tiers; sleep: sleep them"},
	"TA_MODEL":          {"WORD", "costs of the tiers by name: off or cxl"},
	"TA_HUGEPAGES":      {"WORDS", "page size of the tiers' mappings"},
	"TA_MIGRATE_BW":     {"RATE", "bytes per second that demotion and promotion may move"},
	"TA_SECURE":         {"0|1|1,CHECK=warn", "1: hardened heap: detects overflows and uses after free"},
	"TA_BACKGROUND":     {"0|1", "1: a thread of the library moves and purges memory; starts the Go runtime"},

	"TA_FAST_SOFT":  {"SIZE", "soft cap of FAST"},
	"TA_FAST_HARD":  {"SIZE", "hard cap of FAST"},
	"TA_FAST_BW":    {"RATE", "bandwidth that FAST is throttled to, in bytes per second"},
	"TA_FAST_BURST": {"SIZE", "bytes of FAST that pass unthrottled at once"},
	"TA_FAST_LAT":   {"TIME", "time charged for each allocation in FAST"},
	"TA_NODE_FAST":  {"NODES", "memory nodes of FAST"},

	"TA_NORMAL_SOFT":  {"SIZE", "soft cap of NORMAL"},
	"TA_NORMAL_HARD":  {"SIZE", "hard cap of NORMAL"},
	"TA_NORMAL_BW":    {"RATE", "bandwidth that NORMAL is throttled to, in bytes per second"},
	"TA_NORMAL_BURST": {"SIZE", "bytes of NORMAL that pass unthrottled at once"},
	"TA_NORMAL_LAT":   {"TIME", "time charged for each allocation in NORMAL"},
	"TA_NODE_NORMAL":  {"NODES", "memory nodes of NORMAL"},

	"TA_SLOW_SOFT":  {"SIZE", "soft cap of SLOW"},
	"TA_SLOW_HARD":  {"SIZE", "hard cap of SLOW"},
	"TA_SLOW_BW":    {"RATE", "bandwidth that SLOW is throttled to, in bytes per second"},
	"TA_SLOW_BURST": {"SIZE", "bytes of SLOW that pass unthrottled at once"},
	"TA_SLOW_LAT":   {"TIME", "time charged for each allocation in SLOW"},
	"TA_NODE_SLOW":  {"NODES", "memory nodes of SLOW"},

	"TA_CUDA":              {"0|1", "0: all CUDA calls pass untouched"},
	"TA_CUDA_REUSE":        {"WORD", "sync: cudaFree waits for the device; event: it returns at once"},
	"TA_CUDA_SUBALLOC":     {"WORD", "small: blocks below 1 MiB share segments; all: larger ones too"},
	"TA_CUDA_ON_HARDCAP":   {"WORD", "at the hard cap of a device: fail, or spill to host memory"},
	"TA_CUDA_SOFT":         {"SIZE", "soft cap of each device: its cache shrinks above it"},
	"TA_CUDA_HARD":         {"SIZE", "hard cap of each device"},
	"TA_CUDA_SPILL_HARD":   {"SIZE", "host memory that each device may spill to at most"},
	"TA_CUDA_PROPORTION":   {"PART", "hard cap as a part of the device's memory; the smaller one holds"},
	"TA_CUDA_SEGMENT_SIZE": {"SIZE", "size of shared segments, for blocks from 1 MiB on"},
	"TA_CUDA_CACHE_LIMIT":  {"SIZE", "free device memory kept in each context, at most"},
	"TA_CUDA_WARMUP":       {"LIST", "blocks to have ready before the first request"},
	"TA_CUDA_ZERO":         {"0|1", "1: memory fresh from the driver is cleared"},
	"TA_CUDA_BW":           {"RATE", "bandwidth that each device is throttled to, in bytes per second"},
	"TA_CUDA_LAT":          {"TIME", "time charged for each allocation on a device"},
	"TA_CUDA_TRACE":        {"PATH", "the file that each allocation and free is written to, as RMM's replay reads it"},
	"TA_CUDA_LEAKS":        {"0|1", "1: the report lists the blocks that are live at exit"},
	"TA_CUDA_MANAGED":      {"0|1", "1: device memory is managed memory that prefers the place that the hint names"},
}
