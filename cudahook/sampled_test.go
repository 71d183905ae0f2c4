package cudahook

import (
	"testing"
	"time"

	"tieralloc/stats/profile"
)

// beginSampling has the blocks of a test sampled.
func beginSampling(t *testing.T) {
	t.Helper()
	if !profile.On() && !profile.Start(1, 0, 1, nil) {
		t.Fatal("no memory")
	}
	StartSampling()
	t.Cleanup(func() {
		sampling = false
		setFastPath()
	})
}

// TestSampleInHandler: a signal handler that interrupted the holder of a heap's lock does not wait
// for a thread that has the profile, and which may wait for that lock.
func TestSampleInHandler(t *testing.T) {
	newProg(t, gib, nil).alloc(100)
	unscheduled(t)
	beginSampling(t)
	heaps[0].lock.Take(8)
	profile.Hold(16, true)
	done := make(chan bool)
	go func() {
		defer close(done)
		for _, op := range []Op{OpAlloc, OpFree, OpContextEnd} {
			r := newRequest(8)
			r.Op = op
			if SampleBegin(r, true) != nil {
				t.Error("the profile has two holders")
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("the handler waits")
	}
	profile.Release()
	heaps[0].lock.Release()
}

// TestFreedMeanwhile: while a free tells the profile, another thread frees the block, and a third
// may have got its address. Or the context ends.
func TestFreedMeanwhile(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *prog, at uint64)
		action Action
		result uint64
	}{
		{"nothing", func(*prog, uint64) {}, ActDone, Success},
		{"free", func(p *prog, at uint64) { p.sfree(at, 7) }, ActDone, ErrorInvalidValue},
		{"reuse", func(p *prog, at uint64) {
			p.sfree(at, 7)
			p.is("address", p.salloc(5000, 7), at)
		}, ActForget, Success},
		{"end", func(p *prog, _ uint64) { endContext(8, 0xc1) }, ActDone, ErrorDeinitialized},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newProg(t, gib, nil)
			beginSampling(t)
			at := p.salloc(5000, 7)
			r := newRequest(16)
			r.Op, r.Context, r.Stream, r.Address = OpStreamFree, 0xc1, 7, at
			p.asks("free", Step(r), ActForget)
			first := r.Number
			c.change(p, at)
			p.asks("free", Step(r), c.action)
			if c.action == ActForget {
				p.is("changed", flag(r.Number != first), 1)
				p.asks("free", Step(r), ActDone)
			}
			p.is("result", r.Result, c.result)
		})
	}
}
