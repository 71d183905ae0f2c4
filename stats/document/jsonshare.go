package document

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// managers writes the key "managers", unless the process has no memory manager. The instances of
// one manager are adjacent in r.Shares.
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
			w.manager(s)
			w.key("instances")
			w.open('[')
		}
		w.item()
		w.open('{')
		w.share(s)
		w.close('}')
		if i+1 == r.ShareCount || i+1 == stats.ShareMax ||
			r.Shares[(i+1)&(stats.ShareMax-1)].Manager != s.Manager {
			w.close(']')
			w.close('}')
		}
	}
	w.close(']')
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
