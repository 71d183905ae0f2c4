package main

// meaning tells a person what a variable is for.
type meaning struct {
	placeholder string // stands for the value in help texts
	text        string
}

// meanings has an entry for each variable of the library; a test holds it to that.
var meanings = map[string]meaning{
	"TA_DISABLE":      {"0|1", "1: as if the library were not there"},
	"TA_INTERPOSE":    {"0|1", "0: malloc and its kin go to libc, ta_* still serves"},
	"TA_STRICT":       {"0|1", "1: a bad value ends the program with status 78"},
	"TA_STATS_FILE":   {"PATH", "where the report is written at exit"},
	"TA_STATS_LIVE":   {"0|1|PATH", "live figures for tierallocctl stats and top; 1: in /dev/shm"},
	"TA_LOG":          {"LEVEL", "JSON lines of events; starts the Go runtime"},
	"TA_LOG_FILE":     {"PATH", "where they go"},
	"TA_PURGE_DELAY":  {"TIME", "how long freed memory is kept for reuse"},
	"TA_USE_LIBNUMA":  {"0|1", "0: tiers are simulated even where there are nodes"},
	"TA_ON_SOFTCAP":   {"WORD", "over a soft cap: reroute, warn or demote"},
	"TA_ON_HARDCAP":   {"WORD", "at a hard cap: route_slow or fail"},
	"TA_DEFAULT_HINT": {"HINT", "hint for what no rule decides"},
	"TA_RULES":        {"RULES", "hints by size, thread, program and library"},
	"TA_THROTTLE":     {"WORD", "account: count the waits of slow tiers; sleep: wait"},
	"TA_HUGEPAGES":    {"WORDS", "page size of the tiers' mappings"},
	"TA_MIGRATE_BW":   {"RATE", "bytes per second that demotion and promotion may move"},
	"TA_BACKGROUND":   {"0|1", "1: a thread of the library's moves memory between tiers"},

	"TA_FAST_SOFT":  {"SIZE", "soft cap of FAST"},
	"TA_FAST_HARD":  {"SIZE", "hard cap of FAST"},
	"TA_FAST_BW":    {"RATE", "bandwidth that FAST is throttled to, in bytes per second"},
	"TA_FAST_BURST": {"SIZE", "bytes of FAST that go unthrottled at once"},
	"TA_FAST_LAT":   {"TIME", "time charged for each allocation in FAST"},
	"TA_NODE_FAST":  {"NODES", "memory nodes of FAST"},

	"TA_NORMAL_SOFT":  {"SIZE", "soft cap of NORMAL"},
	"TA_NORMAL_HARD":  {"SIZE", "hard cap of NORMAL"},
	"TA_NORMAL_BW":    {"RATE", "bandwidth that NORMAL is throttled to, in bytes per second"},
	"TA_NORMAL_BURST": {"SIZE", "bytes of NORMAL that go unthrottled at once"},
	"TA_NORMAL_LAT":   {"TIME", "time charged for each allocation in NORMAL"},
	"TA_NODE_NORMAL":  {"NODES", "memory nodes of NORMAL"},

	"TA_SLOW_SOFT":  {"SIZE", "soft cap of SLOW"},
	"TA_SLOW_HARD":  {"SIZE", "hard cap of SLOW"},
	"TA_SLOW_BW":    {"RATE", "bandwidth that SLOW is throttled to, in bytes per second"},
	"TA_SLOW_BURST": {"SIZE", "bytes of SLOW that go unthrottled at once"},
	"TA_SLOW_LAT":   {"TIME", "time charged for each allocation in SLOW"},
	"TA_NODE_SLOW":  {"NODES", "memory nodes of SLOW"},
}
