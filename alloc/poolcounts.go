package alloc

import "tieralloc/alloc/sizeclass"

// poolCounts are plain sums for the report.
type poolCounts struct {
	mapped    uint64
	committed uint64
	peak      uint64
	advised   uint64 // bytes for which huge pages were asked by measure; atomic
	purges    uint64
	pressures uint64 // times that memory became short; atomic
	// bytes returned while it was; atomic
	pressureBytes uint64
	purgedBytes   uint64
	hugeHits      uint64
	hugeMisses    uint64
	huge          [placementSlots]tally // by tier
	gone          [placementSlots]tally
	moves         [placementSlots]tally // see movedcounts.go
}

// countsBySize are too large to lie beside what is read at each step.
type countsBySize struct {
	// blocks allocated and freed in pages taken from other threads
	stolen   [sizeclass.Count]uint64
	granules granuleCounts // of blocks that threads without a heap have freed
}
