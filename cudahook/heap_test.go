package cudahook

import (
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

func TestWrongFrees(t *testing.T) {
	p := newProg(t, gib, nil)
	for _, n := range []uint64{100, 3 * mib} {
		a := p.alloc(n)
		for _, inside := range []uint64{a + 1, a + 64} {
			p.is("free inside", p.result(OpFree, func(r *Request) { r.Address = inside }),
				ErrorInvalidValue)
		}
		for _, wrong := range []uint64{0x999, 0} {
			if action, calls := p.call(OpFree,
				func(r *Request) { r.Address = wrong }); action != ActPass || calls != 0 {
				t.Fatalf("free of %#x: action %d, %d calls", wrong, action, calls)
			}
		}
		p.free(a)
		if n == 100 { // its block may have been merged, but its address begins the segment
			p.is("second free", p.result(OpFree, func(r *Request) { r.Address = a }),
				ErrorInvalidValue)
			p.is("second free, of a stream", p.result(OpStreamFree,
				func(r *Request) { r.Address = a }), ErrorInvalidValue)
			p.is("record of a free block", p.result(OpRecord, func(r *Request) { r.Address = a }),
				ErrorInvalidValue)
		}
	}
	p.is("invalid frees", p.report().FreesInvalid, 6)
	p.is("unknown frees", p.report().FreesUnknown, 4)
}

// TestConcurrentDoubleFree: the second free comes while the first waits for the device.
func TestConcurrentDoubleFree(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.alloc(5000)
	*p.r = Request{Token: 8, Op: OpFree, Context: 0xc1, Address: a}
	p.asks("action", Step(p.r), ActSynchronize)
	q := newRequest(16)
	*q = Request{Token: 16, Op: OpFree, Context: 0xc1, Address: a}
	p.asks("action", Step(q), ActDone)
	p.is("result", q.Result, ErrorInvalidValue)
	p.f.act(p.r, ActSynchronize)
	p.asks("action", Step(p.r), ActDone)
	p.is("result", p.r.Result, Success)
}

func TestPlainReuse(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.alloc(16 * mib)
	if _, calls := p.call(OpFree, func(r *Request) { r.Address = a }); calls != 1 {
		t.Errorf("a free makes %d calls", calls)
	}
	if b := p.alloc(14 * mib); b != a {
		t.Error("7/8 of a cached segment does not reuse it")
	} else {
		p.free(b)
	}
	if b := p.alloc(12 * mib); b == a {
		t.Error("3/4 of a cached segment reuses it")
	}
	if b := p.alloc(smallMax - 1); p.report().Segments != 3 {
		t.Errorf("the small block %#x has no segment of its own kind", b)
	}
	p.is("segments", p.report().Segments, 3)
	p.alloc(100)
	p.is("segments", p.report().Segments, 3)
}

// TestExactSizeBin: what a stream has freed it gets back without any call.
func TestExactSizeBin(t *testing.T) {
	p := newProg(t, gib, nil)
	for _, n := range []uint64{1, 512, 5000, mib, 3*mib + 1, 40 * mib} {
		a := p.salloc(n, 7)
		p.f.launch(0xc1, 7, a, n, 0)
		if _, calls := p.call(OpStreamFree, func(r *Request) {
			r.Address, r.Stream = a,
				7
		}); calls != 0 {
			t.Errorf("a free makes %d calls", calls)
		}
		_, calls := p.call(OpStreamAlloc, func(r *Request) { r.Bytes, r.Stream = n, 7 })
		if p.r.Address != a || calls != 0 {
			t.Errorf("%d bytes come back at %#x, not %#x, with %d calls", n, p.r.Address, a, calls)
		}
	}
	p.is("hits", p.report().HitsLocal, 6)
}

// TestExactSizeBinLimit: no more blocks lie unmerged than the bound says.
func TestExactSizeBinLimit(t *testing.T) {
	p := newProg(t, gib, nil)
	var all []uint64
	for range 3 * defaultExactLimit {
		all = append(all, p.salloc(1000, 7))
	}
	for i, a := range all {
		p.sfree(a, 7)
		if q := heaps[0].findCache(7, heaps[0].mainPool).exacts; q > defaultExactLimit {
			t.Fatalf("%d blocks in exact-size bins after %d frees", q, i)
		}
	}
}

// TestContextEnd: nothing of a context is left, and what was on its way in it ends.
func TestContextEnd(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 0, gib)
	p.alloc(5000)
	p.must(OpForeign, func(r *Request) { r.Bytes = 5000 })
	a := p.alloc(30 * mib)
	waiting, mapping := newRequest(16), newRequest(24)
	*waiting = Request{Token: 16, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: a}
	p.asks("action", Step(waiting), ActSynchronize)
	*mapping = Request{Token: 24, Now: p.f.now, Op: OpAlloc, Context: 0xc1, Bytes: 50 * mib}
	p.asks("action", Step(mapping), ActMap)
	p.must(OpContextEnd, nil)
	p.asks("action", Step(waiting), ActDone)
	p.is("result", waiting.Result, ErrorDeinitialized)
	mapping.Value = 0x123000
	p.asks("action", Step(mapping), ActDone)
	p.is("result", mapping.Result, ErrorDeinitialized)
	p.is("reserved", devices[0].reserved, 0)
	if action, _ := p.call(OpFree, func(r *Request) { r.Address = a }); action != ActPass {
		t.Error("the context's block is still known")
	}
	*p.r = Request{Token: 8, Op: OpAlloc, Context: 0xc2, Bytes: 5000}
	p.asks("action", p.f.run(p.r), ActDone)
	p.is("result", p.r.Result, Success)
}

