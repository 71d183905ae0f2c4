package cudahook

import (
	"testing"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// managed is a program on a device with so much managed memory.
func managed(t *testing.T, memory uint64, set func(*config.CUDA)) *prog {
	t.Helper()
	return newProg(t, memory, func(c *config.CUDA) {
		c.Managed = true
		if set != nil {
			set(c)
		}
	})
}

// hinted is the result of a request for memory with a hint.
func (p *prog) hinted(op Op, n uint64, hint uint32) uint64 {
	p.t.Helper()
	return p.result(op, func(r *Request) { r.Bytes, r.Stream, r.Hint = n, 7, 1+uint64(hint) })
}

// prefers fails the test unless the last block is managed memory that prefers the device,
// or the host.
func (p *prog) prefers(what string, device bool) {
	p.t.Helper()
	if a, ok := p.f.covering(p.r.Address, 1); p.r.Result != Success || !ok || !a.managed ||
		a.prefers != device {
		p.t.Fatalf("%s: result %d, block in %+v", what, p.r.Result, a)
	}
}

// TestManagedHints: only cold memory prefers the host, at once, and has blocks of its own.
func TestManagedHints(t *testing.T) {
	for _, op := range []Op{OpAlloc, OpStreamAlloc} {
		for _, n := range []uint64{1, 5000, mib, 3 * mib, 30 * mib} {
			p := managed(t, gib, nil)
			for _, hint := range []uint32{config.HintCold, config.HintHot, config.HintWarm,
				config.HintPinFast, config.HintPreferFast, config.HintCold} {
				p.hinted(op, n, hint)
				p.prefers("hint", hint != config.HintCold)
			}
			p.must(op, func(r *Request) { r.Bytes, r.Stream = n, 7 })
			p.prefers("no hint", true)
			p.is("plain segments", uint64(p.f.calls[ActMap]), 0)
			d := p.report()
			p.is("managed", d.Managed, 1)
			p.is("host blocks", d.Tiers[stats.DeviceSlow].AllocCalls, 2)
			p.is("device blocks", d.Tiers[stats.DeviceFast].AllocCalls, 5)
			p.is("host bytes", d.BytesSpilled+d.BytesReserved, devices[0].host+devices[0].reserved)
			if d.BytesSpilled < 2*n || d.BytesReserved < 5*n {
				t.Errorf("%d bytes charged to the host, %d to the device", d.BytesSpilled,
					d.BytesReserved)
			}
		}
	}
}

// TestManagedDefaultHint: TA_DEFAULT_HINT=cold is a hint, too.
func TestManagedDefaultHint(t *testing.T) {
	p := managed(t, gib, nil)
	settings.hint = uint64(config.HintCold)
	p.alloc(10 * mib)
	p.prefers("default hint", false)
	p.hinted(OpAlloc, 10*mib, config.HintWarm)
	p.prefers("the thread's own", true)
}

// TestManagedReuse: free blocks of one side are not for the other.
func TestManagedReuse(t *testing.T) {
	p := managed(t, gib, nil)
	var blocks [4]uint64
	for i, hint := range []uint32{config.HintWarm, config.HintCold, config.HintHot,
		config.HintCold} {
		p.hinted(OpStreamAlloc, 3*mib, hint)
		p.prefers("stream's block", hint != config.HintCold)
		blocks[i] = p.r.Address
		p.sfree(blocks[i], 7)
	}
	if blocks[0] != blocks[2] || blocks[1] != blocks[3] || blocks[0] == blocks[1] {
		t.Errorf("blocks at %#x", blocks)
	}
	p.is("segments", p.report().Segments, 2)
	p.is("misses", p.report().Misses, 2)
}

// TestManagedTake: a call without a request has no hint, so there is none.
func TestManagedTake(t *testing.T) {
	for _, on := range []bool{false, true} {
		p := newProg(t, gib, func(c *config.CUDA) { c.Managed = on })
		p.sfree(p.salloc(5000, 7), 7)
		devices[0].primary, devices[0].slot = 0xc1, heapOf(0xc1).slot
		at := Take(8, 0, 7, 5000)
		if on != (at == 0) {
			t.Errorf("managed %v: %#x", on, at)
		}
		if at == 0 {
			at = uintptr(p.salloc(5000, 7))
		}
		if !Give(8, 0, 7, at) {
			t.Errorf("managed %v: the free needs a request", on)
		}
		p.hinted(OpStreamAlloc, 5000, config.HintCold)
		if cold := uintptr(p.r.Address); on && Give(8, 0, 7, cold) {
			t.Error("a block on the host goes to an exact-size bin of the device")
		}
	}
}

// TestManagedMemoryIsFull: what prefers the device is not more than it has, though the driver
// would give it; the program's own managed memory is its own affair.
func TestManagedMemoryIsFull(t *testing.T) {
	p := managed(t, 100*mib, nil)
	p.alloc(60 * mib)
	p.f.memory[0] = 900 * mib // for what is foreign
	p.must(OpForeign, func(r *Request) { r.Bytes = 300 * mib })
	p.is("above", p.result(OpAlloc, func(r *Request) { r.Bytes = 60 * mib }), ErrorOutOfMemory)
	p.hinted(OpAlloc, 60*mib, config.HintCold)
	p.prefers("cold", false)
	p.alloc(40 * mib)
	p.is("full", p.result(OpStreamAlloc, func(r *Request) { r.Bytes, r.Stream = 1, 7 }),
		ErrorOutOfMemory)
}

func TestManagedSpills(t *testing.T) {
	p := managed(t, 100*mib, func(c *config.CUDA) { c.Spill = true })
	p.hinted(OpAlloc, 80*mib, config.HintPreferFast)
	p.prefers("first", true)
	p.hinted(OpAlloc, 80*mib, config.HintPreferFast)
	p.prefers("above the device's memory", false)
	p.is("hot", p.hinted(OpAlloc, 80*mib, config.HintHot), ErrorOutOfMemory)
	p.is("pinned", p.hinted(OpAlloc, 80*mib, config.HintPinFast), ErrorOutOfMemory)
	p.is("spilled", p.report().BytesSpilled, 80*mib)
}

// TestManagedHardCap: the cap is one for what is on the device.
func TestManagedHardCap(t *testing.T) {
	p := managed(t, gib, func(c *config.CUDA) { c.Hard = 50 * mib })
	p.hinted(OpAlloc, 200*mib, config.HintCold)
	p.prefers("cold", false)
	p.alloc(40 * mib)
	p.is("above", p.result(OpAlloc, func(r *Request) { r.Bytes = 20 * mib }), ErrorOutOfMemory)
	p.is("cap", p.report().Tiers[stats.DeviceFast].CapacityHard, 50*mib)
	p.is("violations", p.report().Tiers[stats.DeviceFast].CapacityViolations, 1)
}

// TestManagedHostIsFull: cold memory that the host's cap has no room for is on the device,
// after what the host has idle is given back.
func TestManagedHostIsFull(t *testing.T) {
	p := managed(t, gib, func(c *config.CUDA) {
		c.SpillHard, c.Soft, c.Hard, c.Spill = 50*mib,
			60*mib, 100*mib, true
	})
	p.hinted(OpAlloc, 40*mib, config.HintCold)
	p.prefers("first", false)
	first := p.r.Address
	for range 2 { // the second is over the soft cap
		p.hinted(OpAlloc, 40*mib, config.HintCold)
		p.prefers("the host is full", true)
	}
	p.is("both are full", p.hinted(OpAlloc, 40*mib, config.HintCold), ErrorOutOfMemory)
	p.is("refused by the host", p.report().Tiers[stats.DeviceSlow].Refused, 1)
	p.free(first)
	p.hinted(OpAlloc, 20*mib, config.HintCold)
	p.prefers("in place of the idle one", false)
	p.is("host", p.report().BytesSpilled, 20*mib)
	p.f.fail[ActMapManaged] = ErrorOutOfMemory
	p.hinted(OpAlloc, 20*mib, config.HintCold)
	p.prefers("the driver has no more for the host", true)
	p.is("driver", p.report().DriverRefused, 1)
}

// TestManagedFence: on the device such a request looks for other streams' blocks, as all do.
func TestManagedFence(t *testing.T) {
	p := managed(t, gib, func(c *config.CUDA) { c.SpillHard = mib })
	a := p.salloc(30*mib, 9)
	p.sfree(a, 9)
	p.is("result", p.hinted(OpStreamAlloc, 30*mib, config.HintCold), Success)
	p.is("block", p.r.Address, a)
	p.is("segments", p.report().Segments, 1)
}

// TestUnmanaged: a driver without managed memory gives plain memory, to this request and to
// all later ones.
func TestUnmanaged(t *testing.T) {
	for _, code := range []uint64{801, ErrorInvalidValue} {
		for _, hint := range []uint32{config.HintWarm, config.HintCold} {
			p := managed(t, gib, func(c *config.CUDA) {
				c.Warmups, c.Warmup[0] = 1, config.Warm{Bytes: 4 * kib, Count: 600}
			})
			p.f.unmanaged = code
			p.is("first", p.hinted(OpStreamAlloc, 40*mib, hint), Success)
			p.is("second", p.hinted(OpAlloc, 40*mib, hint), Success)
			if a, _ := p.f.covering(p.r.Address, 1); a.managed {
				t.Error("managed memory")
			}
			p.is("asked once", uint64(p.f.calls[ActMapManaged]), 1)
			d := p.report()
			p.is("managed", d.Managed, 0)
			p.is("refused", d.Refused+d.DriverRefused, 0)
			p.is("host", devices[0].host, 0)
			p.is("warmed", min(d.BlocksWarmed, 600), 600)
		}
	}
}

// TestUnmanagedWarmup: the first to be refused is a segment of a warm-up.
func TestUnmanagedWarmup(t *testing.T) {
	p := managed(t, gib, nil)
	p.f.unmanaged = 801
	p.must(OpWarmup, func(r *Request) { r.Bytes, r.Count, r.Hint = 30*mib, 2, 1 })
	p.is("managed", p.report().Managed, 0)
	p.is("reserved", p.report().BytesReserved, 60*mib)
}

// TestManagedRefusedOnce: a capture that has begun meanwhile is in the way for once only.
func TestManagedRefusedOnce(t *testing.T) {
	p := managed(t, gib, nil)
	p.f.fail[ActMapManaged] = errorCapture
	p.alloc(10 * mib)
	p.is("plain", uint64(p.f.calls[ActMap]), 1)
	p.is("managed", p.report().Managed, 1)
	p.alloc(10 * mib)
	p.prefers("next", true)
}

// TestSpillUnsupported: where all others are refused by the caps the driver's error is the
// program's, as without TA_CUDA_MANAGED.
func TestSpillUnsupported(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.Spill = 10*mib, true })
	p.alloc(10 * mib)
	p.f.unmanaged = 801
	p.is("result", p.result(OpAlloc, func(r *Request) { r.Bytes = 10 * mib }), 801)
	p.is("host", devices[0].host, 0)
}

