// Package config reads the library's settings from the environment, once, before libc is
// initialised. It copies the texts that it keeps, because programs overwrite environ.
//
// It is freestanding Go (docs/runtime.md): no allocation, no panic, no runtime.
//
// To add a variable, add a field of Settings with its default in setDefaults, a number in the list
// of variables, a row of the table, and a case of set. Rules for all variables:
//
//   - If a name occurs twice, the first counts, as for getenv.
//   - An empty value is the same as an unset variable.
//   - For a value that cannot be parsed, or that contradicts another variable, the library prints
//     one line on standard error and uses the default. For TA_RULES it prints one line for each
//     bad rule.
//   - Words may be written in upper case, too.
//   - Names that are not in the table are ignored: they may belong to other software.
//   - A file for the whole system may set variables that the environment does not (file.go).
package config

// Levels of Settings.Log: a message is written if its level is not above it.
const (
	LogOff uint32 = iota
	LogError
	LogWarn
	LogInfo
	LogDebug
	logLevels
)

// The tiers, the index of Settings.Tiers.
const (
	TierFast uint32 = iota
	TierNormal
	TierSlow
	TierCount
)

// Hints: the use that a block is for.
const (
	HintHot uint32 = iota
	HintWarm
	HintCold
	HintPinFast
	HintPreferFast
	HintCount
)

// How a tier's pages are spread over its nodes.
const (
	SpreadPrefer     uint32 = iota // on the nearest of them with room
	SpreadInterleave               // page by page in turn
	SpreadWeighted                 // in turn, by the system's weights
)

// The page size of a tier's mappings.
const (
	HugeAuto uint32 = iota // by measure
	HugeOff
	HugeThp
	Huge2M
	Huge1G
)

// Follows reports whether memory is to move by its use.
func (s *Settings) Follows() bool {
	return s.OnSoftcap == SoftcapFollow && s.NumaBalancing != BalanceAlways
}

// What happens over a soft cap.
const (
	SoftcapReroute uint32 = iota
	SoftcapWarn
	SoftcapDemote
	SoftcapFollow
	SoftcapCount
)

// What happens at a hard cap.
const (
	HardcapRouteSlow uint32 = iota
	HardcapFail
	HardcapCount
)

// Which tiers' memory the kernel's NUMA balancing may move.
const (
	BalanceAuto   uint32 = iota // that of tiers without a hard cap
	BalanceNever                // no memory with a policy
	BalanceAlways               // that of all tiers, whatever their caps
	balanceCount
)

// The models: costs of the tiers by name.
const (
	ModelOff uint32 = iota
	ModelCXL
	ModelCount
)

// The checks of the hardened heap that can warn instead of ending the process: bits of
// Settings.SecureWarn.
const (
	// a block is freed by another family of functions than it was allocated by
	CheckDeallocType uint32 = iota
	CheckDeleteSize         // a sized free states a wrong size
	checkCount
)

// PathMax is the longest file name accepted, in bytes. It leaves room in a Text,
// and in the kernel's PATH_MAX, for the suffix of a temporary name.
const PathMax = 4000

// Units of time in nanoseconds, and bounds of settings.
const (
	microsecond = 1_000
	millisecond = 1_000_000
	second      = 1_000_000_000

	DefaultPurgeDelay = 250 * millisecond
	maxPurgeDelay     = 3600 * second
	maxLatency        = second

	maxSize          = 1 << 46
	minBandwidth     = 1 << 10 // bytes per second
	DefaultMigrateBW = 1 << 30

	AutoProfileRate = 512 << 10 // of TA_PROFILE_RATE=auto where nothing is thinned
	minProfileRate  = 1 << 10
	maxProfileRate  = 1 << 30
	minProfileEvery = 1 << 20
)

