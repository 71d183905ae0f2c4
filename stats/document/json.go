// Package document formats the report of package stats as JSON and writes it to a file. It belongs
// to the data plane. It is separate from stats because its code runs only when a report is written,
// which is usually at exit.
//
// internal/statlist generates the functions in figures.go, which write the figures one after the
// other. This package adds arrays, objects whose keys come from a table, and computed figures.
package document

import (
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// JSON writes the report at dst as snprintf would: at most size-1 bytes and a final zero, nothing
// when size is 0. It returns the length of the whole text, without the zero; the text is complete
// if that is less than size.
//
// The order of the keys never changes. sites is nil where no heap profile is taken.
func JSON(dst, size uintptr, r *stats.Report, sites *stats.Sites) (need uintptr) {
	w := writer{list: sites}
	w.begin(dst, size)
	w.open('{')
	w.report(r)
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

func (w *writer) program(r *stats.Report) {
	w.key("program")
	w.quoted(uintptr(unsafe.Pointer(&r.Program)), min(uintptr(r.ProgramLen), stats.NameSize))
}

// policyGroup writes the key "group", unless the process is in no group.
func (w *writer) policyGroup(p *stats.Policy) {
	if p.Grouped == 0 {
		return
	}
	w.key("group")
	w.open('{')
	w.group(&p.Group)
	w.close('}')
}

func (w *writer) groupName(g *stats.Group) {
	w.key("name")
	w.quoted(uintptr(unsafe.Pointer(&g.Name)), min(uintptr(g.NameLen), stats.NameSize))
}

func (w *writer) calls(r *stats.Report) {
	w.key("calls")
	w.open('{')
	for i := uint(0); i < stats.CallCount; i++ {
		w.count(stats.CallName(uintptr(i)), r.Calls[i&31])
	}
	w.close('}')
}

// unused is the committed memory outside blocks. Counters that are read while other threads run may
// disagree; the answer is then 0, never a wrapped number.
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
		w.class(c)
		w.close('}')
	}
	w.close(']')
}

func (w *writer) hints(r *stats.Report) {
	w.key("hints")
	w.open('{')
	for i := uint32(0); i < config.HintCount; i++ {
		w.count(config.HintWord(i), r.HintBytes[i&7])
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
}
