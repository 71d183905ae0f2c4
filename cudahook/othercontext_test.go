package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

func (p *prog) in(context, n uint64) uint64 {
	p.t.Helper()
	p.must(OpAlloc, func(r *Request) { r.Context, r.Bytes = context, n })
	return p.r.Address
}

// steps goes on with a request until before is true of an action that it asks for.
func (p *prog) steps(r *Request, before func(action Action) bool) (action Action) {
	for action = Step(r); action > ActPass && !before(action); action = Step(r) {
		p.f.act(r, action)
	}
	return action
}

// TestOtherContextsEvents: what another context has pending may wait for the requester's own
// streams.
func TestOtherContextsEvents(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.ReuseEvent = 100*mib, true })
	p.f.addContext(0xc2, 0, gib)
	p.in(0xc1, 5000)
	b, small := p.in(0xc2, 60*mib), p.in(0xc2, 5000)
	p.in(0xc2, 5000) // keeps the segment
	r := newRequest(16)
	*r = Request{Token: 16, Now: p.f.now, Op: OpAlloc, Context: 0xc1, Bytes: 80 * mib}
	action := p.steps(r, func(Action) bool {
		return r.phase() == phaseSync && r.OnContext == 0xc2
	})
	if action != ActSynchronize {
		t.Fatal("another way", action)
	}
	// context 1 was waited for; another thread uses it, and frees in context 2
	for _, at := range []uint64{b, small} {
		p.must(OpRecord, func(r *Request) { r.Context, r.Address, r.Stream = 0xc1, at, 0xc101 })
		p.f.launch(0xc1, 0xc101, at, 5000, 0)
		p.must(OpFree, func(r *Request) { r.Context, r.Address = 0xc2, at })
	}
	p.f.act(r, action)
	for action = Step(r); action > ActPass && action != ActUnmap; action = Step(r) {
		p.f.act(r, action)
	}
	again := p.in(0xc2, 5000) // before the driver has unmapped anything
	if err := p.f.unfinished(again, 5000, streamKey{}); err != nil {
		t.Error("handed out:", err)
	}
	for ; action > ActPass; action = Step(r) {
		p.f.act(r, action)
	}
}

// TestOtherContextReplaced: another context gets the place of the one that is waited for.
func TestOtherContextReplaced(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.ReuseEvent = 200*mib, true })
	p.f.addContext(0xc2, 0, gib)
	p.in(0xc1, 5000)
	for range 50 {
		a := p.in(0xc2, 5000)
		p.must(OpFree, func(r *Request) { r.Context, r.Address = 0xc2, a })
	}
	p.in(0xc2, 150*mib)
	r := newRequest(16)
	*r = Request{Token: 16, Now: p.f.now, Op: OpAlloc, Context: 0xc1, Bytes: 120 * mib}
	p.steps(r, func(Action) bool { return false })
	a := p.in(0xc2, 5000)
	p.must(OpFree, func(r *Request) { r.Context, r.Address = 0xc2, a })
	*r = Request{Token: 16, Now: p.f.now, Op: OpAlloc, Context: 0xc1, Bytes: 120 * mib}
	action := p.steps(r, func(Action) bool { return r.phase() == phaseOther })
	if action != ActSynchronize {
		t.Fatal("another way", action)
	}
	// context 2 ends, and another one begins with its place
	p.f.act(r, action)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 })
	delete(p.f.device, 0xc2)
	p.f.addContext(0xc3, 0, gib)
	p.in(0xc3, 5000)
	c := uint64(0)
	for action = Step(r); action > ActPass; action = Step(r) {
		p.f.act(r, action)
		if c == 0 && r.phase() == phaseOther {
			for range 2 { // the first stays
				p.must(OpStreamAlloc, func(r *Request) {
					r.Context, r.Bytes, r.Stream = 0xc3, 4*mib,
						0xc301
				})
			}
			c = p.r.Address
			p.f.launch(0xc3, 0xc301, c, 4*mib, 0)
			p.must(OpStreamFree, func(r *Request) {
				r.Context, r.Address, r.Stream = 0xc3, c,
					0xc301
			})
			continue
		}
		q := newRequest(24)
		*q = Request{Token: 24, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc3, Bytes: 12 * mib,
			Stream: 0xc302}
		if heaps[1].pick(q, 4*mib, kindLarge) {
			if err := p.f.unfinished(q.Address, 4*mib, streamKey{0xc3, 0xc302}); err != nil {
				t.Fatal("the new context hands out a block at work:", err)
			}
		}
	}
	q := newRequest(24)
	*q = Request{Token: 24, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc3, Bytes: 12 * mib,
		Stream: 0xc302}
	if heaps[1].pick(q, 4*mib, kindLarge) {
		if err := p.f.unfinished(q.Address, 4*mib, streamKey{0xc3, 0xc302}); err != nil {
			t.Fatal("the new context hands out a block at work:", err)
		}
	}
}

