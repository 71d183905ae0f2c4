package cudahook

import (
	"sync/atomic"
	"testing"
	"time"

	"tieralloc/internal/config"
)

// TestContextEndEvents: events of a context that has ended are not asked for.
func TestContextEndEvents(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent = true })
	p.f.addContext(0xc2, 1, gib)
	p.must(OpPeer, func(r *Request) { r.Context, r.Address = 0xc2, 0xc1 })
	var all []uint64
	for range 2 * pendingMax {
		all = append(all, p.alloc(mib))
	}
	for _, a := range all[:pendingMax] {
		p.free(a)
	}
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 })
	for h, e := range p.f.events {
		if e.context == 0xc2 {
			delete(p.f.events, h)
		}
	}
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpAlloc, Context: 0xc1, Bytes: 40 * mib}
	for action := Step(p.r); action > ActPass; action = Step(p.r) {
		if action == ActEventQuery && p.f.events[p.r.OnEvent] == nil {
			t.Error("an event is asked for that was destroyed with its context")
			p.r.Result = 400
			continue
		}
		p.f.act(p.r, action)
	}
}

// TestContextEndEventsReset: nor recorded again when the context has its handle again, as
// after a reset.
func TestContextEndEventsReset(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.ReuseEvent = true })
	p.f.addContext(0xc2, 1, gib)
	peer := func() {
		p.must(OpPeer, func(r *Request) { r.Context, r.Address = 0xc2, 0xc1 })
	}
	peer()
	var all []uint64
	for range 2 * pendingMax {
		all = append(all, p.alloc(mib))
	}
	for _, a := range all[:pendingMax] {
		p.free(a)
	}
	p.f.finishContext(0xc1)
	p.alloc(mib) // harvest: events are kept
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 })
	for h, e := range p.f.events {
		if e.context == 0xc2 {
			delete(p.f.events, h)
		}
	}
	peer() // after the reset
	for _, a := range all[pendingMax:] {
		*p.r = Request{Token: 8, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: a}
		for action := Step(p.r); action > ActPass; action = Step(p.r) {
			if action == ActEventRecordContext && p.f.events[p.r.OnEvent] == nil {
				t.Error("an event is recorded that was destroyed with its context")
				p.r.Result = 400
				continue
			}
			p.f.act(p.r, action)
		}
	}
}

// TestContextEndsBeforeLock: a context ends after its heap was found and before that is locked.
func TestContextEndsBeforeLock(t *testing.T) {
	unscheduled(t)
	p := newProg(t, gib, nil)
	p.sfree(p.salloc(5000, 7), 7)
	h := &heaps[0]
	h.lock.Take(8)
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		r := newRequest(16)
		*r = Request{Token: 16, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc1, Bytes: 5000,
			Stream: 7}
		Step(r)
	}()
	time.Sleep(50 * time.Millisecond)
	// what endContext does under the lock
	atomic.StoreUint64(&h.context, 0)
	h.device.release(h.count.reserved + h.count.foreign)
	h.wipe()
	h.lock.Release()
	if e := <-done; e != nil {
		t.Error(e)
	}
	h.lock.Reset()
	heaps[0].wipe()
}

// TestContextOfAnotherPlace: the same, and another context has got the place.
func TestContextOfAnotherPlace(t *testing.T) {
	unscheduled(t)
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.sfree(p.salloc(5000, 7), 7)
	h := &heaps[0]
	h.lock.Take(8)
	r := newRequest(16)
	done := make(chan Action, 1)
	go func() {
		*r = Request{Token: 16, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc1, Bytes: 5000,
			Stream: 7}
		done <- Step(r)
	}()
	time.Sleep(50 * time.Millisecond)
	atomic.StoreUint64(&h.context, 0)
	h.device.release(h.count.reserved + h.count.foreign)
	h.wipe()
	devices[1].register(gib, [2]uint64{})
	h.begin(1)
	atomic.StoreUint64(&h.context, 0xc2)
	h.lock.Release()
	a := <-done
	if a > ActPass && r.Context == 0xc2 {
		t.Errorf("a request of context 0xc1 is served in the heap of 0xc2: action %d", a)
		p.f.act(r, a)
		for a = Step(r); a > ActPass; a = Step(r) {
			p.f.act(r, a)
		}
	}
}

