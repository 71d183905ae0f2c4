package tiers

import (
	"fmt"
	"testing"
)

const splitMiB = 1 << 20

// askSplit is what ReserveSplit answers in the end, with every tier trimmed that it names.
func askSplit(t *testing.T, hint, n uintptr) (answer, first, bytes uintptr) {
	t.Helper()
	trimmed := uintptr(0)
	for range slots {
		answer, first, bytes = ReserveSplit(hint, n, 2*splitMiB, trimmed)
		if answer&Trim == 0 {
			return answer, first, bytes
		}
		bit := uintptr(1) << (answer & slotMask)
		if trimmed&bit != 0 || bytes != 0 {
			t.Fatalf("tier %d is to be trimmed, of %#x; %d bytes are charged", answer&slotMask,
				trimmed, bytes)
		}
		trimmed |= bit
	}
	t.Fatal("no end of trimming")
	return 0, 0, 0
}

// TestReserveSplit: what is left of a tier takes the first part, the next that has room the rest.
func TestReserveSplit(t *testing.T) {
	for _, c := range []struct {
		name         string
		env          []string
		before       [3]uintptr // MiB
		hint, n      uintptr
		answer       uintptr
		first, bytes uintptr
		after        [3]uintptr
		counts       string
	}{
		{"fits", []string{"FAST_HARD=32M"}, [3]uintptr{}, prefer, 32, fast, 0, 0,
			[3]uintptr{32, 0, 0}, ""},
		{"half", []string{"FAST_HARD=32M"}, [3]uintptr{}, prefer, 64, normal, fast, 32,
			[3]uintptr{32, 32, 0}, "routed 1 0 violations 1 0 0"},
		{"steps", []string{"FAST_HARD=32M"}, [3]uintptr{9, 0, 0}, hot, 64, normal, fast, 22,
			[3]uintptr{31, 42, 0}, "routed 1 0 violations 1 0 0"},
		{"less than a step", []string{"FAST_HARD=32M"}, [3]uintptr{31, 0, 0}, hot, 64, normal, 0, 0,
			[3]uintptr{31, 64, 0}, "routed 1 0 violations 1 0 0"},
		{"soft", []string{"FAST_SOFT=20M", "FAST_HARD=32M"}, [3]uintptr{}, prefer, 30, normal, fast,
			20, [3]uintptr{20, 10, 0}, "rerouted 1 0"},
		{"hot passes soft", []string{"FAST_SOFT=20M", "FAST_HARD=32M"}, [3]uintptr{}, hot, 40,
			normal, fast, 32, [3]uintptr{32, 8, 0}, "routed 1 0 violations 1 0 0"},
		{"warn passes soft", []string{"FAST_SOFT=20M", "FAST_HARD=32M", "ON_SOFTCAP=warn"},
			[3]uintptr{}, prefer, 40, normal, fast, 32, [3]uintptr{32, 8, 0},
			"routed 1 0 violations 1 0 0"},
		{"demote does not", []string{"FAST_SOFT=20M", "FAST_HARD=32M", "ON_SOFTCAP=demote"},
			[3]uintptr{}, prefer, 40, normal, fast, 20, [3]uintptr{20, 20, 0},
			"routed 1 0 violations 1 0 0"},
		{"the last two", []string{"FAST_HARD=32M", "NORMAL_HARD=32M"}, [3]uintptr{32, 12, 0},
			prefer, 64, slow, normal, 20, [3]uintptr{32, 32, 44}, "routed 1 1 violations 1 1 0"},
		{"over one that is full", []string{"FAST_HARD=32M", "NORMAL_HARD=32M"},
			[3]uintptr{0, 12, 0}, prefer, 64, slow, fast, 32, [3]uintptr{32, 12, 32},
			"routed 1 1 violations 1 1 0"},
		{"soft caps give way", []string{"FAST_SOFT=10M", "FAST_HARD=32M", "NORMAL_SOFT=20M",
			"NORMAL_HARD=40M", "SLOW_HARD=1M"}, [3]uintptr{}, prefer, 64,
			normal, fast, 32, [3]uintptr{32, 32, 0}, "routed 1 0 violations 1 0 1 exceeded 1"},
		{"no room", []string{"FAST_HARD=32M", "NORMAL_HARD=8M", "SLOW_HARD=8M"}, [3]uintptr{},
			prefer, 64, Refused, 0, 0, [3]uintptr{}, ""},
		{"fail", []string{"FAST_HARD=32M", "ON_HARDCAP=fail"}, [3]uintptr{}, prefer, 64, Refused, 0,
			0, [3]uintptr{}, ""},
		{"soft and fail", []string{"FAST_SOFT=32M", "ON_HARDCAP=fail"}, [3]uintptr{}, prefer, 64,
			normal, fast, 32, [3]uintptr{32, 32, 0}, "rerouted 1 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			setup(t, "p", c.env...)
			for i, n := range c.before {
				if !Admit(uintptr(i), n*splitMiB) {
					t.Fatal("no room")
				}
			}
			answer, first, bytes := askSplit(t, c.hint, c.n*splitMiB)
			if answer != c.answer || first != c.first || bytes != c.bytes*splitMiB {
				t.Errorf("tier %d, first %d MiB in %d", answer, bytes/splitMiB, first)
			}
			counts, f := "", filled()
			for i, n := range c.after {
				if got := uintptr(f[i].BytesCurrent); got != n*splitMiB {
					t.Errorf("tier %d has %d MiB, not %d", i, got/splitMiB, n)
				}
			}
			if n := f[0].Rerouted + f[1].Rerouted; n != 0 {
				counts += fmt.Sprintf("rerouted %d %d", f[0].Rerouted, f[1].Rerouted)
			}
			if n := f[0].RoutedSlow + f[1].RoutedSlow; n != 0 {
				counts += fmt.Sprintf("routed %d %d violations %d %d %d", f[0].RoutedSlow,
					f[1].RoutedSlow,
					f[0].CapacityViolations, f[1].CapacityViolations, f[2].CapacityViolations)
			}
			if n := f[0].SoftExceeded + f[1].SoftExceeded; n != 0 {
				counts += fmt.Sprintf(" exceeded %d", n)
			}
			if counts != c.counts || f[0].Refused+f[1].Refused != 0 {
				t.Errorf("counted: %s, want %s; %d refused", counts, c.counts, f[0].Refused)
			}
		})
	}
}

