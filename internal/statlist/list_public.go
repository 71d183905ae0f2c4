package main

// line is a line of a structure's declaration in C.
type line struct {
	paths   string // paths of the figures from the object; the last keys name the fields
	comment string
	text    string // the line itself, for fields that are not figures
	fields  string // the Go fields of such a line
}

// public is a structure of tieralloc.h. Its fields are an interface: existing lines never change,
// and new lines go to the end.
type public struct {
	c, goType string
	comment   string // on the Go type
	from      string // Go type that its method From copies from; "": it is filled by hand
	of        *object
	lines     []line
}

var publics = []public{
	{"ta_tier_stats", "PublicTier", "PublicTier is ta_tier_stats of tieralloc.h.", "Tier", tier,
		[]line{
			{paths: "blocks_entered blocks_left bytes_entered bytes_left"},
			{paths: "bytes_current bytes_peak simulated_wait_ns"},
		}},
	{"ta_stats", "Public", "Public is ta_stats of tieralloc.h.", "Report", report, []line{
		{text: "size_t size;", comment: "set to sizeof(ta_stats) by the caller; filled up to it",
			fields: "Size uint64"},
		{text: "uint64_t version;", comment: "of this structure", fields: "Version uint64"},
		{paths: "heap.bytes_mapped heap.bytes_committed heap.bytes_live heap.bytes_peak " +
			"heap.bytes_cached"},
		{paths: "heap.bytes_total_alloc heap.bytes_total_freed"},
		{paths: "heap.blocks_live heap.blocks_total_alloc heap.blocks_total_freed"},
		{paths: "heap.huge_blocks_live heap.huge_bytes_live heap.spans_free"},
		{paths: "heap.cross_thread_frees calls_failed"},
		{text: "ta_tier_stats tiers[3];", comment: "by ta_tier",
			fields: "Tiers [TierCount]PublicTier"},
	}},
	{"ta_cuda_stats", "PublicDevice", "PublicDevice is ta_cuda_stats of tieralloc.h.", "Device",
		device,
		[]line{
			{text: "size_t size;",
				comment: "set to sizeof(ta_cuda_stats) by the caller; filled up to it",
				fields:  "Size uint64"},
			{paths: "alloc_calls free_calls"},
			{paths: "hits_local hits_global hits_split"},
			{paths: "misses foreign_calls refused"},
			{paths: "frees_invalid"},
			{paths: "blocks_live bytes_live bytes_peak"},
			{paths: "bytes_reserved"},
			{paths: "bytes_cached_local bytes_cached_global"},
			{paths: "largest_free"},
			{paths: "segments splits merges"},
			{paths: "blocks_warmed bytes_released"},
			{paths: "bytes_device tiers.fast.bytes_current",
				comment: `bytes_current: of the device's tier "fast"`},
			{paths: "tiers.fast.capacity_hard", comment: "of the same; 0: none"},
			{text: "uint64_t segment_size, cache_limit;", comment: "a limit from 2^63 on is none",
				fields: "SegmentSize, CacheLimit uint64"},
			{text: "uint64_t stream_local, global_limit;",
				fields: "StreamLocal, GlobalLimit uint64"},
			{text: "uint64_t recording;", comment: "1: allocations and frees are recorded",
				fields: "Recording uint64"},
		}},
}
