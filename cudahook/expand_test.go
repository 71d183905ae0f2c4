package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

// TestExpand: a segment is expanded by what a request lacks, and blocks cover several pieces.
func TestExpand(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	p.is("next", p.salloc(50*mib, 7), a+30*mib)
	p.is("reserved", p.report().BytesReserved, 80*mib)
	p.sfree(a+30*mib, 7)
	p.is("grown", p.salloc(80*mib, 7), a+30*mib)
	p.is("reserved", p.report().BytesReserved, 110*mib)
	p.is("segments", p.report().Segments, 1)
	p.is("reservations", uint64(p.f.calls[ActReserve]), 1)
}

// TestExpandPlain: without virtual memory management, or for plain requests, segments are those of
// cuMemAlloc.
func TestExpandPlain(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.unreserved = errorNotSupported
	p.salloc(30*mib, 7)
	p.salloc(30*mib, 7)
	p.is("maps", uint64(p.f.calls[ActMap]), 2)
	p.is("reservations", uint64(p.f.calls[ActReserve]), 1)

	p = newProg(t, gib, func(c *config.CUDA) { c.SuballocAll = true })
	p.alloc(30 * mib)
	p.is("maps", uint64(p.f.calls[ActMap]), 1)
	p.is("reservations", uint64(p.f.calls[ActReserve]), 0)
}

// TestExpandDefragments: free pieces between blocks in use are returned where memory is short, so
// that a request gets what is free in all.
func TestExpandDefragments(t *testing.T) {
	for name, set := range map[string]func(*config.CUDA){
		"driver": nil,
		"cap":    func(c *config.CUDA) { c.Hard = 400 * mib },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProg(t, 400*mib, set)
			var all [10]uint64
			for i := range all {
				all[i] = p.salloc(40*mib, 7)
			}
			for i := 0; i < len(all); i += 2 {
				p.f.launch(0xc1, 7, all[i], 40*mib, 0)
				p.sfree(all[i], 7)
			}
			big := p.salloc(200*mib, 7) // five free blocks of 40 MiB
			for i := 1; i < len(all); i += 2 {
				if all[i] >= big && all[i] < big+200*mib {
					t.Errorf("%#x is in use", all[i])
				}
				p.sfree(all[i], 7)
			}
			p.is("reserved", p.report().BytesReserved, 400*mib)
			p.sfree(big, 7)
			p.sfree(p.salloc(400*mib, 7), 7)
		})
	}
}

// TestExpandDecay: pieces that nobody has used for 10 s are returned, those beside them are not.
func TestExpandDecay(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(100*mib, 7)
	p.salloc(20*mib, 7)
	p.sfree(a, 7)
	p.f.now += decay / 2
	p.sfree(p.salloc(600, 8), 8)
	p.is("reserved", p.report().BytesReserved, 122*mib)
	p.f.now += decay
	p.sfree(p.salloc(600, 8), 8)
	p.is("reserved", p.report().BytesReserved, 22*mib)
	p.is("unmapped", uint64(p.f.calls[ActUnmapAt]), 1)
	p.is("the hole is used", p.salloc(80*mib, 7), a)
}

// TestExpandCacheLimit: pieces beyond what may be kept are returned when they are free.
func TestExpandCacheLimit(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.CacheLimit = 0 })
	a, b := p.salloc(100*mib, 7), p.salloc(20*mib, 7)
	p.f.launch(0xc1, 7, a, 100*mib, 0)
	p.sfree(a, 7)
	p.is("reserved", p.report().BytesReserved, 20*mib)
	p.sfree(b, 7)
	p.is("reserved", p.report().BytesReserved, 0)
}

// TestExpandEnd: the addresses of a context that ends go back, with all that is mapped there.
func TestExpandEnd(t *testing.T) {
	p := newProg(t, gib, nil)
	p.salloc(100*mib, 7)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc1 })
	p.is("used", p.f.used[0], 0)
	p.is("reservations", uint64(len(p.f.reserved)), 0)
}

// TestExpandPeer: a device with access to the memory gets it for what is mapped, and for what will
// be.
func TestExpandPeer(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.salloc(100*mib, 7)
	access := func() {
		p.must(OpPeer, func(r *Request) {
			r.Context, r.Address, r.Device, r.Count = 0xc2, 0xc1, 1, 1
		})
	}
	access()
	p.is("granted", uint64(p.f.calls[ActAccess]), 1)
	p.salloc(100*mib, 7)
	p.is("access of the new memory", p.f.access, 1<<1)
	p.is("granted", uint64(p.f.calls[ActAccess]), 1)

	p = newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	access() // before there is any memory
	p.salloc(100*mib, 7)
	p.is("access of the first memory", p.f.access, 1<<1)
}
