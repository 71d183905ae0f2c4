package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

// TestCallersDefaultStreamRecorded: stream 0 is the caller's context's.
func TestCallersDefaultStreamRecorded(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.must(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xc2, 5000 })
	a := p.salloc(30*mib, 0)
	p.must(OpRecord, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0 })
	p.f.launch(0xc2, 0, a, 30*mib, 0)
	p.sfree(a, 0)
	b := p.salloc(30*mib, 0)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, streamLegacy}); err != nil {
		t.Error(err)
	}
}

func TestCallersDefaultStreamFreed(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	p.must(OpAlloc, func(r *Request) { r.Context, r.Bytes = 0xc2, 5000 })
	for _, n := range []uint64{5000, 30 * mib} { // a block, and a whole segment
		a := p.alloc(n)
		p.f.launch(0xc2, 0, a, n, 0)
		p.must(OpStreamFree, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0 })
		b := p.salloc(n, 0)
		if err := p.f.unfinished(b, n, streamKey{0xc1, streamLegacy}); err != nil {
			t.Error(err)
		}
		b = p.alloc(n)
		if err := p.f.unfinished(b, n, streamKey{}); err != nil {
			t.Error(err)
		}
	}
}

// TestFenceOfCapturedEvent: an event that has become useless is replaced.
func TestFenceOfCapturedEvent(t *testing.T) {
	p := newProg(t, gib, nil)
	a := p.salloc(30*mib, 7)
	p.sfree(a, 7)
	// CUDA_ERROR_CAPTURED_EVENT: the event has become part of a capture
	p.f.fail[ActEventQuery] = 907
	p.salloc(30*mib, 8)
	records := p.f.calls[ActEventRecord]
	*p.r = Request{Token: 8, Now: p.f.now, Op: OpStreamAlloc, Context: 0xc1, Bytes: 30 * mib,
		Stream: 9}
	for action := Step(p.r); action > ActPass; action = Step(p.r) {
		if action == ActEventQuery { // still captured, unless it was recorded anew
			if p.f.calls[ActEventRecord] == records {
				p.r.Result = 907
				continue
			}
		}
		p.f.act(p.r, action)
	}
	if p.r.Address != a {
		t.Errorf("%#x and not %#x; %d records", p.r.Address, a, p.f.calls[ActEventRecord]-records)
	}
}

// TestRecordedWithoutHeap: a stream may be of a context without a heap.
func TestRecordedWithoutHeap(t *testing.T) {
	p := newProg(t, gib, nil)
	p.f.addContext(0xc2, 1, gib)
	a := p.salloc(30*mib, 7)
	p.must(OpRecord, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0xc201 })
	p.f.launch(0xc2, 0xc201, a, 30*mib, 0)
	p.sfree(a, 7)
	b := p.salloc(30*mib, 7)
	if err := p.f.unfinished(b, 30*mib, streamKey{0xc1, 7}); err != nil {
		t.Error(err)
	}
}

// TestStrangerIsWaitedFor: so it is waited for with the others where memory is short.
func TestStrangerIsWaitedFor(t *testing.T) {
	for _, native := range []bool{true, false} {
		p := newProg(t, gib, func(c *config.CUDA) { c.Hard, c.ReuseEvent = 40*mib, true })
		p.f.noContext = !native
		p.f.addContext(0xc2, 1, gib)
		a := p.salloc(30*mib, 7)
		p.must(OpRecord, func(r *Request) { r.Context, r.Address, r.Stream = 0xc2, a, 0xc201 })
		p.f.launch(0xc2, 0xc201, a, 30*mib, 0)
		p.sfree(a, 7)
		b := p.alloc(30 * mib)
		if err := p.f.unfinished(b, 30*mib, streamKey{}); err != nil {
			t.Error(err)
		}
	}
}