// TestManagedCapture: a graph's pool is on the device whatever the hint says, and a plain call
// while a graph is captured is the driver's.
func TestManagedCapture(t *testing.T) {
	p := managed(t, gib, nil)
	p.pool(4, 1)
	p.capture(1)
	p.hinted(OpStreamAlloc, 3*mib, config.HintCold)
	p.prefers("in a graph", true)
	p.hinted(OpAlloc, 3*mib, config.HintCold)
	p.is("foreign", p.report().ForeignCalls, 1)
	p.capture(0)
	p.pool(4, 0)
}

// TestManagedInfo: what was not touched yet is not free, though the driver says so.
func TestManagedInfo(t *testing.T) {
	p := managed(t, gib, nil)
	info := func(free, want uint64) {
		t.Helper()
		p.must(OpInfo, func(r *Request) { r.Value, r.Extra = free, gib })
		p.f.memory[0] = gib
		p.is("total", p.r.Extra, gib)
		p.is("free", p.r.Value, want)
	}
	a := p.alloc(300 * mib)
	p.hinted(OpAlloc, 100*mib, config.HintCold)
	info(gib, gib-300*mib)
	p.free(a)
	info(gib, gib)
	p.alloc(300 * mib)
	p.f.used[0] = 900 * mib // others have it
	info(gib-900*mib, gib-900*mib)
	p.f.used[0] = 0
	// managed by the program, and not touched
	p.must(OpForeign, func(r *Request) { r.Bytes = 200 * mib })
	info(gib, gib-300*mib)
}

