package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

func (p *prog) pool(id, count uint64) {
	p.t.Helper()
	p.must(OpPool, func(r *Request) { r.Address, r.Bytes, r.Count = id, 2, count })
}

func (p *prog) capture(on uint64) {
	p.t.Helper()
	p.must(OpCapture, func(r *Request) { r.Count = on })
}

// TestPoolKeptByTrim: what a graph's pool has free stays mapped: the graph may be launched again.
func TestPoolKeptByTrim(t *testing.T) {
	p := newProg(t, gib, nil)
	p.pool(4, 1)
	p.capture(1)
	a := p.salloc(30*mib, 7)
	p.sfree(a, 7)
	p.capture(0)
	p.pool(4, 0)
	p.must(OpTrim, nil)
	if _, ok := p.f.covering(a, 30*mib); !ok {
		t.Error("trim unmapped memory of a graph that may be launched again")
	}
}

func TestPoolKeptByDecay(t *testing.T) {
	p := newProg(t, gib, nil)
	p.pool(4, 1)
	a := p.salloc(30*mib, 7)
	p.sfree(a, 7)
	p.pool(4, 0)
	x := p.alloc(100)
	p.f.now += decay + 1
	p.free(x)
	p.f.now += decay + 1
	p.free(p.alloc(40 * mib))
	if _, ok := p.f.covering(a, 30*mib); !ok {
		t.Error("decay unmapped memory of a graph that may be launched again")
	}
}

// TestPoolShared: a pool that two graphs have begun lives until both have released it.
func TestPoolShared(t *testing.T) {
	p := newProg(t, gib, nil)
	p.pool(4, 1) // graph 1
	a := p.salloc(30*mib, 7)
	p.sfree(a, 7)
	p.pool(4, 0)
	p.pool(4, 1) // graph 2
	b := p.salloc(40*mib, 7)
	p.sfree(b, 7)
	p.pool(4, 0)
	p.pool(4, 2) // graph 1 is destroyed, graph 2 lives
	if c := p.salloc(40*mib, 9); c == b {
		t.Error("memory of the second graph is handed out while the graph lives")
	}
}

// TestPoolsNested: the end of one pool leaves the other one active.
func TestPoolsNested(t *testing.T) {
	p := newProg(t, gib, nil)
	p.pool(4, 1)
	p.pool(5, 1)
	p.pool(4, 0) // pool 5 is still begun
	a := p.salloc(30*mib, 7)
	p.sfree(a, 7)
	p.pool(5, 0)
	if b := p.salloc(30*mib, 7); b == a {
		t.Error("what was allocated in pool 5 is handed out outside of it")
	}
}

// TestPoolNeverSpills: a pool's memory is on the device, or the request is refused.
func TestPoolNeverSpills(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.Spill = 40*mib, true })
	p.pool(4, 1)
	p.capture(1)
	p.salloc(30*mib, 7)
	p.is("within the pool", p.result(OpStreamAlloc,
		func(r *Request) { r.Bytes, r.Stream = 30*mib, 7 }), ErrorOutOfMemory)
	p.capture(0)
	p.pool(4, 0)
	p.salloc(30*mib, 7)
	p.is("outside", p.report().Spills, 1)
}

// TestPoolsGoneTogether: a pool that is released while the end of another waits has a wait
// of its own.
func TestPoolsGoneTogether(t *testing.T) {
	p := newProg(t, gib, nil)
	p.pool(4, 1)
	p.sfree(p.salloc(30*mib, 7), 7)
	p.pool(5, 1)
	a := p.salloc(40*mib, 7)
	p.sfree(a, 7)
	p.pool(5, 0)
	q, z := newRequest(16), newRequest(24)
	*q = Request{Token: 16, Now: p.f.now, Op: OpPool, Context: 0xc1, Address: 4, Bytes: 2, Count: 2}
	p.asks("action", Step(q), ActSynchronize)
	p.f.act(q, ActSynchronize)
	p.f.launch(0xc1, 7, a, 40*mib, 0) // the graph of pool 5 is launched, and destroyed
	*z = Request{Token: 24, Now: p.f.now, Op: OpPool, Context: 0xc1, Address: 5, Bytes: 2, Count: 2}
	p.asks("action", Step(z), ActSynchronize)
	p.asks("action", Step(q), ActDone)
	b := p.salloc(40*mib, 9)
	if err := p.f.unfinished(b, 40*mib, streamKey{0xc1, 9}); err != nil {
		t.Errorf("%#x: %v", b, err)
	}
	p.f.act(z, ActSynchronize)
	p.asks("action", Step(z), ActDone)
}

// TestPoolGoneInCapture: what a pool had that was released during a capture is had afterwards.
func TestPoolGoneInCapture(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 60 * mib })
	p.pool(4, 1)
	a := p.salloc(20*mib, 7)
	b := p.salloc(20*mib, 7)
	c := p.salloc(20*mib, 7)
	p.pool(4, 0)
	p.sfree(a, 7)
	_, _ = b, c
	p.capture(1)
	p.pool(4, 2)
	p.capture(0)
	p.is("result", p.result(OpStreamAlloc, func(r *Request) { r.Bytes, r.Stream = 5000, 9 }),
		Success)
}

// TestPoolGoneInCaptureSmall: the same of a segment that is not idle.
func TestPoolGoneInCaptureSmall(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 2 * mib })
	p.pool(4, 1)
	a, b := p.salloc(900*kib, 7), p.salloc(900*kib, 7)
	p.pool(4, 0)
	p.sfree(a, 7)
	_ = b // an output of the graph, still in use
	p.capture(1)
	p.pool(4, 2)
	p.capture(0)
	p.is("result", p.result(OpStreamAlloc, func(r *Request) { r.Bytes, r.Stream = 5000, 9 }),
		Success)
}

// TestInfoWithoutPools: what a private pool has free counts as in use.
func TestInfoWithoutPools(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 400 * mib })
	p.pool(4, 1)
	a := p.salloc(300*mib, 7)
	p.sfree(a, 7)
	p.pool(4, 0)
	p.must(OpInfo, func(r *Request) { r.Value, r.Extra = gib-300*mib, gib })
	p.is("free", p.r.Value, 100*mib)
}
