package tiers

import "testing"

// What the kernel has moved into a tier's memory takes of its soft cap, and what it has moved out
// makes room.
func TestKernelMoved(t *testing.T) {
	for _, c := range []struct {
		in, out uintptr
		cap     uintptr // of what is charged
	}{{0, 0, 100}, {30, 0, 70}, {0, 50, 150}, {30, 50, 120}, {100, 0, 0}, {900, 10, 0}} {
		setup(t, "prog", "NORMAL_SOFT=100")
		KernelMoved(normal, c.in, c.out)
		if c.cap != 0 && Reserve(warm, c.cap, 7) != normal {
			t.Errorf("in %d, out %d: %d bytes were rerouted", c.in, c.out, c.cap)
		}
		if Reserve(warm, 1, 7) != slow {
			t.Errorf("in %d, out %d: %d bytes were not rerouted", c.in, c.out, c.cap+1)
		}
		Admit(normal, 10)
		if got := Excess(normal); got != 10 {
			t.Errorf("in %d, out %d: an excess of %d", c.in, c.out, got)
		}
		if room := c.cap - c.cap/8; Room(normal, 1) != (c.cap+10 < room) {
			t.Errorf("in %d, out %d: room %t", c.in, c.out, Room(normal, 1))
		}
	}
}
