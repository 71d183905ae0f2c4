// Package stats describes what the library counts, and shows it while it runs.
//
// The allocator fills a Report; this package only reads it. Which figures are
// exact is said once, in docs/stats.schema.json, together with their units.
//
// It is freestanding Go (docs/runtime.md): a report is written at exit, when the
// host is half taken down, so it uses no memory but its own mapping.
package stats

import "tieralloc/internal/raw"

// Schema names the format of the report, and Version is its number once more for
// readers that compare. A key that changes its meaning or goes away raises both.
// New keys may appear within a version: the schema file of the same release lists
// them, and readers pass over keys they do not know.
const (
	Schema  = "tieralloc.stats/1"
	Version = 1
)

// The functions whose calls are counted. A call is counted once, under the name
// the program used.
const (
	CallMalloc uint = iota
	CallFree
	CallCalloc
	CallRealloc
	CallReallocarray
	CallMemalign
	CallAlignedAlloc
	CallPosixMemalign
	CallValloc
	CallPvalloc
	CallMallocUsableSize
	CallFreeSized
	CallFreeAlignedSized
	CallMallocTrim
	CallNew
	CallDelete
	CallTaAlloc
	CallTaFree
	CallTaMove
	CallCount
)

// callNames are the keys of "calls"; the rest is padding to a power of two.
var callNames = [32]string{
	CallMalloc:           "malloc",
	CallFree:             "free",
	CallCalloc:           "calloc",
	CallRealloc:          "realloc",
	CallReallocarray:     "reallocarray",
	CallMemalign:         "memalign",
	CallAlignedAlloc:     "aligned_alloc",
	CallPosixMemalign:    "posix_memalign",
	CallValloc:           "valloc",
	CallPvalloc:          "pvalloc",
	CallMallocUsableSize: "malloc_usable_size",
	CallFreeSized:        "free_sized",
	CallFreeAlignedSized: "free_aligned_sized",
	CallMallocTrim:       "malloc_trim",
	CallNew:              "operator new",
	CallDelete:           "operator delete",
	CallTaAlloc:          "ta_alloc",
	CallTaFree:           "ta_free",
	CallTaMove:           "ta_move",
}

// CallName is the key of a call's number; of one that is no function's, an empty text.
func CallName(call uintptr) string { return callNames[call%uintptr(len(callNames))] }

// The tiers, in the order of Report.Tiers.
const (
	TierFast uint = iota
	TierNormal
	TierSlow
	TierCount
)

// Where the memory of the tiers is.
const (
	BackendSimulated uint64 = iota // wherever the kernel puts it
	BackendNuma                    // on the nodes of the tier
)

// Sizes of the fixed arrays. They are powers of two, so that a masked index is in
// range.
const (
	ClassMax = 128 // size classes
	NodeMax  = 64  // NUMA nodes a report can name
	NameSize = 256 // bytes of a program's name: the kernel's NAME_MAX and one
)

// Report is one snapshot of the counters. It is in mapped memory, all zero before
// it is filled, and belongs to one thread.
type Report struct {
	raw.OffHeap
	Figures
}

// Figures are what a report says. Ordinary Go, which cannot have a Report of its
// own, keeps these.
//
// Fields have their key's name in the schema, in Go's spelling, unless a comment
// gives another; a test holds them to that.
type Figures struct {
	Pid         uint64
	StartUnixNs uint64 // CLOCK_REALTIME when the library was loaded
	UptimeNs    uint64

	Calls       [32]uint64 // indexed by Call…; only CallCount are used
	CallsFailed uint64     // allocation calls that returned NULL or an error

	Heap Heap

	Policy

	// HintBytes[h] are the bytes of the spans held for blocks with hint h
	// (config.Hint…). Key "hints".
	HintBytes [8]uint64

	Backend uint64 // BackendSimulated or BackendNuma

	// Nodes[i], for i < NodeCount, is the number of a NUMA node, and
	// Tiers[t].BytesPerNode[i] is what tier t has there. NodeCount is 0 where the kernel
	// was not asked or did not answer. NodesSampled is 1 when figures are scaled from a
	// part of the pages, else 0.
	NodeCount    uint64
	NodesSampled uint64 // key "bytes_per_node_sampled"
	Nodes        [NodeMax]uint64
	Tiers        [4]Tier // indexed by Tier…; only TierCount are used

	// Devices[i], for i < DeviceCount, are the CUDA devices that were used.
	DeviceCount uint64
	Devices     [DeviceMax]Device

	// Shares[i], for i < ShareCount, are instances of memory managers, those of one
	// manager one after the other. Key "managers".
	ShareCount uint64
	Shares     [ShareMax]Share

	ProgramLen uint64 // <= NameSize
	Program    [NameSize]byte
}