// TestOtherContextsLocal: what another context has free in the order of its streams is room, too.
func TestOtherContextsLocal(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 100 * mib })
	p.f.addContext(0xc2, 0, gib)
	p.in(0xc1, 5000)
	var all [18]uint64
	for i := range all { // 4 segments of 20 MiB
		p.must(OpStreamAlloc, func(r *Request) {
			r.Context, r.Bytes, r.Stream = 0xc2, 4*mib,
				0xc200+uint64(i%2)
		})
		all[i] = p.r.Address
	}
	for i, a := range all {
		p.must(OpStreamFree, func(r *Request) {
			r.Context, r.Address, r.Stream = 0xc2, a,
				0xc200+uint64(i%2)
		})
	}
	p.is("80 MiB", p.result(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xc1, 80*mib }),
		Success)
}

// TestStrangersWithoutHeaps: a stranger is waited for though there is no room for its heap.
func TestStrangersWithoutHeaps(t *testing.T) {
	p := newProg(t, 8*gib, nil)
	a := p.salloc(30*mib, 7)
	for i := range uint64(heapMax) - 1 {
		p.f.addContext(0xd000+i, 1, 8*gib)
		p.in(0xd000+i, 100)
	}
	p.f.addContext(0xc2, 1, gib)
	p.must(OpRecord, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0xc201 })
	p.f.launch(0xc2, 0xc201, a, 30*mib, 0)
	p.sfree(a, 7)
	b := p.salloc(30*mib, 7)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, 7}); err != nil {
		t.Error(err)
	}
	c := p.alloc(5000)
	code := p.result(OpStreamFree, func(r *Request) {
		r.Context, r.Address, r.Stream = 0xc2, c,
			0xc201
	})
	p.is("a free", code, Success)
}

// TestContextEndsUntold: a context has ended, as green ones do, and nobody has said so.
func TestContextEndsUntold(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 0, gib)
	a := p.salloc(30*mib, 7)
	p.must(OpStreamFree, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0xc201 })
	p.f.finishContext(0xc2)
	x := p.alloc(5000)
	p.must(OpRecord, func(r *Request) { r.Address, r.Stream = x, 9 })
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: x}
	for action := Step(p.r); action > ActPass; action = Step(p.r) {
		if action == ActSynchronize && p.r.OnContext == 0xc2 {
			p.r.Result = 201
			continue
		}
		p.f.act(p.r, action)
	}
	p.is("free of a good block", p.r.Result, Success)
	p.is("lost", p.report().BytesLost, 0)
}

// TestOtherContextFails: a context that has failed is not this one's trouble.
func TestOtherContextFails(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.in(0xc2, 5000)
	a := p.alloc(30 * mib)
	p.must(OpRecord, func(r *Request) { r.Address, r.Stream = a, 9 })
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: a}
	for action := Step(p.r); action > ActPass; action = Step(p.r) {
		if action == ActSynchronize && p.r.OnContext == 0xc2 {
			p.r.Result = 700
			continue
		}
		p.f.act(p.r, action)
	}
	p.is("free in a good context", p.r.Result, Success)
}

// TestEventOfFormerContext: a stream event of a context that has gone does not stand for one of the
// next with its handle.
func TestEventOfFormerContext(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.in(0xc2, 5000)
	a := p.salloc(30*mib, 7)
	record := func() {
		p.must(OpRecord, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0 })
	}
	record()
	p.f.finishContext(0xc2)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 }) // a reset: the handle stays
	record()
	p.f.launch(0xc2, 0, a, 30*mib, 0)
	p.sfree(a, 7)
	b := p.salloc(30*mib, 7)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, 7}); err != nil {
		t.Error(err)
	}
}

// TestPendingFreesAfterContextEnd: a group of pending frees whose stream events have passed with
// their context does not hide the next one.
func TestPendingFreesAfterContextEnd(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 100 * mib })
	p.f.addContext(0xc2, 1, gib)
	p.in(0xc2, 5000)
	a, b := p.alloc(30*mib), p.alloc(20*mib)
	p.must(OpStreamFree, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0xc201 })
	p.sfree(b, 8)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 })
	maps := p.f.calls[ActMap]
	p.alloc(20 * mib)
	p.is("segments mapped", uint64(p.f.calls[ActMap]-maps), 0)
}
