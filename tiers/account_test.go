package tiers

import (
	"math/rand/v2"
	"sync/atomic"
	"testing"
)

// TestOneMemory: what does not fit into one memory goes to the next tier that is other memory, and
// caps hold for all tiers of a memory.
func TestOneMemory(t *testing.T) {
	for _, c := range []struct {
		name    string
		account [4]uintptr
		env     string
		hint, n uintptr
		times   int
		want    [3]uint64 // bytes in the tiers
		refused int
	}{
		{"over the fast cap", [4]uintptr{0, 0, 2, 3}, "FAST_HARD=32", prefer, 10, 9,
			[3]uint64{30, 0, 60}, 0},
		{"over the fast cap, for others", [4]uintptr{0, 0, 2, 3}, "FAST_HARD=32", warm, 10, 9,
			[3]uint64{0, 30, 60}, 0},
		{"over the normal cap", [4]uintptr{0, 0, 2, 3}, "NORMAL_HARD=32", hot, 10, 9,
			[3]uint64{30, 0, 60}, 0},
		{"the smaller cap", [4]uintptr{0, 0, 2, 3}, "FAST_HARD=64 NORMAL_HARD=32", hot, 10, 9,
			[3]uint64{30, 0, 60}, 0},
		{"over a soft cap", [4]uintptr{0, 0, 2, 3}, "FAST_SOFT=32", warm, 10, 9,
			[3]uint64{0, 30, 60}, 0},
		{"normal and slow are one", [4]uintptr{0, 1, 1, 3}, "FAST_HARD=32 SLOW_HARD=20", hot, 10, 9,
			[3]uint64{30, 20, 0}, 4},
		{"nothing else is there", [4]uintptr{0, 0, 0, 3}, "SLOW_HARD=32", hot, 10, 9,
			[3]uint64{30, 0, 0}, 6},
		{"fast and slow are one", [4]uintptr{0, 1, 0, 3}, "FAST_HARD=32 NORMAL_HARD=20", hot, 10, 9,
			[3]uint64{30, 20, 0}, 4},
		{"no slower memory", [4]uintptr{0, 0, 0, 3}, "FAST_SOFT=32", prefer, 10, 9,
			[3]uint64{90, 0, 0}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			setupOn(t, &c.account, "prog", words(c.env)...)
			refused := 0
			for range c.times {
				if answer, _ := reserve(c.hint, c.n); answer == Refused {
					refused++
				}
			}
			var got [3]uint64
			for i, f := range filled() {
				got[i] = f.BytesCurrent
			}
			if got != c.want || refused != c.refused {
				t.Errorf("%d, %d refused, not %d, %d", got, refused, c.want, c.refused)
			}
		})
	}
}

// TestBelow: memory moves down to other memory only, and to none that a faster tier has.
func TestBelow(t *testing.T) {
	const none = ^uintptr(0)
	for _, c := range []struct {
		account [4]uintptr
		want    [3]uintptr
	}{
		{apart, [3]uintptr{normal, slow, none}},
		{[4]uintptr{0, 0, 2, 3}, [3]uintptr{slow, slow, none}},
		{[4]uintptr{0, 1, 1, 3}, [3]uintptr{normal, none, none}},
		{[4]uintptr{0, 1, 0, 3}, [3]uintptr{normal, none, none}},
		{[4]uintptr{0, 0, 0, 3}, [3]uintptr{none, none, none}},
	} {
		setupOn(t, &c.account, "prog")
		for tier, want := range c.want {
			if got, ok := Below(uintptr(tier)); ok != (want != none) || ok && got != want {
				t.Errorf("%d: below %d is %d %v", c.account, tier, got, ok)
			}
		}
	}
}

// TestConcurrentAccount has threads charge two tiers of one memory at a cap that is always near.
func TestConcurrentAccount(t *testing.T) {
	const threads, limit = 8, 30_000
	setupOn(t, &[4]uintptr{0, 0, 2, 3}, "prog", "NORMAL_HARD=30000", "SLOW_HARD=1M")
	release := func(h holding) { Release(uintptr(h.tier), uintptr(h.n)) }
	contend(threads, func(r *rand.Rand) (holding, bool) {
		n := 1 + r.Uint64N(12_000)
		answer, _ := reserve(uintptr(r.IntN(5)), uintptr(n))
		if c := atomic.LoadUint64(&memory(normal).current); c > limit {
			t.Errorf("%d bytes, hard cap %d", c, limit)
		}
		return holding{uint64(answer), n}, answer != Refused
	}, func(r *rand.Rand, h holding) {
		if h.tier < 2 && r.IntN(2) == 0 {
			Shift(uintptr(h.tier), uintptr(1-h.tier), uintptr(h.n))
			h.tier = 1 - h.tier
		}
		release(h)
	}, release)
	for i := range tierCount {
		if held(i) != 0 || memory(i).current != 0 {
			t.Errorf("tier %d: %d left, its memory %d", i, held(i), memory(i).current)
		}
	}
	if of(fast).peak > limit || of(normal).peak > limit || at(fast).violations == 0 {
		t.Errorf("peaks %d and %d, %d violations", of(fast).peak, of(normal).peak,
			at(fast).violations)
	}
}
