package cudahook

import (
	"sync/atomic"
	"testing"
	"time"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

func TestEventMode(t *testing.T) {
	for _, native := range []bool{true, false} {
		p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent = true })
		p.f.noContext = !native
		var all []uint64
		for range 2 * pendingMax {
			a := p.alloc(20000)
			p.f.launch(0xc1, 5, a, 20000, 0)
			all = append(all, a)
		}
		for _, a := range all {
			p.free(a)
		}
		p.is("records", uint64(p.f.calls[ActEventRecordContext]), 2)
		if native {
			p.is("waits", uint64(p.f.calls[ActSynchronize]), 0)
			p.is("pending", p.report().BytesPending, 2*pendingMax*20480)
			p.f.finishContext(0xc1)
		}
		before := p.report().Segments
		for range 2 * pendingMax {
			p.alloc(20000)
		}
		p.is("segments", p.report().Segments, before)
	}
}

// TestFence: a stream gets what an idle stream has freed, and not what a busy one has.
func TestFence(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	if b := p.salloc(30*mib, 8); b == a {
		t.Fatal("a block crosses streams while it is in use")
	}
	p.f.finishContext(0xc1)
	if b := p.salloc(30*mib, 8); b != a {
		t.Errorf("got %#x, not the idle stream's %#x", b, a)
	}
}

// TestSteal: where memory is short a stream waits for another one's block, on the device.
func TestSteal(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 40 * mib })
	a := p.salloc(30*mib, 7)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	b := p.salloc(30*mib, 8)
	p.is("address", b, a)
	p.is("waits of streams", uint64(p.f.calls[ActStreamWait]), 1)
	p.is("waits", uint64(p.f.calls[ActSynchronize]), 0)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, 8}); err != nil {
		t.Error(err)
	}
	p.is("maps", uint64(p.f.calls[ActMapAt]), 1)
}

// TestRecorded: a block that further streams work with comes back when all of them have
// finished.
func TestRecorded(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	for _, s := range []uint64{9, 10, 9} {
		p.must(OpRecord, func(r *Request) { r.Address, r.Stream = a, s })
	}
	for _, s := range []uint64{7, 9, 10} {
		p.f.launch(0xc1, s, a, 30*mib, 0)
	}
	p.sfree(a, 7)
	p.is("records", uint64(p.f.calls[ActEventRecord]), 3)
	for _, s := range []uint64{9, 7, 10} {
		b := p.salloc(30*mib, 7)
		if b == a {
			t.Fatalf("a block is handed out that another stream works with; next %d", s)
		}
		k := p.f.stream(0xc1, s)
		p.f.complete(k, len(k.items))
	}
	p.is("address", p.salloc(30*mib, 7), a)
}

// TestRecordedInOtherContext: a stream may be of a context without a heap.
func TestRecordedInOtherContext(t *testing.T) {
	for _, op := range []Op{OpFree, OpStreamFree} {
		p := newProg(t, gib, nil)
		p.f.addContext(0xc2, 1, gib)
		p.must(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xc2, 5000 })
		a := p.salloc(30*mib, 7)
		p.must(OpRecord, func(r *Request) { r.Address, r.Stream = a, 0xc201 })
		p.f.launch(0xc2, 0xc201, a, 30*mib, 0)
		p.must(op, func(r *Request) { r.Address, r.Stream = a, 7 })
		if b := p.salloc(30*mib, 7); b != a {
			t.Errorf("operation %d: the block does not come back", op)
		}
		if err := p.f.unfinished(a, 30*mib, streamKey{0xc1, 7}); err != nil {
			t.Errorf("operation %d: %v", op, err)
		}
	}
}

// TestFencesShareAnEvent: asking again does not need another event.
func TestFencesShareAnEvent(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	for range 4 {
		p.salloc(30*mib, 8)
	}
	p.is("events", uint64(p.f.calls[ActEventCreate]), 1)
	p.is("records", uint64(p.f.calls[ActEventRecord]), 1)
}

