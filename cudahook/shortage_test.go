package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

// TestTrimWaitsForPendingFrees: trim gives back what was freed last, too.
func TestTrimWaitsForPendingFrees(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent = true })
	p.free(p.alloc(300 * mib))
	p.must(OpTrim, nil)
	p.is("reserved", p.report().BytesReserved, 0)
}

// TestOtherContextsPending: what another context has freed is waited for before a request
// is refused.
func TestOtherContextsPending(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent, c.Hard = true, 400*mib })
	p.f.addContext(0xc2, 0, gib)
	p.free(p.alloc(300 * mib))
	p.is("in another context", p.result(OpAlloc,
		func(r *Request) { r.Context, r.Bytes = 0xc2, 300*mib }), Success)
}

// TestEventsAreFound: events are used again however many contexts have some.
func TestEventsAreFound(t *testing.T) {
	p := newProg(t, 8*gib, func(c *config.CUDA) { c.ReuseEvent = true })
	for i := range uint64(10) {
		c := 0xd0 + i
		p.f.addContext(c, 1+i%4, gib)
		p.must(OpPeer, func(r *Request) { r.Context, r.Address = c, 0xc1 })
	}
	for range 100 {
		var all []uint64
		for range pendingMax {
			all = append(all, p.alloc(mib))
		}
		for _, a := range all {
			p.free(a)
		}
	}
	if n := p.f.calls[ActEventCreate]; n > 4*11 {
		t.Errorf("%d events for pending frees of 11 blocks", n)
	}
}

// TestHandlerOfOtherContext: a free in a handler is lost, and not the driver's, whatever
// context is current.
func TestHandlerOfOtherContext(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 0, gib)
	a := p.alloc(5000)
	p.must(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xc2, 5000 })
	heaps[0].lock.Take(8)
	action, _ := p.call(OpFree, func(r *Request) { r.Address, r.Context = a, 0xc2 })
	heaps[0].lock.Release()
	p.asks("action", action, ActDone)
}

// TestPeakWithoutRefused: what the driver refuses was never there.
func TestPeakWithoutRefused(t *testing.T) {
	p := newProg(t, gib, nil)
	p.alloc(5000)
	p.is("too much", p.result(OpAlloc, func(r *Request) { r.Bytes = 4 * gib }), ErrorOutOfMemory)
	if d := p.report(); d.Tiers[0].BytesPeak > gib {
		t.Errorf("a peak of %d bytes on a device with %d", d.Tiers[0].BytesPeak, gib)
	}
}

// TestTooManyContexts: a context that there is no room for does not get around a cap.
func TestTooManyContexts(t *testing.T) {
	p := newProg(t, 8*gib, func(c *config.CUDA) { c.Hard = 100 * mib })
	for i := range uint64(heapMax) {
		p.f.addContext(0xd0+i, 0, 8*gib)
		action, _ := p.call(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xd0+i, 100 })
		if action == ActDone && p.r.Result == Success {
			p.free(p.r.Address)
		}
		p.must(OpTrim, func(r *Request) { r.Context = 0xd0 + i })
	}
	p.f.addContext(0xf9, 0, 8*gib)
	if action, _ := p.call(OpAlloc, func(r *Request) {
		r.Context, r.Bytes = 0xf9,
			500*mib
	}); action == ActPass {
		t.Error("500 MiB are the driver's to serve, uncharged, with a hard cap of 100 MiB")
	}
}

// TestInfoOfFreshContext: a context without a heap sees what others have of the device.
func TestInfoOfFreshContext(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 400 * mib })
	p.f.addContext(0xc2, 0, gib)
	p.alloc(300 * mib)
	p.must(OpInfo, func(r *Request) { r.Context, r.Value, r.Extra = 0xc2, gib-300*mib, gib })
	p.is("free", p.r.Value, 100*mib)
}

// TestInfoWithoutLost: what the driver has failed on does not count as free.
func TestInfoWithoutLost(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 400 * mib })
	a := p.alloc(300 * mib)
	p.f.fail[ActSynchronize] = 719
	p.is("free", p.result(OpFree, func(r *Request) { r.Address = a }), 719)
	p.must(OpInfo, func(r *Request) { r.Value, r.Extra = gib-300*mib, gib })
	p.is("free bytes", p.r.Value, 100*mib)
}

// eventsWithin is a program with event reuse and a hard cap, and the first step of another
// thread's request.
func eventsWithin(t *testing.T, hard uint64) (*prog, *Request) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent, c.Hard = true, hard })
	return p, newRequest(16)
}

// TestFreedInOtherHands: what a thread has freed serves others once the device has been waited
// for, although that thread is still about to record the event of its frees.
func TestFreedInOtherHands(t *testing.T) {
	p, r := eventsWithin(t, 4*mib*pendingMax)
	var all []uint64
	for range pendingMax {
		all = append(all, p.alloc(4*mib))
	}
	last := len(all) - 1
	for _, a := range all[:last] {
		p.free(a)
	}
	*r = Request{Token: 16, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: all[last]}
	action := Step(r)
	p.asks("the last free", action, ActEventCreate)
	p.is("meanwhile", p.result(OpAlloc, func(r *Request) { r.Bytes = 100 * mib }), Success)
	p.f.act(r, action)
	p.asks("then", p.f.run(r), ActDone)
}

// TestWaitsAnew: a request is not refused because other threads took what its wait made free, and
// freed as much again, in its context or another one. It is when they keep it.
func TestWaitsAnew(t *testing.T) {
	for _, test := range []struct {
		context uint64
		keep    bool
	}{{0xc1, false}, {0xc1, true}, {0xc2, false}, {0xc2, true}} {
		p, r := eventsWithin(t, 100*mib)
		p.f.addContext(0xc2, 0, gib)
		use := func() (a uint64) {
			a = p.alloc(90 * mib)
			p.f.launch(0xc1, 5, a, 90*mib, 0)
			return a
		}
		p.free(use())
		*r = Request{Token: 16, Now: p.f.now, Op: OpAlloc, Context: test.context, Bytes: 50 * mib}
		action, kept := Step(r), false
		for ; action > ActPass; action = Step(r) {
			p.f.act(r, action)
			if action != ActSynchronize || r.renewed != 0 || kept {
				continue
			}
			a := use()
			if kept = test.keep; !kept {
				p.free(a)
			}
		}
		p.asks("action", action, ActDone)
		want := Success
		if test.keep {
			want = ErrorOutOfMemory
		}
		p.is("result", r.Result, want)
		if test.keep == (r.renewed != 0) {
			t.Errorf("%+v: %d waits anew", test, r.renewed)
		}
	}
}
