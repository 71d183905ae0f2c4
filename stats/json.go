package stats

import (
	"tieralloc/internal/raw"
	"unsafe"
)

// JSON writes the report at dst as snprintf would: at most size-1 bytes and a
// final zero, nothing when size is 0. It returns the length of the whole text,
// without the zero; the text is complete if that is less than size.
//
// The order of the keys never changes.
func JSON(dst, size uintptr, r *Report) (need uintptr) {
	var w writer
	w.begin(dst, size)
	w.open('{')
	w.word("schema", Schema)
	w.count("version", Version)
	w.count("pid", r.Pid)
	w.key("program")
	w.quoted(uintptr(unsafe.Pointer(&r.program)), r.programLen)
	w.count("start_unix_ns", r.StartUnixNs)
	w.count("uptime_ns", r.UptimeNs)
	w.calls(r)
	w.count("calls_failed", r.CallsFailed)
	w.heap(&r.Heap)
	// One constant until there is a second backend to tell it from.
	w.word("backend", "simulated")
	w.nodes(r)
	w.tiers(r)
	w.close('}')
	w.put('\n')
	if size > 0 {
		end := w.n
		if end > w.room {
			end = w.room
		}
		raw.StoreByte(dst+end, 0)
	}
	return w.n
}

func (w *writer) calls(r *Report) {
	w.key("calls")
	w.open('{')
	for i := uint(0); i < CallCount; i++ {
		w.count(callNames[i&31], r.Calls[i&31])
	}
	w.close('}')
}

func (w *writer) heap(h *Heap) {
	w.key("heap")
	w.open('{')
	w.count("bytes_mapped", h.BytesMapped)
	w.count("bytes_committed", h.BytesCommitted)
	w.count("bytes_live", h.BytesLive)
	w.count("bytes_peak", h.BytesPeak)
	w.count("bytes_cached", h.BytesCached)
	w.count("bytes_total_alloc", h.BytesTotalAlloc)
	w.count("bytes_total_freed", h.BytesTotalFreed)
	w.count("blocks_live", h.BlocksLive)
	w.count("blocks_total_alloc", h.BlocksTotalAlloc)
	w.count("blocks_total_freed", h.BlocksTotalFreed)
	w.key("fragmentation_ratio")
	w.fraction(unused(h), h.BytesCommitted)
	w.count("cross_thread_frees", h.CrossThreadFrees)
	w.count("thread_heaps", h.ThreadHeaps)
	w.count("thread_heaps_abandoned", h.ThreadHeapsAbandoned)
	w.count("segments", h.Segments)
	w.count("spans_free", h.SpansFree)
	w.count("purges", h.Purges)
	w.count("bytes_purged", h.BytesPurged)
	w.count("huge_blocks_live", h.HugeBlocksLive)
	w.count("huge_bytes_live", h.HugeBytesLive)
	w.count("huge_cache_hits", h.HugeCacheHits)
	w.count("huge_cache_misses", h.HugeCacheMisses)
	w.classes(h)
	w.close('}')
}

// unused is the committed memory that no block has. Counters read while other
// threads run may disagree; the answer is then 0, never a wrapped number.
func unused(h *Heap) uint64 {
	if h.BytesLive > h.BytesCommitted {
		return 0
	}
	return h.BytesCommitted - h.BytesLive
}

func (w *writer) classes(h *Heap) {
	w.key("size_classes")
	w.open('[')
	for i := uint(0); i < ClassMax; i++ {
		c := &h.SizeClasses[i&(ClassMax-1)]
		if c.BlocksLive|c.BlocksTotalAlloc|c.BlocksTotalFreed|c.Pages == 0 {
			continue
		}
		w.item()
		w.open('{')
		w.count("size", c.Size)
		w.count("blocks_live", c.BlocksLive)
		w.count("blocks_total_alloc", c.BlocksTotalAlloc)
		w.count("blocks_total_freed", c.BlocksTotalFreed)
		w.count("pages", c.Pages)
		w.count("bytes_pages", c.BytesPages)
		w.close('}')
	}
	w.close(']')
}

func (w *writer) nodes(r *Report) {
	w.key("nodes")
	w.open('[')
	for i := uint64(0); i < r.NodeCount && i < NodeMax; i++ {
		w.item()
		w.dec(r.Nodes[i&(NodeMax-1)])
	}
	w.close(']')
}

func (w *writer) tiers(r *Report) {
	w.key("tiers")
	w.open('{')
	for i := uint(0); i < TierCount; i++ {
		w.key(tierNames[i&3])
		w.tier(r, &r.Tiers[i&3])
	}
	w.close('}')
}

func (w *writer) tier(r *Report, t *Tier) {
	w.open('{')
	w.count("alloc_calls", t.AllocCalls)
	w.count("free_calls", t.FreeCalls)
	w.count("bytes_current", t.BytesCurrent)
	w.count("bytes_peak", t.BytesPeak)
	w.count("bytes_total_alloc", t.BytesTotalAlloc)
	w.count("bytes_total_freed", t.BytesTotalFreed)
	w.count("simulated_wait_ns", t.SimulatedWaitNs)
	w.count("capacity_soft", t.CapacitySoft)
	w.count("capacity_hard", t.CapacityHard)
	w.count("capacity_violations", t.CapacityViolations)
	w.key("bytes_per_node")
	w.open('{')
	for i := uint64(0); i < r.NodeCount && i < NodeMax; i++ {
		w.item()
		w.put('"')
		w.dec(r.Nodes[i&(NodeMax-1)])
		w.text("\": ")
		w.dec(t.BytesPerNode[i&(NodeMax-1)])
	}
	w.close('}')
	w.key("migrations")
	w.open('{')
	w.count("attempted", t.Migrations.Attempted)
	w.count("moved_pages", t.Migrations.MovedPages)
	w.count("failed_pages", t.Migrations.FailedPages)
	w.close('}')
	w.close('}')
}
