package cudahook

import (
	"testing"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

func TestHardCap(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 100 * mib })
	a := p.alloc(60 * mib)
	p.is("above the cap", p.result(OpAlloc, func(r *Request) { r.Bytes = 60 * mib }),
		ErrorOutOfMemory)
	p.free(a)
	p.alloc(80 * mib) // the cached segment goes back first
	p.is("releases", p.report().Releases, 1)
	p.is("alone above the cap", p.result(OpAlloc, func(r *Request) { r.Bytes = 101 * mib }),
		ErrorOutOfMemory)
	d := p.report()
	p.is("refused", d.Refused, 2)
	p.is("violations", d.Tiers[stats.DeviceFast].CapacityViolations, 2)
	p.must(OpInfo, func(r *Request) { r.Value, r.Extra = 900*mib, gib })
	p.is("total", p.r.Extra, 100*mib)
	p.is("free", p.r.Value, 20*mib)
	p.must(OpTotal, func(r *Request) { r.Extra = gib })
	p.is("total", p.r.Extra, 100*mib)
}

func TestProportion(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Proportion = config.ProportionOne / 4 })
	p.alloc(200 * mib)
	p.is("above", p.result(OpAlloc, func(r *Request) { r.Bytes = 57 * mib }), ErrorOutOfMemory)
	p.alloc(56 * mib)
}

// TestTight: near the cap a segment is no larger than need be.
func TestTight(t *testing.T) {
	for _, expandable := range []bool{false, true} {
		p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.Expandable = 32*mib, expandable })
		p.salloc(18*mib, 7)
		p.salloc(6*mib, 7)
		p.is("reserved", p.report().BytesReserved, 24*mib)
	}
}

// TestDriverOutOfMemory: the driver has less than the caps allow.
func TestDriverOutOfMemory(t *testing.T) {
	p := newProg(t, 100*mib, nil)
	a, b := p.alloc(30*mib), p.alloc(30*mib)
	p.free(a)
	p.free(b)
	p.alloc(80 * mib)
	p.is("releases", p.report().Releases, 2)
	if n := p.report().DriverRefused; n == 0 {
		t.Error("nothing refused")
	}
	p.is("no room", p.result(OpAlloc, func(r *Request) { r.Bytes = 30 * mib }), ErrorOutOfMemory)
	p.is("foreign, no room", p.result(OpForeign, func(r *Request) { r.Bytes = 30 * mib }),
		ErrorOutOfMemory)
	p.alloc(10 * mib)
}

// TestWaitBeforeRefusal: frees that are pending are waited for before a request fails.
func TestWaitBeforeRefusal(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.ReuseEvent = 64*mib, true })
	a := p.alloc(60 * mib)
	p.f.launch(0xc1, 5, a, 60*mib, 0)
	p.free(a)
	p.alloc(40 * mib)
	p.is("waits", p.report().Waits, 1)
}

func TestSpill(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Soft, c.Hard, c.Spill = 50*mib, 100*mib, true })
	hinted := func(n, hint uint64) uint64 {
		return p.result(OpAlloc, func(r *Request) { r.Bytes, r.Hint = n, 1+hint })
	}
	p.is("warm", hinted(60*mib, uint64(config.HintWarm)), Success)
	p.is("spilled", p.report().Spills, 0)
	p.is("cold", hinted(10*mib, uint64(config.HintCold)), Success) // over the soft cap
	p.is("spilled", p.report().BytesSpilled, 10*mib)
	p.is("hot", hinted(60*mib, uint64(config.HintHot)), ErrorOutOfMemory)
	p.is("pinned", hinted(60*mib, uint64(config.HintPinFast)), ErrorOutOfMemory)
	p.is("warm", hinted(60*mib, uint64(config.HintWarm)), Success)
	spilled := p.r.Address
	p.is("spilled", p.report().BytesSpilled, 70*mib)
	p.is("managed", uint64(p.f.calls[ActMapManaged]), 2)
	p.free(spilled)
	p.is("again", hinted(58*mib, uint64(config.HintWarm)), Success)
	p.is("address", p.r.Address, spilled)
	d := p.report()
	p.is("slow tier", d.Tiers[stats.DeviceSlow].BytesCurrent, 70*mib)
	p.is("slow allocations", d.Tiers[stats.DeviceSlow].AllocCalls, 3)
	p.is("slow frees", d.Tiers[stats.DeviceSlow].FreeCalls, 1)
}