// TestReserveGrowth: what a block grows by goes on in the next tier where its own is full.
func TestReserveGrowth(t *testing.T) {
	for _, c := range []struct {
		name          string
		env           []string
		before        [3]uintptr // MiB
		hint, have, n uintptr
		answer, bytes uintptr
		after         [3]uintptr
	}{
		{"fits", []string{"FAST_HARD=32M"}, [3]uintptr{20, 0, 0}, hot, 20, 12, fast, 12,
			[3]uintptr{32, 0, 0}},
		{"over", []string{"FAST_HARD=32M"}, [3]uintptr{20, 0, 0}, hot, 20, 44, normal, 12,
			[3]uintptr{32, 32, 0}},
		{"steps of the block", []string{"FAST_HARD=32M"}, [3]uintptr{20, 0, 0}, hot, 15, 44, normal,
			11, [3]uintptr{31, 33, 0}},
		{"where it ended", []string{"FAST_HARD=32M"}, [3]uintptr{32, 0, 0}, hot, 15, 44, normal, 0,
			[3]uintptr{32, 44, 0}},
		{"no room", []string{"FAST_HARD=32M", "NORMAL_HARD=8M", "SLOW_HARD=8M"},
			[3]uintptr{20, 0, 0}, hot, 15, 44, Refused, 0, [3]uintptr{20, 0, 0}},
		{"hot passes soft", []string{"FAST_SOFT=24M", "FAST_HARD=32M"}, [3]uintptr{20, 0, 0}, hot,
			20, 12, fast, 12, [3]uintptr{32, 0, 0}},
		{"soft", []string{"FAST_SOFT=24M"}, [3]uintptr{20, 0, 0}, prefer, 20, 12, normal, 4,
			[3]uintptr{24, 8, 0}},
		{"soft gives way", []string{"FAST_SOFT=24M", "NORMAL_HARD=1M", "SLOW_HARD=1M"},
			[3]uintptr{20, 0, 0}, prefer, 20, 12, fast, 0, [3]uintptr{32, 0, 0}},
		{"fail", []string{"FAST_HARD=32M", "ON_HARDCAP=fail"}, [3]uintptr{20, 0, 0}, hot, 15, 44,
			Refused, 0, [3]uintptr{20, 0, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			setup(t, "p", c.env...)
			for i, n := range c.before {
				Admit(uintptr(i), n*splitMiB)
			}
			const all = 1<<slots - 1
			answer, bytes := ReserveGrowth(c.hint, fast, c.have*splitMiB, c.n*splitMiB, 2*splitMiB,
				all)
			if answer != c.answer || bytes != c.bytes*splitMiB {
				t.Errorf("tier %d, first %d MiB", answer, bytes/splitMiB)
			}
			f := filled()
			for i, n := range c.after {
				if got := uintptr(f[i].BytesCurrent); got != n*splitMiB {
					t.Errorf("tier %d has %d MiB, not %d", i, got/splitMiB, n)
				}
			}
			over := uint64(0)
			if c.answer != fast && f[0].CapacitySoft == 0 {
				over = 1
			}
			if v := f[0].CapacityViolations; v != over {
				t.Errorf("%d violations", v)
			}
		})
	}
}
