package cudahook

import (
	"testing"

	"tieralloc/internal/config"
)

// inRegion makes blocks in region 1, and one beside it.
func inRegion(p *prog, sizes ...uint64) (blocks []uint64, outside uint64) {
	p.region(3)
	for _, n := range sizes {
		blocks = append(blocks, p.salloc(n, 7))
	}
	p.region(0)
	return blocks, p.salloc(30*mib, 7)
}

func (p *prog) region(what uint64) {
	p.must(OpPool, func(r *Request) { r.Address, r.Bytes, r.Count = 1, 0xff, what })
}

// turn puts region 1 to sleep, or wakes it.
func (p *prog) turn(op Op, keep uint64) uint64 {
	return p.result(op, func(r *Request) { r.Address, r.Bytes, r.Count = 1, 0xff, keep })
}

// TestSleep: a region's memory goes back to the driver and comes again at the same addresses; that
// of others does not.
func TestSleep(t *testing.T) {
	for _, keep := range []uint64{0, 1} {
		p := newProg(t, gib, nil)
		blocks, _ := inRegion(p, 5000, 200*mib, 3*mib)
		for range 3 {
			used := p.f.used[0]
			p.f.launch(0xc1, 7, blocks[1], mib, 0)
			p.is("sleep", p.turn(OpSleep, keep), Success)
			p.is("sleep again", p.turn(OpSleep, keep), Success)
			p.is("used", p.f.used[0], 30*mib)
			p.is("reserved", p.report().BytesReserved, p.f.used[0])
			p.is("kept", uint64(len(p.f.saved)), 2*keep)
			p.is("wake", p.turn(OpWake, 0), Success)
			p.is("wake again", p.turn(OpWake, 0), Success)
			p.is("used", p.f.used[0], used)
			for _, b := range blocks {
				if _, ok := p.f.covering(b, 5000); !ok {
					t.Errorf("%#x is not mapped", b)
				}
			}
		}
		p.is("memory of the host stays", uint64(len(p.f.saved)), 2*keep)
		p.must(OpTrim, nil)
		p.is("until it is trimmed", uint64(len(p.f.saved)), 0)
		for _, b := range blocks {
			p.sfree(b, 7)
		}
		p.region(3)
		p.is("reused", p.salloc(200*mib, 7), blocks[1])
		p.region(0)
	}
}

// TestSleepRefused: what names no region, or cannot sleep, gets an error, and nothing has changed.
func TestSleepRefused(t *testing.T) {
	p := newProg(t, gib, nil)
	p.salloc(5000, 7)
	p.is("no region", p.turn(OpSleep, 1), ErrorInvalidValue)
	blocks, _ := inRegion(p, 5000)
	p.must(OpCapture, func(r *Request) { r.Count = 1 })
	p.is("capture", p.turn(OpSleep, 1), errorCapture)
	p.must(OpCapture, nil)
	p.f.fail[ActSave] = ErrorOutOfMemory
	p.is("host", p.turn(OpSleep, 1), ErrorOutOfMemory)
	p.sfree(blocks[0], 7)
	p.is("sleep", p.turn(OpSleep, 1), Success)

	p = newProg(t, gib, plainSegments)
	inRegion(p, 5000)
	p.is("plain", p.turn(OpSleep, 1), errorNotSupported)
}

// TestAsleep: a region that sleeps gives no memory. What is freed meanwhile is free afterwards.
func TestAsleep(t *testing.T) {
	p := newProg(t, gib, nil)
	blocks, outside := inRegion(p, 5000, 40*mib)
	p.is("sleep", p.turn(OpSleep, 1), Success)
	p.region(3)
	p.is("asleep", p.result(OpStreamAlloc, func(r *Request) { r.Bytes, r.Stream = 5000, 7 }),
		ErrorOutOfMemory)
	p.region(0)
	p.sfree(blocks[1], 7)
	p.free(blocks[0])
	p.sfree(outside, 7)
	p.is("wake", p.turn(OpWake, 0), Success)
	p.region(3)
	p.is("reused", p.salloc(40*mib, 7), blocks[1])
	p.region(0)
}

// TestWakeWithoutRoom: free memory makes room for a region that wakes. If there is none it goes on
// sleeping, with its contents.
func TestWakeWithoutRoom(t *testing.T) {
	for name, set := range map[string]func(*config.CUDA){
		"driver": nil,
		"cap":    func(c *config.CUDA) { c.Hard = 400 * mib },
	} {
		t.Run(name, func(t *testing.T) {
			p := newProg(t, 400*mib, set)
			inRegion(p, 100*mib, 100*mib)
			p.is("sleep", p.turn(OpSleep, 1), Success)
			big := p.salloc(300*mib, 7)
			kept := len(p.f.saved)
			p.is("no room", p.turn(OpWake, 0), ErrorOutOfMemory)
			p.is("kept", uint64(len(p.f.saved)), uint64(kept))
			p.sfree(big, 7)
			p.is("wake", p.turn(OpWake, 0), Success)
			p.is("sleep", p.turn(OpSleep, 0), Success)
			p.is("not kept", uint64(len(p.f.saved)), 0)
		})
	}
}

// TestEndsInWake: a context that ends while a region wakes leaves nothing charged.
func TestEndsInWake(t *testing.T) {
	p := newProg(t, gib, nil)
	inRegion(p, 5000, 40*mib)
	p.is("sleep", p.turn(OpSleep, 0), Success)
	waiting := newRequest(16)
	*waiting = Request{Token: 16, Op: OpWake, Context: 0xc1, Address: 1, Bytes: 0xff}
	p.asks("wake", Step(waiting), ActMapAt)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc1 })
	waiting.Result = ErrorInvalidValue // the addresses are gone
	p.asks("wake", Step(waiting), ActDone)
	p.is("charged", devices[0].reserved, 0)
}

// TestSleepEnd: a context may end while a region sleeps.
func TestSleepEnd(t *testing.T) {
	p := newProg(t, gib, nil)
	inRegion(p, 5000, 40*mib)
	p.is("sleep", p.turn(OpSleep, 0), Success)
	p.must(OpContextEnd, func(r *Request) { r.Context = 0xc1 })
	p.is("used", p.f.used[0], 0)
	p.is("reservations", uint64(len(p.f.reserved)), 0)
}