// Policy is the configuration in effect, in the codes of package config. Its first
// five are written as words.
type Policy struct {
	DefaultHint uint64 // config.Hint…
	OnSoftcap   uint64 // config.Softcap…
	OnHardcap   uint64 // config.Hardcap…
	Throttle    uint64 // 0: account, 1: sleep
	Model       uint64 // config.Model…
	Rules       uint64 // number of them
}

// Heap is the CPU heap as a whole.
//
//	BlocksLive = BlocksTotalAlloc - BlocksTotalFreed
//	BytesLive  = BytesTotalAlloc - BytesTotalFreed
//	BytesLive <= BytesCommitted <= BytesMapped
//
// A forked child counts totals from the fork and has its parent's blocks too, so
// the first two do not hold there.
type Heap struct {
	BytesMapped          uint64
	BytesCommitted       uint64
	BytesLive            uint64
	BytesPeak            uint64
	BytesCached          uint64
	BytesTotalAlloc      uint64
	BytesTotalFreed      uint64
	BlocksLive           uint64
	BlocksTotalAlloc     uint64
	BlocksTotalFreed     uint64
	CrossThreadFrees     uint64
	ThreadHeaps          uint64
	ThreadHeapsAbandoned uint64
	Segments             uint64
	SpansFree            uint64
	Purges               uint64
	BytesPurged          uint64
	HugeBlocksLive       uint64
	HugeBytesLive        uint64
	HugeCacheHits        uint64
	HugeCacheMisses      uint64
	ZeroBlocksLive       uint64
	QuarantineBlocks     uint64
	QuarantineBytes      uint64
	UnguardedBlocks      uint64
	SizeClasses          [ClassMax]Class
}

// Class is one size class. One that never had a block or a page is left out of the
// report. (A forked child may free the last of those it inherited: then only
// BlocksTotalFreed tells.)
type Class struct {
	Size             uint64
	BlocksLive       uint64
	BlocksTotalAlloc uint64
	BlocksTotalFreed uint64
	Pages            uint64
	BytesPages       uint64
}

// Tier is one memory tier. A block counts for the tier that its span is in now.
//
//	BytesTotalAlloc - BytesTotalFreed = BytesEntered - BytesLeft = bytes of the live blocks in the tier
//
// (in a forked child: of those allocated since the fork, less those freed). What has entered and
// left never falls.
type Tier struct {
	AllocCalls         uint64
	FreeCalls          uint64
	BytesCurrent       uint64
	BytesPeak          uint64
	BytesTotalAlloc    uint64
	BytesTotalFreed    uint64
	BlocksEntered      uint64
	BlocksLeft         uint64
	BytesEntered       uint64
	BytesLeft          uint64
	SimulatedWaitNs    uint64
	CapacitySoft       uint64 // 0: no cap
	CapacityHard       uint64 // 0: no cap
	KernelMovedIn      uint64 // bytes
	KernelMovedOut     uint64 // bytes
	CapacityViolations uint64

	SoftExceeded        uint64
	Rerouted            uint64
	RoutedSlow          uint64
	Refused             uint64
	ThrottleSleeps      uint64
	ThrottleOvershootNs uint64

	ThrottleBW      uint64 // bytes per second; 0: unlimited
	ThrottleBurst   uint64 // bytes
	ThrottleLatNs   uint64 // 0: none
	HugePagesWanted uint64 // a config.Huge… code; key "hugepages"
	HugeFallbacks   uint64 // key "hugepage_fallbacks"
	TierNodes       uint64 // a bit per node; key "nodes"

	BytesPerNode [NodeMax]uint64
	Migrations   Migrations
}

// Migrations counts what was moved out of a tier.
type Migrations struct {
	Attempted   uint64
	MovedPages  uint64
	FailedPages uint64
}

// SetProgram sets the program's name, cut after 256 bytes.
func (r *Figures) SetProgram(addr, n uintptr) {
	if n > NameSize {
		n = NameSize
	}
	for i := uintptr(0); i < n; i++ {
		r.Program[i&(NameSize-1)] = raw.LoadByte(addr + i)
	}
	r.ProgramLen = uint64(n)
}
