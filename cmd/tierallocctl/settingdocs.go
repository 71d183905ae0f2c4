package main

import "tieralloc/internal/config"

// A settingDoc documents a variable.
type settingDoc struct {
	placeholder string // stands for the value in help texts
	text        string
	example     string // a value, quoted for a shell
}

// docOf returns the documentation of a variable of the library. A test checks that all have one.
func docOf(name string) settingDoc {
	for i := range config.TierCount {
		if d, ok := tierDocs(tierNames[i])[name]; ok {
			return d
		}
	}
	return settingDocs[name]
}

// tierDocs documents the variables of a tier.
func tierDocs(tier string) map[string]settingDoc {
	return map[string]settingDoc{
		prefix + tier + "_SOFT": {"SIZE", "soft cap of " + tier, "80%"},
		prefix + tier + "_HARD": {"SIZE", "hard cap of " + tier, "8G"},
		prefix + tier + "_BW": {"RATE",
			"bandwidth that " + tier + " is throttled to, in bytes per second", "5G"},
		prefix + tier + "_BURST": {"SIZE",
			"bytes of " + tier + " that pass unthrottled at once", "64M"},
		prefix + tier + "_LAT":  {"TIME", "time charged for each allocation in " + tier, "300ns"},
		prefix + "NODE_" + tier: {"NODES", "memory nodes of " + tier, "0,2-3"},
	}
}

