package document

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// managers writes nothing in a process that has none.
func (w *writer) managers(r *stats.Report) {
	if r.ShareCount == 0 {
		return
	}
	w.key("managers")
	w.open('[')
	for i := uint64(0); i < r.ShareCount && i < stats.ShareMax; i++ {
		s := &r.Shares[i&(stats.ShareMax-1)]
		if i == 0 || r.Shares[(i-1)&(stats.ShareMax-1)].Manager != s.Manager {
			w.item()
			w.open('{')
			w.named("name", &s.ManagerName)
			w.count("device", s.Device)
			w.word("mode", modeNames[s.Mode&1])
			w.count("bytes_total", s.BytesTotal)
			w.count("instance_count", s.Instances)
			w.key("instances")
			w.open('[')
		}
		w.item()
		w.share(s)
		if i+1 == r.ShareCount || i+1 == stats.ShareMax ||
			r.Shares[(i+1)&(stats.ShareMax-1)].Manager != s.Manager {
			w.close(']')
			w.close('}')
		}
	}
	w.close(']')
}

func (w *writer) share(s *stats.Share) {
	w.open('{')
	w.count("id", s.Id)
	w.named("name", &s.Name)
	w.named("group", &s.Group)
	w.word("pool", poolNames[s.Manual&1])
	w.key("proportion")
	w.fraction(s.Proportion, 1_000_000)
	w.count("bytes_cap", s.BytesCap)
	w.count("bytes_live", s.BytesLive)
	w.count("bytes_peak", s.BytesPeak)
	w.count("alloc_calls", s.AllocCalls)
	w.count("free_calls", s.FreeCalls)
	w.count("refused", s.Refused)
	w.count("evictions", s.Evictions)
	w.close('}')
}

// named writes a name that ends at its first zero.
func (w *writer) named(key string, name *[48]byte) {
	at, n := uintptr(unsafe.Pointer(name)), uintptr(0)
	for n < unsafe.Sizeof(*name) && raw.LoadByte(at+n) != 0 {
		n++
	}
	w.key(key)
	w.quoted(at, n)
}
