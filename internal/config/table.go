package config

import "tieralloc/internal/raw"

// The variables, in the order of the table. Those of a tier follow each other in
// the order of the per-tier numbers below, so that
//
//	i = varTiers + tier·tierVars + k
//
// and those of CUDA come last.
const (
	varDisable uintptr = iota
	varInterpose
	varStrict
	varOnly
	varStatsFile
	varStatsLive
	varProfile
	varProfileRate
	varProfileHeat
	varProfileEvery
	varLog
	varLogFile
	varPurgeDelay
	varUseLibnuma
	varNumaBalancing
	varOnSoftcap
	varOnHardcap
	varSlowBackend
	varDefaultHint
	varRules
	varThrottle
	varModel
	varHugePages
	varMigrateBW
	varBackground
	varSecure
	varGroup
	varGroupMin
	varTiers
	varCUDA  = varTiers + uintptr(TierCount)*tierVars
	varCount = varCUDA + cudaVars
)

// The variables of a tier.
const (
	tierSoft uintptr = iota
	tierHard
	tierBW
	tierBurst
	tierLat
	tierNode
	tierVars
)

// The variables of CUDA.
const (
	cudaEnable uintptr = iota
	cudaReuse
	cudaSuballoc
	cudaOnHardcap
	cudaSoft
	cudaHard
	cudaSpillHard
	cudaProportion
	cudaSegmentSize
	cudaCacheLimit
	cudaWarmup
	cudaZero
	cudaBW
	cudaLat
	cudaTrace
	cudaSnapshot
	cudaLeaks
	cudaManaged
	cudaExpandable
	cudaAsync
	cudaVars
)

// variable describes an environment variable: its name, and texts for complaints. The default here
// is the one that setDefaults sets; a test compares them.
type variable struct {
	name     string
	accepts  string // follows "expected "
	fallback string // follows "using "
}

// tableSize is a power of two above varCount, so that a masked index is in range.
const (
	tableSize = 128
	tableMask = tableSize - 1
)

// This constant is negative and does not compile unless the table has a free row.
const _ uintptr = tableSize - 1 - varCount

const (
	aSwitch   = "0 or 1"
	aSize     = "1 byte or more, up to 64T (an integer, or one with K, M, G or T)"
	aCap      = aSize + " or 1% to 100% of the tier's memory"
	aRate     = "bytes per second: 0 (no limit), or 1K to 64T"
	aLatency  = "a time such as 300ns (units ns, us, ms, s), 0 to 1s"
	aNodes    = "nodes from 0 to 63, each once, such as 0,2-3, interleave:0,1 or weighted:0,1"
	noSoft    = "no soft cap"
	noHard    = "no hard cap"
	noLimit   = "no limit"
	burst     = "64K or 10ms of the bandwidth, the larger"
	noDelay   = "0"
	anyNodes  = "nodes found automatically"
	aTemplate = "a path of at most 4000 bytes in which % begins " + aSequence
	aSequence = "%p (process id), %e (program name), %r (rank), %h (host name) or %%"
	noFile    = "no file"
	noProgram = "no program"
)