// TestFiguresOutliveContext: a device's figures stay its own when the context's place is
// used again.
func TestFiguresOutliveContext(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.alloc(5000)
	p.is("device 0", p.report().AllocCalls, 1)
	p.must(OpContextEnd, nil)
	p.is("device 0", p.report().AllocCalls, 1)
	p.must(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xc2, 5000 })
	p.is("device 0 after a context on device 1", p.report().AllocCalls, 1)
}

// TestContextEndsInForeignFree: what is on its way when a context ends does not stay charged.
func TestContextEndsInForeignFree(t *testing.T) {
	p := newProg(t, gib, nil)
	p.must(OpForeign, func(r *Request) { r.Bytes = 50 * mib })
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: p.r.Address}
	p.asks("action", Step(p.r), ActDriver)
	q := newRequest(16)
	*q = Request{Token: 16, Now: p.f.now, Op: OpContextEnd, Context: 0xc1}
	p.f.run(q)
	Step(p.r)
	p.is("reserved", devices[0].reserved, 0)
	p.is("foreign", devices[0].foreign, 0)
}

func TestContextEndsInOthersUnmap(t *testing.T) {
	p := newProg(t, gib, func(c *config.CUDA) { c.Hard = 400 * mib })
	p.f.addContext(0xc2, 0, gib)
	p.free(p.alloc(300 * mib))
	q := newRequest(16)
	*q = Request{Token: 16, Now: p.f.now, Op: OpAlloc, Context: 0xc2, Bytes: 300 * mib}
	action := Step(q)
	for ; action > ActPass && action != ActUnmap; action = Step(q) {
		p.f.act(q, action)
	}
	p.asks("action", action, ActUnmap)
	p.must(OpContextEnd, nil)
	q.Result = 201 // the context is gone
	for action = Step(q); action > ActPass; action = Step(q) {
		p.f.used[0] = 0
		p.f.act(q, action)
	}
	t.Logf("result %d", q.Result)
	p.is("reserved", devices[0].reserved, heaps[1].count.reserved)
}

func TestContextEndsAfterFailedUnmap(t *testing.T) {
	p := newProg(t, gib, nil)
	p.free(p.alloc(300 * mib))
	p.f.fail[ActUnmap] = 719
	p.must(OpTrim, nil)
	p.must(OpContextEnd, nil) // device reset
	p.is("reserved", devices[0].reserved, 0)
}

func TestContextEndsInHugeForeign(t *testing.T) {
	p := newProg(t, gib, nil)
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpForeign, Context: 0xc1, Bytes: ^uint64(0)}
	action := Step(p.r)
	for ; action != ActDriver; action = Step(p.r) {
		p.f.act(p.r, action)
	}
	q := newRequest(16)
	*q = Request{Token: 16, Now: p.f.now, Op: OpContextEnd, Context: 0xc1}
	p.f.run(q)
	p.r.Result = ErrorOutOfMemory
	Step(p.r)
	p.is("reserved", devices[0].reserved, 0)
}

// TestPeerEndsInWait: a context that has ended meanwhile need not be waited for.
func TestPeerEndsInWait(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.must(OpPeer, func(r *Request) { r.Context, r.Address = 0xc2, 0xc1 })
	a := p.alloc(30 * mib)
	q := newRequest(16)
	*q = Request{Token: 16, Now: p.f.now, Op: OpFree, Context: 0xc1, Address: a}
	p.asks("action", Step(q), ActSynchronize)
	p.f.act(q, ActSynchronize)
	p.asks("action", Step(q), ActSynchronize)
	p.is("context", q.OnContext, 0xc2)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc2 })
	q.Result = 201 // CUDA_ERROR_INVALID_CONTEXT
	p.asks("action", Step(q), ActDone)
	p.is("result of cudaFree", q.Result, Success)
	p.is("lost", p.report().BytesPending, 0)
}