// TestManagedZero: both kinds of segments are cleared.
func TestManagedZero(t *testing.T) {
	p := managed(t, gib, func(c *config.CUDA) { c.Zero = true })
	p.hinted(OpAlloc, 10*mib, config.HintCold)
	p.hinted(OpAlloc, 10*mib, config.HintHot)
	p.is("cleared", uint64(p.f.calls[ActZero]), 2)
}

// TestManagedContextEnd: what was being mapped for either side is charged to nobody.
func TestManagedContextEnd(t *testing.T) {
	p := managed(t, gib, nil)
	p.hinted(OpAlloc, 10*mib, config.HintCold)
	p.alloc(10 * mib)
	var under [2]*Request
	for i, hint := range []uint32{config.HintCold, config.HintWarm} {
		r := newRequest(16 + 8*uint64(i))
		*r = Request{Token: r.Token, Now: p.f.now, Op: OpAlloc, Context: 0xc1, Bytes: 50 * mib,
			Hint: 1 + uint64(hint)}
		p.asks("action", Step(r), ActMapManaged)
		p.is("place", r.PreferDevice, uint64(i))
		under[i] = r
	}
	p.must(OpContextEnd, nil)
	p.f.allocs = map[uint64]fakeAlloc{}
	for _, r := range under {
		r.Result, r.Value = Success, 0x123000
		p.asks("action", Step(r), ActDone)
		p.is("result", r.Result, ErrorDeinitialized)
	}
	p.is("device", devices[0].reserved, 0)
	p.is("host", devices[0].host, 0)
}