// Settings are the parsed variables. Parse fills all fields. At some 25 KiB it belongs in static or
// mapped memory.
type Settings struct {
	Disable    bool   // TA_DISABLE: pass every call to libc
	Interpose  bool   // TA_INTERPOSE: serve malloc and its like
	Strict     bool   // TA_STRICT: a bad value ends the process (the caller does that)
	Log        uint32 // TA_LOG: one of the Log levels
	PurgeDelay uint64 // TA_PURGE_DELAY: nanoseconds
	Rank       uint64 // 1 + the process's number in its parallel job; 0: it is in none

	UseLibnuma    bool    // TA_USE_LIBNUMA: use the machine's nodes; false: simulate the tiers
	ThrottleSleep bool    // TA_THROTTLE: sleep; false: only account
	Model         uint32  // TA_MODEL: a Model; its costs are already in Tiers
	Background    bool    // TA_BACKGROUND: a thread of the library moves spans
	Secure        bool    // TA_SECURE: the heap is hardened
	SecureWarn    uint32  // TA_SECURE: a bit for each Check that does not end the process
	NumaBalancing uint32  // TA_NUMA_BALANCING: a Balance
	OnSoftcap     uint32  // TA_ON_SOFTCAP: a Softcap
	OnHardcap     uint32  // TA_ON_HARDCAP: a Hardcap
	SlowSwap      bool    // TA_SLOW_BACKEND: swap; false: memory
	DefaultHint   uint32  // TA_DEFAULT_HINT: a Hint
	ProfileRate   uint64  // TA_PROFILE_RATE: bytes between samples, in the mean; 0: auto
	ProfileHeat   bool    // TA_PROFILE_HEAT
	ProfileEvery  uint64  // TA_PROFILE_EVERY: bytes between two writings; 0: at exit only
	GroupMin      uint64  // TA_GROUP_MIN: bytes; 0: none
	MigrateBW     uint64  // TA_MIGRATE_BW: bytes per second; 0: no limit
	Tiers         [4]Tier // by Tier…; the last is padding to a power of two

	Reports  bool // StatsFile is not empty
	Live     bool // StatsLive is not empty
	Profiles bool // ProfileFile is not empty
	Grouped  bool // GroupFile is not empty
	LogsFile bool // LogFile is not empty

	CUDA CUDA

	// What is long comes last: of Rules and the texts most processes touch no page.
	Rules       RuleList
	StatsFile   Text // TA_STATS_FILE: a template for Expand
	LogFile     Text // TA_LOG_FILE: a path as it is
	StatsLive   Text // TA_STATS_LIVE: a template for Expand
	TraceFile   Text // TA_CUDA_TRACE: a template for Expand
	ProfileFile Text // TA_PROFILE: a template for Expand
	// TA_CUDA_SNAPSHOT: a template for Expand
	SnapshotFile Text
	GroupFile    Text // TA_GROUP: the path of the group's file
}

// InForce is the configuration of this process, set at boot.
var InForce Settings

// Tier is the settings of one tier.
//
//	Soft == 0 or Hard == 0 or Soft <= Hard
//	Burst == 0 or BW != 0
//	SoftPart == 0 or Soft == 0, and the same of Hard, until SetParts
type Tier struct {
	Soft, Hard uint64 // TA_…_SOFT, TA_…_HARD: bytes; 0: no cap
	BW         uint64 // TA_…_BW: bytes per second; 0: no limit
	Burst      uint64 // TA_…_BURST: bytes; 0: unset
	Lat        uint64 // TA_…_LAT: nanoseconds
	Nodes      uint64 // TA_NODE_…: a bit per node; 0: unset
	Spread     uint32 // TA_NODE_…: a Spread
	HugePages  uint32 // TA_HUGEPAGES: a Huge

	// TA_…_SOFT, TA_…_HARD in percent of the tier's memory; 0: they are not
	SoftPart, HardPart uint32
}

func (s *Settings) setDefaults() {
	s.Disable = false
	s.Interpose = true
	s.Strict = false
	s.Log = LogOff
	s.PurgeDelay = DefaultPurgeDelay
	s.Rank = 0
	s.UseLibnuma = true
	s.ThrottleSleep = false
	s.Model = ModelOff
	s.Background = false
	s.Secure = false
	s.SecureWarn = 0
	s.NumaBalancing = BalanceAuto
	s.OnSoftcap = SoftcapReroute
	s.OnHardcap = HardcapRouteSlow
	s.SlowSwap = false
	s.DefaultHint = HintWarm
	s.ProfileRate = 0
	s.ProfileHeat = false
	s.ProfileEvery = 0
	s.GroupMin = 0
	s.MigrateBW = DefaultMigrateBW
	s.Tiers = [4]Tier{}
	s.CUDA.setDefaults()
	reset(&s.CUDA.Traces, &s.TraceFile)
	reset(&s.CUDA.Snapshots, &s.SnapshotFile)
	reset(&s.Reports, &s.StatsFile)
	reset(&s.LogsFile, &s.LogFile)
	reset(&s.Live, &s.StatsLive)
	reset(&s.Profiles, &s.ProfileFile)
	reset(&s.Grouped, &s.GroupFile)
	// whoever fills its text resets it, so that no page is touched unnecessarily
	if s.Rules.Count != 0 {
		s.Rules.Count = 0
	}
}
