package manager

import (
	"math"
	"testing"

	"tieralloc/internal/raw"
)

// TestComing: while a block is charged and not added, nobody can take its account away, so
// that what is booked then is booked where it was charged.
func TestComing(t *testing.T) {
	r := newRig(t, 1000)
	r.register(1, "", -1)
	bytes := func(c *Call) { c.Bytes, c.Address = 100, 0x1000 }
	for _, end := range []Op{OpUncharge, OpAdd} {
		if why := r.do(OpCharge, 1, bytes); why != 0 {
			t.Fatal(why)
		}
		if why := r.do(OpUnregister, 1, nil); why != busy {
			t.Errorf("unregistered while it is given a block: %d", why)
		}
		if why := r.do(OpDestroy, 0, nil); why != busy {
			t.Errorf("destroyed while a block is given: %d", why)
		}
		if why := r.do(end, 1, bytes); why != 0 {
			t.Errorf("op %d: %d", end, why)
		}
	}
	if got := r.get(1); got.BytesLive != 100 || got.Allocs != 1 {
		t.Errorf("%+v", got)
	}
	r.remove(1)
	if why := r.do(OpUnregister, 1, nil); why != 0 {
		t.Errorf("unregister: %d", why)
	}
}

// TestHuge: numbers of bytes that no device has do not make room by running over.
func TestHuge(t *testing.T) {
	r := newRig(t, 1000)
	r.do(OpMode, 0, func(c *Call) { c.On = 1 })
	for id := uint64(1); id <= 5; id++ {
		r.register(id, "g", -1)
	}
	for id := uint64(1); id <= 4; id++ {
		if why := r.do(OpAccount, id, func(c *Call) { c.Bytes = most }); why != 0 {
			t.Fatal(why)
		}
		if why := r.do(OpAccount, id, func(c *Call) { c.Bytes = 1 }); why != overFull {
			t.Errorf("more than can be counted: %d", why)
		}
	}
	if why := r.do(OpAccount, 5, func(c *Call) { c.Bytes = 1 << 63 }); why != overFull {
		t.Errorf("the least of all numbers: %d", why)
	}
	if why := r.add(5, 0x1000, 10, 0); why != noMemory {
		t.Errorf("four times 2^62 bytes left room for 10: %d", why)
	}
	r.do(OpMode, 0, func(c *Call) { c.On = 0 })
	if why := r.do(OpCharge, 1, func(c *Call) { c.Bytes = most }); why != noMemory {
		t.Errorf("more than can be counted: %d", why)
	}
	if why := r.do(OpCharge, 5, func(c *Call) { c.Bytes = math.MaxUint64 }); why != noMemory {
		t.Errorf("the largest of all numbers: %d", why)
	}
}

// TestTime: who was used since an instance began to look for room is not asked, nor is anybody
// for what could not be had if all gave way.
func TestTime(t *testing.T) {
	r := newRig(t, 1000)
	r.do(OpMode, 0, func(c *Call) { c.On = 1 })
	for id := uint64(1); id <= 3; id++ {
		r.register(id, "g", -1)
		r.add(id, id<<12, 10*id, 0)
	}
	c := r.call(OpCandidate, 3)
	c.Bytes = 969
	if why := Serve(c); why != 0 || c.Found != 1 {
		t.Fatalf("%d is first: %d", c.Found, why)
	}
	r.do(OpUse, 1, nil)
	if Serve(c) != 0 || c.Found != 2 {
		t.Fatalf("%d is second", c.Found)
	}
	first := r.call(OpFirst, 2)
	first.After = c.After
	if why := Serve(first); why != 0 || first.Address != 2<<12 {
		t.Errorf("%#x: %d", first.Address, why)
	}
	r.do(OpUse, 2, nil)
	if why := Serve(first); why != notThere {
		t.Errorf("a block of one that is at work again: %d", why)
	}
	if Serve(c) != notThere {
		t.Errorf("%d is asked again", c.Found)
	}
	c = r.call(OpCandidate, 3)
	if c.Bytes = 970; Serve(c) != notThere {
		t.Errorf("%d is asked in vain", c.Found)
	}
}

// TestGoneStream: blocks do not name a stream that has ended.
func TestGoneStream(t *testing.T) {
	r := newRig(t, 1000)
	r.register(1, "g", -1)
	r.add(1, 1<<12, 10, 500)
	r.add(1, 2<<12, 10, 600)
	r.do(OpStreamEnd, 0, func(c *Call) { c.Stream = 500 })
	streams := map[uint64]uint64{}
	i := (*manager)(raw.Ptr(uintptr(r.m))).first
	for b := i.blocks; b != nil; b = b.after {
		streams[b.address] = b.stream
	}
	if streams[1<<12] != StreamGone || streams[2<<12] != 600 || i.stream != 600 {
		t.Errorf("%v", streams)
	}
}