var variables = [tableSize]variable{
	varDisable:   {"TA_DISABLE", aSwitch, "0"},
	varInterpose: {"TA_INTERPOSE", aSwitch, "1"},
	varStrict:    {"TA_STRICT", aSwitch, "0"},
	varOnly: {"TA_ONLY",
		"names of programs such as redis-server,python3*, without folders, * only at a name's end",
		"every program"},
	varStatsFile: {"TA_STATS_FILE", aTemplate, noFile},
	varStatsLive: {"TA_STATS_LIVE",
		"0, 1, or an absolute path of at most 4000 bytes with %p (process id) in it," +
			" in which % begins " + aSequence, "0"},
	varProfile: {"TA_PROFILE", aTemplate, noFile},
	varProfileRate: {"TA_PROFILE_RATE",
		"auto, or 1K to 1G (bytes, an integer, or one with K, M or G)", "auto"},
	varProfileHeat: {"TA_PROFILE_HEAT", aSwitch, "0"},
	varProfileEvery: {"TA_PROFILE_EVERY",
		"0 (only at exit), or 1M to 64T (bytes, an integer, or one with K, M, G or T)", "0"},
	varLog:     {"TA_LOG", "off, error, warn, info or debug", "off"},
	varLogFile: {"TA_LOG_FILE", "a path of at most 4000 bytes", "standard error"},
	varPurgeDelay: {"TA_PURGE_DELAY", "a time such as 250ms (units ns, us, ms, s), 0 to 3600s",
		"250ms"},
	varUseLibnuma:    {"TA_USE_LIBNUMA", aSwitch, "1"},
	varNumaBalancing: {"TA_NUMA_BALANCING", "auto, 0 or 1", "auto"},
	varOnSoftcap:     {"TA_ON_SOFTCAP", "reroute, warn, demote or follow", "reroute"},
	varOnHardcap:     {"TA_ON_HARDCAP", "route_slow or fail", "route_slow"},
	varSlowBackend:   {"TA_SLOW_BACKEND", "memory or swap", "memory"},
	varDefaultHint:   {"TA_DEFAULT_HINT", hintsAccepted, "warm"},
	varRules: {"TA_RULES",
		"rules such as size>=64M,lib=libc10*:cold with ; between them (conditions size, thread," +
			" program, lib, site; hints " + hintsAccepted + ")", noRules},
	varThrottle: {"TA_THROTTLE", "account or sleep", "account"},
	varModel:    {"TA_MODEL", "off, or cxl (50, 20 and 5 GiB/s, 2, 8 and 40us)", "off"},
	varHugePages: {"TA_HUGEPAGES",
		"auto, off, thp, 2M or 1G, or these by tier, as in fast:2M,slow:off", "auto"},
	varMigrateBW:  {"TA_MIGRATE_BW", aRate, "1G"},
	varBackground: {"TA_BACKGROUND", aSwitch, "0"},
	varSecure: {"TA_SECURE",
		"0, 1, or 1 and checks that only warn, as in 1,dealloc_type_mismatch=warn" +
			" (checks dealloc_type_mismatch and delete_size_mismatch; abort or warn)", "0"},

	varGroup: {"TA_GROUP", "a name of at most 64 letters, digits, dots, - and _," +
		" or an absolute path of at most 4000 bytes", "no group"},
	varGroupMin: {"TA_GROUP_MIN",
		"0 (nothing is kept) to 64T (an integer, or one with K, M, G or T)", "0"},

	varTiers + tierSoft:  {"TA_FAST_SOFT", aCap, noSoft},
	varTiers + tierHard:  {"TA_FAST_HARD", aCap, noHard},
	varTiers + tierBW:    {"TA_FAST_BW", aRate, noLimit},
	varTiers + tierBurst: {"TA_FAST_BURST", aSize, burst},
	varTiers + tierLat:   {"TA_FAST_LAT", aLatency, noDelay},
	varTiers + tierNode:  {"TA_NODE_FAST", aNodes, anyNodes},

	varTiers + tierVars + tierSoft:  {"TA_NORMAL_SOFT", aCap, noSoft},
	varTiers + tierVars + tierHard:  {"TA_NORMAL_HARD", aCap, noHard},
	varTiers + tierVars + tierBW:    {"TA_NORMAL_BW", aRate, noLimit},
	varTiers + tierVars + tierBurst: {"TA_NORMAL_BURST", aSize, burst},
	varTiers + tierVars + tierLat:   {"TA_NORMAL_LAT", aLatency, noDelay},
	varTiers + tierVars + tierNode:  {"TA_NODE_NORMAL", aNodes, anyNodes},

	varTiers + 2*tierVars + tierSoft:  {"TA_SLOW_SOFT", aCap, noSoft},
	varTiers + 2*tierVars + tierHard:  {"TA_SLOW_HARD", aCap, noHard},
	varTiers + 2*tierVars + tierBW:    {"TA_SLOW_BW", aRate, noLimit},
	varTiers + 2*tierVars + tierBurst: {"TA_SLOW_BURST", aSize, burst},
	varTiers + 2*tierVars + tierLat:   {"TA_SLOW_LAT", aLatency, noDelay},
	varTiers + 2*tierVars + tierNode:  {"TA_NODE_SLOW", aNodes, anyNodes},

	varCUDA + cudaEnable:    {"TA_CUDA", aSwitch, "1"},
	varCUDA + cudaReuse:     {"TA_CUDA_REUSE", "sync or event", "sync"},
	varCUDA + cudaSuballoc:  {"TA_CUDA_SUBALLOC", "small or all", "small"},
	varCUDA + cudaOnHardcap: {"TA_CUDA_ON_HARDCAP", "fail or spill", "fail"},
	varCUDA + cudaSoft:      {"TA_CUDA_SOFT", aSize, noSoft},
	varCUDA + cudaHard:      {"TA_CUDA_HARD", aSize, noHard},
	varCUDA + cudaSpillHard: {"TA_CUDA_SPILL_HARD", aSize, "half of the host's memory"},
	varCUDA + cudaProportion: {"TA_CUDA_PROPORTION",
		"a part of the device's memory such as 0.25 or 25%, above 0 and up to 1", noHard},
	varCUDA + cudaSegmentSize: {"TA_CUDA_SEGMENT_SIZE",
		"2M to 64G, in steps of 2M (an integer, or one with K, M or G)",
		"20M"},
	varCUDA + cudaCacheLimit: {"TA_CUDA_CACHE_LIMIT",
		"0 (keep nothing) to 64T (an integer, or one with K, M, G or T)",
		noLimit},
	varCUDA + cudaWarmup: {"TA_CUDA_WARMUP",
		"sizes and numbers of blocks such as 4K:50,64K:20,1M:10, at most 16 of them," +
			" each number from 1 to 1000000", "no warm-up"},
	varCUDA + cudaZero:       {"TA_CUDA_ZERO", aSwitch, "0"},
	varCUDA + cudaBW:         {"TA_CUDA_BW", aRate, noLimit},
	varCUDA + cudaLat:        {"TA_CUDA_LAT", aLatency, noDelay},
	varCUDA + cudaTrace:      {"TA_CUDA_TRACE", aTemplate, noFile},
	varCUDA + cudaSnapshot:   {"TA_CUDA_SNAPSHOT", aTemplate, noFile},
	varCUDA + cudaLeaks:      {"TA_CUDA_LEAKS", aSwitch, "0"},
	varCUDA + cudaManaged:    {"TA_CUDA_MANAGED", aSwitch, "0"},
	varCUDA + cudaExpandable: {"TA_CUDA_EXPANDABLE", aSwitch, "1"},
	varCUDA + cudaAsync:      {"TA_CUDA_ASYNC", "driver or heap", "driver"},
}

