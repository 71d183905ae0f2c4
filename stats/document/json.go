// Package document writes the report of package stats as JSON, and that to a file. It is the data
// plane's, and apart from stats because its code is for the end of a process.
package document

import (
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/internal/version"
	"tieralloc/stats"
)

// JSON writes the report at dst as snprintf would: at most size-1 bytes and a
// final zero, nothing when size is 0. It returns the length of the whole text,
// without the zero; the text is complete if that is less than size.
//
// The order of the keys never changes.
func JSON(dst, size uintptr, r *stats.Report) (need uintptr) {
	var w writer
	w.begin(dst, size)
	w.open('{')
	w.word("schema", stats.Schema)
	w.count("version", stats.Version)
	w.word("library_version", version.Number)
	w.count("pid", r.Pid)
	w.key("program")
	w.quoted(uintptr(unsafe.Pointer(&r.Program)), min(uintptr(r.ProgramLen), stats.NameSize))
	w.count("start_unix_ns", r.StartUnixNs)
	w.count("uptime_ns", r.UptimeNs)
	w.calls(r)
	w.count("calls_failed", r.CallsFailed)
	w.heap(&r.Heap)
	w.word("backend", backendNames[r.Backend&1])
	w.policy(&r.Policy)
	w.hints(r)
	w.nodes(r)
	w.tiers(r)
	w.devices(r)
	w.managers(r)
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

func (w *writer) calls(r *stats.Report) {
	w.key("calls")
	w.open('{')
	for i := uint(0); i < stats.CallCount; i++ {
		w.count(stats.CallName(uintptr(i)), r.Calls[i&31])
	}
	w.close('}')
}

func (w *writer) heap(h *stats.Heap) {
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
	w.count("zero_blocks_live", h.ZeroBlocksLive)
	w.count("quarantine_blocks", h.QuarantineBlocks)
	w.count("quarantine_bytes", h.QuarantineBytes)
	w.count("unguarded_blocks", h.UnguardedBlocks)
	w.classes(h)
	w.close('}')
}

// unused is the committed memory that no block has. Counters read while other
// threads run may disagree; the answer is then 0, never a wrapped number.
func unused(h *stats.Heap) uint64 {
	if h.BytesLive > h.BytesCommitted {
		return 0
	}
	return h.BytesCommitted - h.BytesLive
}

func (w *writer) classes(h *stats.Heap) {
	w.key("size_classes")
	w.open('[')
	for i := uint(0); i < stats.ClassMax; i++ {
		c := &h.SizeClasses[i&(stats.ClassMax-1)]
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

func (w *writer) policy(p *stats.Policy) {
	w.key("policy")
	w.open('{')
	w.word("default_hint", hintNames[p.DefaultHint&7])
	w.word("on_softcap", softcapNames[p.OnSoftcap&3])
	w.word("on_hardcap", hardcapNames[p.OnHardcap&1])
	w.word("throttle", throttleNames[p.Throttle&1])
	w.word("model", modelNames[p.Model&1])
	w.count("rules", p.Rules)
	w.close('}')
}

func (w *writer) hints(r *stats.Report) {
	w.key("hints")
	w.open('{')
	for i := uint32(0); i < config.HintCount; i++ {
		w.count(hintNames[i&7], r.HintBytes[i&7])
	}
	w.close('}')
}

func (w *writer) nodes(r *stats.Report) {
	w.key("nodes")
	w.open('[')
	for i := uint64(0); i < r.NodeCount && i < stats.NodeMax; i++ {
		w.item()
		w.dec(r.Nodes[i&(stats.NodeMax-1)])
	}
	w.close(']')
	w.truth("bytes_per_node_sampled", r.NodesSampled != 0)
}