// settingDocs documents the other variables.
var settingDocs = map[string]settingDoc{
	"TA_DISABLE": {"0|1", "1: the process runs as if the library were absent", "1"},
	"TA_INTERPOSE": {"0|1",
		"0: malloc and its like go to libc; the ta_ functions still serve",
		"0"},
	"TA_STRICT": {"0|1", "1: a bad value ends the program with status 78", "1"},
	"TA_ONLY": {"NAMES",
		"the programs to serve; others run as if the library were absent",
		"'redis-server,python3'"},
	"TA_STATS_FILE": {"PATH",
		"the file that the report is written to at exit",
		"/tmp/%e.%p.json"},
	"TA_STATS_LIVE": {"0|1|PATH",
		"live figures for tierallocctl stats and top; 1: in /dev/shm",
		"1"},
	"TA_PROFILE": {"PATH",
		"the file that the heap profile (pprof) is written to at exit",
		"/tmp/%e.%p.pb"},
	"TA_PROFILE_RATE": {"auto|SIZE",
		"the mean number of bytes between two samples of the profile; auto: 512K, and more where " +
			"samples would take a hundredth of a thread's time", "64K"},
	"TA_PROFILE_HEAT": {"0|1",
		"1: the profile has how much each site's memory is used; implies TA_BACKGROUND=1", "1"},
	"TA_PROFILE_EVERY": {"SIZE",
		"the profile is also written each time that so many bytes more were allocated", "1G"},
	"TA_GROUP": {"NAME|PATH",
		"the group of processes whose sum the caps hold for", "train"},
	"TA_GROUP_MIN": {"SIZE",
		"how much of each cap of the group is kept for each of its processes", "1G"},
	"TA_LOG": {"LEVEL",
		"writes events as JSON lines, up to this level; the first starts the Go runtime",
		"info"},
	"TA_LOG_FILE":    {"PATH", "the file that the log is written to", "/tmp/tieralloc.log"},
	"TA_PURGE_DELAY": {"TIME", "how long freed memory is kept for reuse", "2s"},
	"TA_USE_LIBNUMA": {"0|1", "0: tiers are simulated on any machine", "0"},
	"TA_NUMA_BALANCING": {"auto|0|1",
		"whether the kernel's NUMA balancing moves memory of tiers with nodes;" +
			" auto: of those without a hard cap",
		"0"},
	"TA_ON_SOFTCAP": {"WORD",
		"what happens over a soft cap: reroute, warn, demote (by age, blind to use) or " +
			"follow (by use)",
		"follow"},
	"TA_SLOW_BACKEND": {"memory|swap",
		"swap: on a machine with one kind of memory what is coldest goes to the kernel's swap, " +
			"so that a soft cap binds what is resident; implies TA_ON_SOFTCAP=follow",
		"swap"},
	"TA_ON_HARDCAP":   {"WORD", "what happens at a hard cap: route_slow or fail", "fail"},
	"TA_DEFAULT_HINT": {"HINT", "the hint where no rule matches", "cold"},
	"TA_RULES": {"RULES",
		"hints by size, thread, program, library and call site",
		"'size>=64M:cold; lib=libc10*:prefer_fast'"},
	"TA_THROTTLE": {"WORD",
		"account: counts the waits of throttled tiers; sleep: sleeps them",
		"sleep"},
	"TA_MODEL":      {"WORD", "costs of the tiers by name: off or cxl", "cxl"},
	"TA_HUGEPAGES":  {"WORDS", "page size of the tiers' mappings", "fast:2M,slow:off"},
	"TA_MIGRATE_BW": {"RATE", "bytes per second that demotion and promotion may move", "2G"},
	"TA_SECURE": {"0|1|1,CHECK=warn",
		"1: hardened heap: detects overflows and uses after free",
		"1,dealloc_type_mismatch=warn"},
	"TA_BACKGROUND": {"0|1",
		"1: a thread of the library moves and purges memory; starts the Go runtime",
		"1"},

	"TA_CUDA": {"0|1", "0: all CUDA calls pass untouched", "0"},
	"TA_CUDA_REUSE": {"WORD",
		"sync: cudaFree waits for the device; event: it returns at once",
		"event"},
	"TA_CUDA_ASYNC": {"WORD",
		"who serves cudaMallocAsync: the driver's pool, or the heap",
		"heap"},
	"TA_CUDA_SUBALLOC": {"WORD",
		"small: blocks below 1 MiB share segments; all: larger ones too",
		"all"},
	"TA_CUDA_ON_HARDCAP": {"WORD",
		"what happens at the hard cap of a device: fail, or spill to host memory",
		"spill"},
	"TA_CUDA_SOFT":       {"SIZE", "soft cap of each device: its cache shrinks above it", "16G"},
	"TA_CUDA_HARD":       {"SIZE", "hard cap of each device", "20G"},
	"TA_CUDA_SPILL_HARD": {"SIZE", "host memory that each device may spill to at most", "32G"},
	"TA_CUDA_PROPORTION": {"PART",
		"hard cap as a part of the device's memory; the smaller one holds",
		"25%"},
	"TA_CUDA_SEGMENT_SIZE": {"SIZE",
		"size of shared segments, for blocks from 1 MiB on",
		"64M"},
	"TA_CUDA_EXPANDABLE": {"0|1",
		"1: segments of ta_cuda_malloc grow: less fragmentation, no IPC handles of blocks",
		"0"},
	"TA_CUDA_CACHE_LIMIT": {"SIZE", "free device memory kept in each context, at most", "2G"},
	"TA_CUDA_WARMUP": {"LIST",
		"blocks to have ready before the first request",
		"4K:50,64K:20,1M:10"},
	"TA_CUDA_ZERO": {"0|1", "1: memory fresh from the driver is cleared", "1"},
	"TA_CUDA_BW": {"RATE",
		"bandwidth that each device is throttled to, in bytes per second",
		"10G"},
	"TA_CUDA_LAT": {"TIME", "time charged for each allocation on a device", "5us"},
	"TA_CUDA_TRACE": {"PATH",
		"the file that each allocation and free is written to, as RMM's replay reads it",
		"/tmp/%p.csv"},
	"TA_CUDA_SNAPSHOT": {"PATH",
		"the file that what the devices hold is written to when a request is refused for lack of " +
			"memory",
		"/tmp/%p.snapshot"},
	"TA_CUDA_LEAKS": {"0|1", "1: the report lists the blocks that are live at exit", "1"},
	"TA_CUDA_MANAGED": {"0|1",
		"1: device memory is managed memory that prefers the location of its hint",
		"1"},
}