// Describe returns the name of the i-th variable, what it accepts, and its default. ok is false if
// i is past the last.
func Describe(i uintptr) (name, accepts, fallback string, ok bool) {
	if i >= varCount {
		return "", "", "", false
	}
	v := &variables[i&tableMask]
	return v.name, v.accepts, v.fallback, true
}

// CapName returns the name of the variable of a tier's soft or hard cap.
func CapName(tier uintptr, hard bool) string {
	i := varTiers + tier*tierVars + tierSoft
	if hard {
		i += tierHard - tierSoft
	}
	return variables[i&tableMask].name
}

const prefix = "TA_"

// find looks up an entry NAME=value in the table. It returns varCount if the name is not in it. For
// most other names it costs one or two comparisons.
func find(entry uintptr) (i uintptr, val value) {
	if raw.LoadByte(entry) != 'T' || raw.LoadByte(entry+1) != 'A' || raw.LoadByte(entry+2) != '_' {
		return varCount, value{}
	}
	for i = 0; i < varCount; i++ {
		if at := afterName(entry, variables[i&tableMask].name); at != 0 {
			return i, cString(at)
		}
	}
	return varCount, value{}
}

// afterName returns the address of the value if the entry is name=value, else 0. The caller has
// compared the prefix.
func afterName(entry uintptr, name string) uintptr {
	for i := len(prefix); i < len(name); i++ {
		// No read passes the entry's final zero, because it differs from every byte of a name.
		if raw.LoadByte(entry+uintptr(i)) != name[i] {
			return 0
		}
	}
	entry += uintptr(len(name))
	if raw.LoadByte(entry) != '=' {
		return 0
	}
	return entry + 1
}

