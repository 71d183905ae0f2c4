package cudahook

import (
	"testing"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// prog is one thread of a program on device 0.
type prog struct {
	t *testing.T
	f *fake
	r *Request
}

func newProg(t *testing.T, memory uint64, set func(*config.CUDA)) *prog {
	t.Helper()
	fresh(t, set)
	p := &prog{t, newFake(t, 3), newRequest(8)}
	p.f.addContext(0xc1, 0, memory)
	t.Cleanup(func() {
		if err := checkAll(p.f, true); err != nil && off == 0 {
			t.Error(err)
		}
	})
	return p
}

// call makes one request and returns the last action and how many the driver carried out.
func (p *prog) call(op Op, set func(r *Request)) (action Action, calls int) {
	p.t.Helper()
	*p.r = Request{Token: 8, Op: op, Context: 0xc1}
	if set != nil {
		set(p.r)
	}
	before := p.total()
	action = p.f.run(p.r)
	return action, p.total() - before
}

func (p *prog) total() (n int) {
	for _, c := range p.f.calls {
		n += c
	}
	return n
}

func (p *prog) result(op Op, set func(r *Request)) uint64 {
	p.t.Helper()
	if action, _ := p.call(op, set); action != ActDone {
		p.t.Fatalf("operation %d: action %d", op, action)
	}
	return p.r.Result
}

func (p *prog) must(op Op, set func(r *Request)) {
	p.t.Helper()
	if code := p.result(op, set); code != Success {
		p.t.Fatalf("operation %d: result %d", op, code)
	}
}

func (p *prog) alloc(n uint64) uint64 {
	p.t.Helper()
	p.must(OpAlloc, func(r *Request) { r.Bytes = n })
	return p.r.Address
}

func (p *prog) free(a uint64) {
	p.t.Helper()
	p.must(OpFree, func(r *Request) { r.Address = a })
}

func (p *prog) salloc(n, stream uint64) uint64 {
	p.t.Helper()
	p.must(OpStreamAlloc, func(r *Request) { r.Bytes, r.Stream = n, stream })
	return p.r.Address
}

func (p *prog) sfree(a, stream uint64) {
	p.t.Helper()
	p.must(OpStreamFree, func(r *Request) { r.Address, r.Stream = a, stream })
}

// is fails the test unless got is want.
func (p *prog) is(what string, got, want uint64) {
	p.t.Helper()
	if got != want {
		p.t.Fatalf("%s: %d (%#x), not %d (%#x)", what, got, got, want, want)
	}
}

// asks is is for the action of a step.
func (p *prog) asks(what string, got, want Action) {
	p.t.Helper()
	if got != want {
		p.t.Fatalf("%s: action %d, not %d", what, got, want)
	}
}

func (p *prog) report() *stats.Device {
	size := raw.RoundUp(unsafe.Sizeof([stats.DeviceMax]stats.Device{}), raw.Page)
	to := (*[stats.DeviceMax]stats.Device)(raw.Ptr(raw.Map(size)))
	if Report(8, true, to) == 0 {
		p.t.Fatal("no device is reported")
	}
	return &to[0]
}

// plainSegments are the settings without expandable segments.
func plainSegments(c *config.CUDA) { c.Expandable = false }

// maps returns how often the driver was asked for memory.
func (p *prog) maps() int { return p.f.calls[ActMap] + p.f.calls[ActMapAt] }