// TestFreedDuringWait: what is freed while a request waits for the device is not free when
// that wait ends.
func TestFreedDuringWait(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent = true; c.Hard = 200 * mib })
	var all []uint64
	for range pendingMax {
		all = append(all, p.alloc(mib))
	}
	held, ordered := p.alloc(mib), p.salloc(30*mib, 7)
	waiting := newRequest(16)
	*waiting = Request{Token: 16, Op: OpTrim, Context: 0xc1}
	p.asks("action", Step(waiting), ActSynchronize)
	p.f.act(waiting, ActSynchronize)
	for _, a := range all {
		p.f.launch(0xc1, 5, a, mib, 0)
		p.free(a)
	}
	p.f.launch(0xc1, 7, ordered, 30*mib, 0)
	p.sfree(ordered, 7)
	p.must(OpCapture, func(r *Request) { r.Count = 1 })
	p.free(held)
	p.must(OpCapture, nil)
	p.is("pending", p.report().BytesPending, 2*mib*pendingMax)
	for action := Step(waiting); action > ActPass; action = Step(waiting) {
		if action == ActSynchronize {
			t.Fatal("the wait has not ended")
		}
		p.f.act(waiting, action)
	}
	d := p.report()
	p.is("pending", d.BytesPending, 2*mib*pendingMax)
	p.is("held", d.BytesHeld, 2*mib)
	p.is("local", d.BytesCachedLocal, 30*mib)
}

func TestCapture(t *testing.T) {
	p := newProg(t, gib, nil)
	a, s := p.alloc(5000), p.salloc(5000, 7)
	p.must(OpCapture, func(r *Request) { r.Count = 1 })
	p.free(a)
	p.sfree(s, 7)
	p.is("held", p.report().BytesHeld, 2*rounded(5000))
	p.is("waits", uint64(p.f.calls[ActSynchronize]), 0)
	p.is("second free", p.result(OpFree, func(r *Request) { r.Address = a }), ErrorInvalidValue)
	b := p.alloc(6000)
	p.is("foreign", p.report().ForeignCalls, 1)
	p.must(OpCapture, nil)
	p.free(b)
	p.alloc(4 * mib) // anything that needs a segment
	p.is("held", p.report().BytesHeld, 0)
}

func TestPools(t *testing.T) {
	p := newProg(t, gib, nil)
	pool := func(count uint64) {
		p.must(OpPool, func(r *Request) { r.Address, r.Bytes, r.Count = 4, 2, count })
	}
	cached := p.salloc(5000, 7)
	p.sfree(cached, 7)
	pool(1)
	p.must(OpCapture, func(r *Request) { r.Count = 1 })
	a := p.salloc(5000, 7)
	p.sfree(a, 7)
	b := p.salloc(5000, 7) // within the pool the stream reuses it at once
	p.is("address", b, a)
	p.sfree(b, 7)
	p.must(OpCapture, nil)
	pool(0)
	p.is("outside", p.salloc(5000, 7), cached)
	for range 600 {
		if x := p.salloc(5000, 7); x == a {
			t.Fatal("a pool's block is handed out outside")
		}
	}
	pool(1)
	p.is("inside again", p.salloc(5000, 7), a)
	pool(2)
	pool(2) // it was begun twice
	p.sfree(a, 7)
	heaps[0].flushAll()
	found := false
	for range 1200 {
		found = found || p.salloc(5000, 7) == a
	}
	if !found {
		t.Error("the blocks of a pool that is gone do not come back")
	}
}

// TestPoolGoneWhileHeld: a pool is released, and a stream that had a block of it ends,
// while the block is held; the stream's descriptor is not another one's meanwhile.
func TestPoolGoneWhileHeld(t *testing.T) {
	p := newProg(t, gib, nil)
	pool := func(count uint64) {
		p.must(OpPool, func(r *Request) { r.Address, r.Bytes, r.Count = 4, 2, count })
	}
	pool(1)
	a := p.salloc(30*mib, 7) // all of a segment
	pool(0)
	p.must(OpCapture, func(r *Request) { r.Count = 1 })
	pool(2)
	p.free(a)
	p.must(OpStreamEnd, func(r *Request) { r.Stream = 7 })
	b := p.salloc(5000, 9) // with a descriptor of its own
	p.must(OpCapture, nil)
	p.free(p.alloc(4 * mib)) // what was held is free
	p.is("held", p.report().BytesHeld, 0)
	if err := checkAll(p.f, true); err != nil {
		t.Error(err)
	}
	p.sfree(b, 9)
	pool(0)
}