func TestFork(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.alloc(5000)
	taken := ForkPrepare(8, true)
	if !heaps[0].lock.Held() || !tableLock.Held() {
		t.Fatal("the locks are not held")
	}
	ForkParent(taken)
	if heaps[0].lock.Held() || tableLock.Held() {
		t.Fatal("the locks are still held")
	}
	taken = ForkPrepare(8, true)
	ForkChild(8, taken)
	for _, op := range []Op{OpAlloc, OpFree, OpStreamFree, OpInfo} {
		if action, calls := p.call(op, func(r *Request) {
			r.Address, r.Bytes = a,
				100
		}); action != ActPass || calls != 0 {
			t.Errorf("operation %d in the child: action %d", op, action)
		}
	}
	p.is("devices", Report(8, true, (*[stats.DeviceMax]stats.Device)(raw.Ptr(raw.Map(64<<10)))), 1)
	off = 0
}

// TestNoWait: who must not wait leaves locks to the threads that hold them. A fork goes without,
// and a report leaves the heap out.
func TestNoWait(t *testing.T) {
	p := newProg(t, gib, nil)
	p.alloc(5000)
	heaps[0].lock.Take(16)
	if Holds(8) || !Holds(16) {
		t.Error("the heap's lock is taken for another thread's")
	}
	const first = 1
	taken := ForkPrepare(8, false)
	if taken&first != 0 || !tableLock.HeldBy(8) || !heaps[1].lock.HeldBy(8) {
		t.Errorf("the fork has taken %#x", taken)
	}
	ForkParent(taken)
	to := (*[stats.DeviceMax]stats.Device)(raw.Ptr(raw.Map(64 << 10)))
	p.is("devices", Report(8, false, to), 1)
	p.is("contexts", to[0].Contexts, 0)
	heaps[0].lock.Release()
	p.is("devices", Report(8, false, to), 1)
	p.is("contexts", to[0].Contexts, 1)
}

// TestHandler: a signal handler that interrupts the heap is passed on, but for its frees: the
// driver would free a whole segment for its first block. Those blocks are lost.
func TestHandler(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.alloc(5000)
	heaps[0].lock.Take(8)
	for op, want := range map[Op]Action{OpAlloc: ActPass, OpFree: ActDone,
		OpStreamAlloc: ActPass, OpStreamFree: ActDone} {
		if action, _ := p.call(op, func(r *Request) {
			r.Address, r.Bytes = a,
				100
		}); action != want {
			t.Errorf("operation %d: action %d", op, action)
		}
	}
	heaps[0].lock.Release()
}

func TestZero(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Zero = true })
	p.alloc(5000)
	p.alloc(5000)
	p.is("cleared", uint64(p.f.calls[ActZero]), 1)
	p.f.fail[ActZero] = 700
	p.is("failing", p.result(OpAlloc, func(r *Request) { r.Bytes = 30 * mib }), 700)
	devices[0].release(30 * mib) // what is lost stays charged
}

func TestRange(t *testing.T) {
	p := newProg(t, gib, nil)
	p.alloc(700)
	a := p.alloc(5000)
	n := uint64(0)
	for i, at := range []uint64{a, a + 1, a + 4999} {
		p.must(OpRange, func(r *Request) { r.Address = at })
		p.is("start", p.r.Value, a)
		p.is("size", p.r.Extra, 5000)
		if i > 0 {
			p.is("number", p.r.Number, n)
		}
		n = p.r.Number
	}
	p.is("behind", p.result(OpRange, func(r *Request) { r.Address = a + 5000 }), ErrorInvalidValue)
	p.free(a)
	p.is("free", p.result(OpRange, func(r *Request) { r.Address = a }), ErrorInvalidValue)
	p.is("address", p.alloc(5000), a)
	p.must(OpRange, func(r *Request) { r.Address = a })
	if p.r.Number == n {
		t.Error("a block that is handed out again has its old number")
	}
}

func TestSizes(t *testing.T) {
	p := newProg(t, gib, nil)
	for _, n := range []uint64{0, maxRequest + 1, ^uint64(0)} {
		if action, _ := p.call(OpAlloc, func(r *Request) { r.Bytes = n }); action != ActPass {
			t.Errorf("%d bytes: action %d", n, action)
		}
	}
	p.is("nothing", p.salloc(0, 7), 0)
	p.is("too much", p.result(OpStreamAlloc, func(r *Request) { r.Bytes = ^uint64(0) }),
		ErrorOutOfMemory)
}

// TestPrimary: without a context the device's primary one is used.
func TestPrimary(t *testing.T) {
	p := newProg(t, gib, nil)
	noContext := func(r *Request) { r.Context, r.Bytes, r.Stream = 0, 5000, 7 }
	p.must(OpStreamAlloc, noContext)
	a := p.r.Address
	p.must(OpStreamFree, func(r *Request) { r.Context, r.Address, r.Stream = 0, a, 7 })
	if _, calls := p.call(OpStreamAlloc, noContext); calls != 0 || p.r.Address != a {
		t.Errorf("%d calls", calls)
	}
	p.is("no device", p.result(OpStreamAlloc,
		func(r *Request) { r.Context, r.Device, r.Bytes = 0, 3, 100 }), 101)
}

func TestLeaks(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Leaks = true })
	a := p.salloc(5000, 7)
	d := p.report()
	p.is("leaks", d.LeakCount, 1)
	if l := d.Leaks[0]; l.Address != a || l.Bytes != 5000 || l.Stream != 7 || l.Number != 1 {
		t.Errorf("%+v", l)
	}
}