// set reads the value of variable i, except TA_RULES. If the value is bad it reports false and
// leaves s unchanged.
func (s *Settings) set(i uintptr, v value) bool {
	switch i {
	case varDisable:
		return v.asSwitch(&s.Disable)
	case varInterpose:
		return v.asSwitch(&s.Interpose)
	case varStrict:
		return v.asSwitch(&s.Strict)
	case varOnly:
		return v.isNames()
	case varStatsFile:
		return v.isTemplate() && v.asPath(&s.StatsFile, &s.Reports)
	case varStatsLive:
		return v.asLive(&s.StatsLive, &s.Live)
	case varProfile:
		return v.isTemplate() && v.asPath(&s.ProfileFile, &s.Profiles)
	case varProfileRate:
		return v.asProfileRate(&s.ProfileRate)
	case varProfileHeat:
		return v.asSwitch(&s.ProfileHeat)
	case varProfileEvery:
		return v.asProfileEvery(&s.ProfileEvery)
	case varGroup:
		return v.asGroup(&s.GroupFile, &s.Grouped)
	case varGroupMin:
		return v.asSizeOrZero(&s.GroupMin)
	case varLog:
		return v.asWord(&s.Log, &words.level, logLevels)
	case varCUDA + cudaTrace:
		return v.isTemplate() && v.asPath(&s.TraceFile, &s.CUDA.Traces)
	case varCUDA + cudaSnapshot:
		return v.isTemplate() && v.asPath(&s.SnapshotFile, &s.CUDA.Snapshots)
	case varLogFile:
		return v.asPath(&s.LogFile, &s.LogsFile)
	case varPurgeDelay:
		return v.asTime(&s.PurgeDelay, maxPurgeDelay)
	case varUseLibnuma:
		return v.asSwitch(&s.UseLibnuma)
	case varNumaBalancing:
		return v.asWord(&s.NumaBalancing, &words.balance, balanceCount)
	case varOnSoftcap:
		return v.asWord(&s.OnSoftcap, &words.softcap, SoftcapCount)
	case varOnHardcap:
		return v.asWord(&s.OnHardcap, &words.hardcap, HardcapCount)
	case varSlowBackend:
		return v.asEither(&s.SlowSwap, "memory", "swap")
	case varDefaultHint:
		return v.asWord(&s.DefaultHint, &words.hint, HintCount)
	case varThrottle:
		return v.asEither(&s.ThrottleSleep, "account", "sleep")
	case varModel:
		return v.asWord(&s.Model, &words.model, ModelCount)
	case varHugePages:
		return s.setHugePages(v)
	case varMigrateBW:
		return v.asRate(&s.MigrateBW)
	case varBackground:
		return v.asSwitch(&s.Background)
	case varSecure:
		return s.setSecure(v)
	}
	if i >= varCUDA {
		return s.CUDA.set(i-varCUDA, v)
	}
	k := i - varTiers
	return s.Tiers[k/tierVars&3].set(k%tierVars, v)
}

// set is Settings.set for variable k of a tier.
func (t *Tier) set(k uintptr, v value) bool {
	switch k {
	case tierSoft:
		return v.asCap(&t.Soft, &t.SoftPart)
	case tierHard:
		return v.asCap(&t.Hard, &t.HardPart)
	case tierBW:
		return v.asRate(&t.BW)
	case tierBurst:
		return v.asSize(&t.Burst)
	case tierLat:
		return v.asTime(&t.Lat, maxLatency)
	case tierNode:
		return v.asNodes(&t.Nodes, &t.Spread)
	}
	return false
}
