// Package stats describes what the library counts and writes it as JSON.
//
// The allocator fills a Report; this package only reads it. Which figures are
// exact is said once, in docs/stats.schema.json, together with their units.
//
// It is freestanding Go (docs/DESIGN.md): a report is written at exit, when the
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
}

// The tiers, in the order of Report.Tiers.
const (
	TierFast uint = iota
	TierNormal
	TierSlow
	TierCount
)

// tierNames are the keys of "tiers"; the last is padding to a power of two.
var tierNames = [4]string{TierFast: "fast", TierNormal: "normal", TierSlow: "slow"}

// Sizes of the fixed arrays. They are powers of two, so that a masked index is in
// range.
const (
	ClassMax = 128 // size classes
	NodeMax  = 64  // NUMA nodes a report can name
	nameSize = 256 // bytes of a program's name: the kernel's NAME_MAX and one
)

// Report is one snapshot of the counters. It is in mapped memory, all zero before
// it is filled, and belongs to one thread.
//
// Fields have their key's name in the schema, in Go's spelling; a test holds them
// to that.
type Report struct {
	raw.OffHeap

	Pid         uint64
	StartUnixNs uint64 // CLOCK_REALTIME when the library was loaded
	UptimeNs    uint64

	Calls       [32]uint64 // indexed by Call…; only CallCount are used
	CallsFailed uint64     // allocation calls that returned NULL or an error

	Heap Heap

	// Nodes[i], for i < NodeCount, is the number of a NUMA node, and
	// Tiers[t].BytesPerNode[i] is what tier t has there.
	NodeCount uint64
	Nodes     [NodeMax]uint64
	Tiers     [4]Tier // indexed by Tier…; only TierCount are used

	programLen uintptr // <= nameSize
	program    [nameSize]byte
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

// Tier is one memory tier.
type Tier struct {
	AllocCalls         uint64
	FreeCalls          uint64
	BytesCurrent       uint64
	BytesPeak          uint64
	BytesTotalAlloc    uint64
	BytesTotalFreed    uint64
	SimulatedWaitNs    uint64
	CapacitySoft       uint64 // 0: no cap
	CapacityHard       uint64 // 0: no cap
	CapacityViolations uint64
	BytesPerNode       [NodeMax]uint64
	Migrations         Migrations
}

// Migrations counts what was moved out of a tier.
type Migrations struct {
	Attempted   uint64
	MovedPages  uint64
	FailedPages uint64
}

// SetProgram sets the program's name, cut after 256 bytes.
func (r *Report) SetProgram(addr, n uintptr) {
	if n > nameSize {
		n = nameSize
	}
	for i := uintptr(0); i < n; i++ {
		r.program[i&(nameSize-1)] = raw.LoadByte(addr + i)
	}
	r.programLen = n
}
