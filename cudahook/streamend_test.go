package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

// reborn makes a stream's handle name a new stream; the old one's work goes on.
func (p *prog) reborn(context, stream uint64) {
	k := streamKey{context, stream}
	if p.f.streams[k] != nil {
		p.f.handles++
		p.f.rename(k, streamKey{context, 1<<40 | p.f.handles})
	}
}

// TestStreamEndAllPools: a stream ends in every pool that it had blocks of.
func TestStreamEndAllPools(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	p.pool(4, 1)
	p.sfree(p.salloc(5000, 7), 7) // a second stream cache of stream 7
	p.pool(4, 0)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	p.must(OpStreamEnd, func(r *Request) { r.Stream = 7 })
	p.reborn(0xc1, 7)
	b := p.salloc(30*mib, 7)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, 7}); err != nil {
		t.Errorf("a new stream with the old handle gets %#x: %v", b, err)
	}
}

// TestStreamEndAllHeaps: and in the heaps of other contexts.
func TestStreamEndAllHeaps(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 0, gib)
	p.sfree(p.salloc(100, 8), 8)
	a := p.salloc(30*mib, 8)
	_ = a
	p.must(OpStreamAlloc, func(r *Request) { r.Context, r.Bytes, r.Stream = 0xc2, 5000, 7 })
	b := p.salloc(30*mib, 8)
	p.must(OpRecord, func(r *Request) { r.Address, r.Stream = b, 7 })
	// stream 7 belongs to c2 and has a live block there: one stream cache; b in c1 has an event
	// on it
	p.must(OpStreamEnd, func(r *Request) { r.Context, r.Stream = 0xc2, 7 })
	for m := heaps[0].table.find(b).events; m != nil; m = m.next {
		if m.stream == 7 {
			t.Error("a stream event names a stream that has ended")
		}
	}
}

// TestStreamEndWithPendingFrees: no event is recorded on a stream that has ended.
func TestStreamEndWithPendingFrees(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent = true })
	a := p.salloc(30*mib, 7)
	p.must(OpRecord, func(r *Request) { r.Address, r.Stream = a, 9 })
	p.free(a) // joins the open group
	p.must(OpStreamEnd, func(r *Request) { r.Stream = 9 })
	// cuStreamDestroy(9)
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc1, Bytes: 40 * mib,
		Stream: 7}
	for action := Step(p.r); action > ActPass; action = Step(p.r) {
		if action == ActEventRecord && p.r.OnStream == 9 {
			t.Error("an event is recorded on a stream that was destroyed")
		}
		p.f.act(p.r, action)
	}
}

// TestStreamEndWhileRecording: the handle of a stream is used again while a group of pending frees
// that names it is recorded.
func TestStreamEndWhileRecording(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	p.must(OpRecord, func(r *Request) { r.Address, r.Stream = a, 9 })
	p.f.launch(0xc1, 9, a, 30*mib, 0)
	q := newRequest(16)
	*q = Request{Token: 16, Now: p.f.now, Op: OpStreamFree, Context: 0xc1, Address: a, Stream: 7}
	action := Step(q) // the event for 7 or 9 is created or recorded
	p.must(OpStreamEnd, func(r *Request) { r.Stream = 9 })
	p.reborn(0xc1, 9)
	for ; action > ActPass; action = Step(q) {
		p.f.act(q, action)
	}
	b := p.salloc(30*mib, 7)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, 7}); err != nil {
		t.Errorf("%#x: %v", b, err)
	}
}

// TestStreamEndWhileStealing: a stream does not end while another thread names it to the driver.
func TestStreamEndWhileStealing(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 40 * mib })
	a := p.salloc(30*mib, 7)
	p.f.launch(0xc1, 7, a, 30*mib, 0)
	p.sfree(a, 7)
	q := newRequest(16)
	*q = Request{Token: 16, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc1, Bytes: 30 * mib,
		Stream: 8}
	action := Step(q)
	for ; action > ActPass; action = Step(q) {
		if q.phase() == phaseSteal {
			break
		}
		p.f.act(q, action)
	}
	if q.phase() != phaseSteal {
		t.Fatal("no steal")
	}
	end := newRequest(24)
	*end = Request{Token: 24, Now: p.f.now, Op: OpStreamEnd, Context: 0xc1, Stream: 7}
	p.asks("end while the stream is named", Step(end), ActYield)
	p.f.act(q, action)
	action = Step(q)
	p.asks("end", p.f.run(end), ActDone)
	p.reborn(0xc1, 7)
	for ; action > ActPass; action = Step(q) {
		p.f.act(q, action)
	}
	p.is("result", q.Result, Success)
	if err := p.f.unfinished(q.Address, 30*mib, streamKey{0xc1, 8}); err != nil {
		t.Errorf("%#x: %v", q.Address, err)
	}
}