// TestManagedHostIsPending: where neither side has room a cold request waits for what the
// host has still pending, as others do for what the device has.
func TestManagedHostIsPending(t *testing.T) {
	p := managed(t, 100*mib, func(c *config.CUDA) { c.ReuseEvent, c.SpillHard = true, 40*mib })
	p.alloc(90 * mib)
	p.hinted(OpAlloc, 40*mib, config.HintCold)
	p.prefers("first", false)
	p.f.launch(0xc1, 7, p.r.Address, 40*mib, 1)
	p.free(p.r.Address)
	p.hinted(OpAlloc, 40*mib, config.HintCold)
	p.prefers("after the wait", false)
	p.is("both are full", p.hinted(OpAlloc, 40*mib, config.HintCold), ErrorOutOfMemory)

	p = managed(t, gib, func(c *config.CUDA) { c.Hard = 100 * mib })
	p.alloc(90 * mib)
	p.f.unmanaged = 801
	p.is("there is no managed memory", p.hinted(OpAlloc, 40*mib, config.HintCold), ErrorOutOfMemory)
}

// TestManagedBesideForeign: a call that the driver serves itself takes no room from the
// segments, neither while it is under way nor when it has failed.
func TestManagedBesideForeign(t *testing.T) {
	for _, result := range []uint64{Success, 719} {
		p := managed(t, 100*mib, nil)
		p.alloc(10 * mib)
		r := newRequest(16)
		*r = Request{Token: r.Token, Now: p.f.now, Op: OpForeign, Context: 0xc1, Bytes: 60 * mib}
		p.asks("action", Step(r), ActDriver)
		p.alloc(80 * mib)
		p.prefers("beside", true)
		r.Result, r.Value = result, 0x123000
		p.asks("done", Step(r), ActDone)
		p.is("foreign", devices[0].foreign, (1-min(result, 1))*60*mib)
		p.is("above", p.result(OpAlloc, func(r *Request) { r.Bytes = 20 * mib }), ErrorOutOfMemory)
	}
}

// TestManagedKernelFailed: an error that says nothing of managed memory does not end it.
func TestManagedKernelFailed(t *testing.T) {
	p := managed(t, gib, nil)
	for _, code := range []uint64{4, 201, 700, 709, 719, 999} {
		p.f.fail[ActMapManaged] = code
		p.is("result", p.hinted(OpAlloc, 10*mib, config.HintWarm), Success)
		p.is("managed", p.report().Managed, 1)
	}
	p.alloc(20 * mib)
	p.prefers("next", true)
}

// TestManagedIdles: the limit on idle segments is one for both sides, the longest idle go first.
func TestManagedIdles(t *testing.T) {
	p := managed(t, gib, nil)
	p.is("configured", Configure(8, 0, ConfigGlobal, 2), 1)
	var blocks []uint64
	for _, hint := range []uint32{config.HintCold, config.HintCold, config.HintCold,
		config.HintWarm} {
		p.hinted(OpAlloc, 10*mib, hint)
		blocks = append(blocks, p.r.Address)
	}
	for _, b := range blocks {
		p.free(b)
	}
	p.is("on the host", devices[0].host, 10*mib)
	p.is("on the device", devices[0].reserved, 10*mib)
}