// TestPoolGoneMeanwhile: what is freed while a pool's end waits for the device is not part
// of what was waited for.
func TestPoolGoneMeanwhile(t *testing.T) {
	p := newProg(t, gib, nil)
	p.must(OpPool, func(r *Request) { r.Address, r.Bytes, r.Count = 4, 2, 1 })
	a, b := p.salloc(30*mib, 7), p.salloc(40*mib, 7)
	p.sfree(b, 7)
	end := newRequest(16)
	*end = Request{Token: 16, Op: OpPool, Context: 0xc1, Address: 4, Bytes: 2, Count: 2}
	action := Step(end)
	for ; action != ActSynchronize; action = Step(end) {
		p.f.act(end, action)
	}
	p.f.act(end, action)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	p.asks("end", p.f.run(end), ActDone)
	p.is("everyone's", p.salloc(40*mib, 9), b)
	if p.salloc(30*mib, 9) == a {
		t.Error("a block is handed out that its stream still works with")
	}
	p.is("its stream's", p.salloc(30*mib, 7), a)
}

func TestStreamEnd(t *testing.T) {
	p := newProg(t, gib, nil)
	a, live := p.salloc(30*mib, 7), p.salloc(5000, 7)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	p.must(OpStreamEnd, func(r *Request) { r.Stream = 7 })
	p.is("records", uint64(p.f.calls[ActEventRecord]), 1)
	if b := p.salloc(30*mib, 7); b == a { // the handle names another stream now
		t.Fatal("a block of a stream that has ended is handed out")
	}
	p.sfree(live, 7)
	p.is("waits", uint64(p.f.calls[ActSynchronize]), 1)
	p.f.finishContext(0xc1)
	p.is("address", p.salloc(30*mib, 9), a)
	p.is("pending", p.report().BytesPending, 0)
}

// TestPeers: a free waits for the contexts that may reach the block.
func TestPeers(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	a := p.alloc(5000)
	for range 2 {
		p.must(OpPeer, func(r *Request) { r.Context, r.Address = 0xc2, 0xc1 })
	}
	p.f.launch(0xc2, 3, a, 5000, 0)
	p.free(a)
	p.is("waits", uint64(p.f.calls[ActSynchronize]), 2)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 })
	p.free(p.alloc(5000))
	p.is("waits", uint64(p.f.calls[ActSynchronize]), 3)
}

// TestCaptureWaits: a capture begins when no call that it would fail is under way; and what
// would fail one is told so by the heap, not by the driver.
func TestCaptureWaits(t *testing.T) {
	p := newProg(t, gib, nil)
	a, b := p.alloc(5000), p.alloc(5000)
	free := newRequest(16)
	*free = Request{Token: 16, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: a}
	p.asks("free", Step(free), ActSynchronize)
	*p.r = Request{Token: 8, Now: raw.Clock(raw.ClockMono), Op: OpCapture, Context: 0xc1, Count: 1}
	p.asks("capture", Step(p.r), ActYield)
	p.asks("capture", Step(p.r), ActYield)
	free.Result = Success // the device was idle
	p.asks("free", Step(free), ActDone)
	p.asks("capture", Step(p.r), ActDone)
	p.free(b)
	p.is("held", p.report().BytesHeld, rounded(5000))
	p.must(OpCapture, nil)

	c := p.alloc(5000)
	if !free.maySpoil(0xc1) {
		t.Error("a call is held though nothing is captured")
	}
	free.spoilt()
	atomic.StoreUint64(&captures, 1)
	if free.maySpoil(0xc1) || atomic.LoadUint64(spoilersOf(0xc1)) != 0 {
		t.Error("a call fails a capture")
	}
	atomic.StoreUint64(&captures, 0)
	p.free(c)
}

// TestCaptureOnAnotherDevice: a capture does not wait for what another device does.
func TestCaptureOnAnotherDevice(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	x := p.in(0xc2, 5000)
	p.in(0xc1, 5000)
	r := newRequest(16)
	*r = Request{Token: 16, Now: p.f.now, Op: OpFree, Context: 0xc2, Address: x}
	if Step(r) != ActSynchronize {
		t.Fatal("no wait")
	}
	now := time.Now()
	c := newRequest(24)
	*c = Request{Token: 24, Op: OpCapture, Context: 0xc1, Count: 1}
	n := 0
	for a := Step(c); a > ActPass; a = Step(c) {
		n++
	}
	if d := time.Since(now); d > 100*time.Millisecond {
		t.Errorf("a capture on device 0 waits %v, in %d turns, for a free on device 1", d, n)
	}
	*c = Request{Token: 24, Op: OpCapture, Context: 0xc1, Count: 0}
	Step(c)
	p.f.act(r, ActSynchronize)
	Step(r)
}