// TestSpillCap: the host has a cap of its own.
func TestSpillCap(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) {
		c.Hard, c.Spill, c.SpillHard = 10*mib, true,
			30*mib
	})
	p.alloc(10 * mib)
	a := p.alloc(20 * mib)
	p.is("above", p.result(OpAlloc, func(r *Request) { r.Bytes = 20 * mib }), ErrorOutOfMemory)
	p.f.fail[ActMapManaged] = ErrorOutOfMemory
	p.is("driver", p.result(OpAlloc, func(r *Request) { r.Bytes = 10 * mib }), ErrorOutOfMemory)
	p.alloc(10 * mib)
	d := p.report()
	p.is("cap", d.Tiers[stats.DeviceSlow].CapacityHard, 30*mib)
	p.is("current", d.Tiers[stats.DeviceSlow].BytesCurrent, 30*mib)
	p.is("refused", d.Tiers[stats.DeviceSlow].Refused, 1)
	p.free(a)
	p.must(OpTrim, nil)
	p.is("current", p.report().Tiers[stats.DeviceSlow].BytesCurrent, 10*mib)
	endContext(8, 0xc1)
	p.f.allocs = map[uint64]fakeAlloc{}
	p.is("after the context", devices[0].host, 0)
}

func TestForeign(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 100 * mib })
	a := p.alloc(90 * mib)
	p.free(a)
	p.must(OpForeign, func(r *Request) { r.Bytes = 50 * mib }) // the cache makes room
	b := p.r.Address
	p.is("foreign", p.report().BytesForeign, 50*mib)
	p.is("too much", p.result(OpForeign, func(r *Request) { r.Bytes = 60 * mib }), ErrorOutOfMemory)
	if action, _ := p.call(OpRange, func(r *Request) { r.Address = b }); action != ActPass {
		t.Error("a foreign block's range is answered")
	}
	p.f.fail[ActDriver] = 700
	p.is("failing free", p.result(OpFree, func(r *Request) { r.Address = b }), 700)
	p.is("foreign", p.report().BytesForeign, 50*mib)
	p.free(b)
	p.is("foreign", p.report().BytesForeign, 0)
	p.is("reserved", devices[0].reserved, 0)
}

func TestTrimAndDecay(t *testing.T) {
	p := newProg(t, gib, nil)
	for _, n := range []uint64{10 * mib, 20 * mib, 30 * mib} {
		p.free(p.alloc(n))
		p.f.now += 1e9
	}
	p.is("reserved", p.report().BytesReserved, 60*mib)
	p.must(OpTrim, func(r *Request) { r.Bytes = 50 * mib }) // what was idle for longest goes first
	p.is("reserved", p.report().BytesReserved, 50*mib)
	p.f.now += decay - 15e8
	p.free(p.alloc(5000))
	p.is("reserved", p.report().BytesReserved, 32*mib)
	p.must(OpTrim, nil)
	p.is("reserved", p.report().BytesReserved, 0)
}

func TestPressure(t *testing.T) {
	p := newProg(t, gib, nil)
	p.alloc(900 * mib)
	p.free(p.alloc(60 * mib))
	p.f.now += 2 * recently
	p.alloc(10 * mib) // sees that 64 MiB are free
	p.is("pressures", p.report().Pressures, 0)
	p.f.now += 2 * lookEvery
	p.alloc(20 * mib)
	p.f.now += 2 * lookEvery
	p.alloc(6 * mib)
	d := p.report()
	if d.Pressures == 0 || d.Releases == 0 {
		t.Errorf("%d pressures, %d releases with %d of the device reserved", d.Pressures,
			d.Releases, d.BytesReserved)
	}
}

func TestCacheLimit(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.CacheLimit = 40 * mib })
	var all []uint64
	for range 6 {
		all = append(all, p.alloc(15*mib), p.salloc(15*mib, 7))
	}
	for i, a := range all {
		if i%2 == 0 {
			p.free(a)
		} else {
			p.sfree(a, 7)
		}
		if d := p.report(); d.BytesCachedLocal+d.BytesCachedGlobal > 40*mib {
			t.Fatalf("%d bytes are cached", d.BytesCachedLocal+d.BytesCachedGlobal)
		}
	}
}

func TestThrottle(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.BW, c.Lat = 1<<30, 1000 })
	for range 64 {
		p.sfree(p.salloc(16*mib, 7), 7)
	}
	ns := p.report().Tiers[stats.DeviceFast].SimulatedWaitNs
	want := uint64(1e9) // 1 GiB at 1 GiB/s
	if ns < want*9/10 || ns > want*11/10 {
		t.Errorf("%d ns counted", ns)
	}
}

// TestNonReusableSegment: nothing of a segment is handed out again that the driver treats in a way
// of its own, and it goes back when it is free.
func TestNonReusableSegment(t *testing.T) {
	p := newProg(t, gib, plainSegments)
	a, b, c := p.salloc(5000, 7), p.salloc(5000, 7), p.salloc(30*mib, 7)
	p.sfree(b, 7)
	for _, address := range []uint64{a + 100, c} {
		p.must(OpNonReusable, func(r *Request) { r.Address = address })
	}
	p.sfree(c, 7)
	p.is("releases", p.report().Releases, 1)
	if d := p.salloc(5000, 7); d == b || d-a < 2*mib {
		t.Errorf("%#x is handed out", d)
	}
	p.sfree(a, 7)
	p.is("releases", p.report().Releases, 2)
}
