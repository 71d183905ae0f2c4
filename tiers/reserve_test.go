package tiers

import (
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"tieralloc/internal/raw"
)

func TestHome(t *testing.T) {
	for hint, want := range map[uintptr]uintptr{hot: fast, pinFast: fast, prefer: fast,
		warm: normal, cold: slow,
		NoHint: normal, 77: normal} {
		if got := Home(hint); got != want {
			t.Errorf("Home(%d) = %d", hint, got)
		}
	}
}

// TestReserve is the package's decision table: what each request of a list gets, and
// what is counted for it.
func TestReserve(t *testing.T) {
	type request struct{ hint, n, want uintptr }
	for _, c := range []struct {
		env      string
		requests []request
		want     [3]figures // current, exceeded, rerouted, routed, refused, violations
	}{
		{"", []request{{hot, 1, fast}, {warm, 2, normal}, {cold, 4, slow}, {pinFast, 8, fast},
			{prefer, 16, fast}},
			[3]figures{{current: 25}, {current: 2}, {current: 4}}},
		{"FAST_HARD=10", []request{{hot, 10, fast}, {hot, 0, fast}}, [3]figures{{current: 10}}},
		// Soft cap, reroute.
		{"NORMAL_SOFT=10", []request{{warm, 10, normal}, {warm, 1, slow}},
			[3]figures{{}, {current: 10, rerouted: 1}, {current: 1}}},
		{"FAST_SOFT=10", []request{{hot, 11, fast}, {pinFast, 1, fast}, {prefer, 5, normal}},
			[3]figures{{current: 12, exceeded: 2, rerouted: 1}, {current: 5}, {}}},
		{"FAST_SOFT=10 NORMAL_SOFT=10", []request{{prefer, 11, slow}, {prefer, 10, fast}},
			[3]figures{{current: 10, rerouted: 1}, {rerouted: 1}, {current: 11}}},
		{"SLOW_SOFT=10", []request{{cold, 11, slow}},
			[3]figures{{}, {}, {current: 11, exceeded: 1}}},
		{"FAST_SOFT=1 NORMAL_SOFT=1 SLOW_SOFT=1",
			[]request{{prefer, 2, fast}, {warm, 2, normal}, {cold, 2, slow}},
			[3]figures{{current: 2, exceeded: 1}, {current: 2, exceeded: 1},
				{current: 2, exceeded: 1}}},
		{"NORMAL_SOFT=1 SLOW_HARD=1", []request{{warm, 2, normal}},
			[3]figures{{}, {current: 2, exceeded: 1}, {violations: 1}}},
		{"ON_HARDCAP=fail NORMAL_SOFT=1 SLOW_HARD=1", []request{{warm, 2, normal}},
			[3]figures{{}, {current: 2, exceeded: 1}, {violations: 1}}},
		{"ON_HARDCAP=fail FAST_SOFT=1 NORMAL_HARD=1", []request{{prefer, 2, slow}},
			[3]figures{{rerouted: 1}, {routed: 1, violations: 1}, {current: 2}}},
		// Soft cap, warn and demote.
		{"ON_SOFTCAP=warn FAST_SOFT=1 NORMAL_SOFT=1 SLOW_SOFT=1",
			[]request{{prefer, 2, fast}, {warm, 2, normal}, {cold, 2, slow}, {hot, 2, fast},
				{pinFast, 2, fast}},
			[3]figures{{current: 6, exceeded: 3}, {current: 2, exceeded: 1},
				{current: 2, exceeded: 1}}},
		{"ON_SOFTCAP=demote NORMAL_SOFT=1 NORMAL_HARD=5",
			[]request{{warm, 5, normal}, {warm, 1, slow}},
			[3]figures{{}, {current: 5, exceeded: 1, routed: 1, violations: 1}, {current: 1}}},
		// Hard cap, route_slow.
		{"FAST_HARD=10", []request{{hot, 11, normal}, {prefer, 11, normal}, {hot, 10, fast}},
			[3]figures{{current: 10, routed: 2, violations: 2}, {current: 22}, {}}},
		{"FAST_HARD=10 NORMAL_HARD=10 SLOW_HARD=11",
			[]request{{hot, 11, slow}, {hot, 11, Refused}, {warm, 11, Refused}, {cold, 1, Refused}},
			[3]figures{{routed: 1, violations: 2, refused: 1},
				{routed: 1, violations: 3, refused: 1},
				{current: 11, violations: 3, refused: 1}}},
		{"FAST_HARD=10", []request{{pinFast, 11, Refused}, {pinFast, 10, fast},
			{pinFast, 1, Refused}},
			[3]figures{{current: 10, refused: 2, violations: 2}, {}, {}}},
		{"FAST_HARD=1 NORMAL_SOFT=1", []request{{hot, 2, normal}, {prefer, 2, slow}},
			[3]figures{{routed: 2, violations: 2}, {current: 2, exceeded: 1, rerouted: 1},
				{current: 2}}},
		{"FAST_HARD=1 NORMAL_SOFT=1 SLOW_SOFT=1", []request{{prefer, 2, normal}},
			[3]figures{{routed: 1, violations: 1}, {current: 2, exceeded: 1}, {}}},
		{"FAST_HARD=1 NORMAL_HARD=1 SLOW_SOFT=1", []request{{prefer, 2, slow}},
			[3]figures{{routed: 1, violations: 1}, {routed: 1, violations: 1},
				{current: 2, exceeded: 1}}},
		// Hard cap, fail.
		{"ON_HARDCAP=fail FAST_HARD=10", []request{{hot, 11, Refused}, {pinFast, 11, Refused},
			{prefer, 11, Refused}, {warm, 11, normal}},
			[3]figures{{refused: 3, violations: 3}, {current: 11}, {}}},
		{"ON_HARDCAP=fail SLOW_HARD=10", []request{{cold, 10, slow}, {cold, 1, Refused}},
			[3]figures{{}, {}, {current: 10, refused: 1, violations: 1}}},
		{"ON_HARDCAP=fail ON_SOFTCAP=demote FAST_SOFT=5 FAST_HARD=10",
			[]request{{prefer, 10, fast}, {prefer, 1, Refused}},
			[3]figures{{current: 10, exceeded: 1, refused: 1, violations: 1}, {}, {}}},
	} {
		setup(t, "prog", words(c.env)...)
		for i, r := range c.requests {
			if got, _ := reserve(r.hint, r.n); got != r.want {
				t.Errorf("%s: request %d: %#x, not %#x", c.env, i, got, r.want)
			}
		}
		if got := allFigures(); got != c.want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.env, got, c.want)
		}
	}
}

// TestTrim: which tiers the caller is asked to trim, in which order; nothing is counted
// or charged before it has.
func TestTrim(t *testing.T) {
	for _, c := range []struct {
		env     string
		filled  [3]uintptr
		hint, n uintptr
		want    []uintptr
		answer  uintptr
	}{
		{"", [3]uintptr{9, 9, 9}, warm, 5, nil, normal},
		{"NORMAL_SOFT=10", [3]uintptr{0, 6, 0}, warm, 4, nil, normal},
		{"NORMAL_SOFT=10", [3]uintptr{0, 6, 0}, warm, 5, []uintptr{normal}, slow},
		{"NORMAL_SOFT=10", [3]uintptr{0, 6, 0}, warm, 11, nil, slow}, // trimming cannot help
		{"FAST_SOFT=10", [3]uintptr{6, 0, 0}, hot, 5, nil, fast},     // it stays in any case
		{"FAST_SOFT=10", [3]uintptr{6, 0, 0}, prefer, 5, []uintptr{fast}, normal},
		{"ON_SOFTCAP=warn FAST_SOFT=10", [3]uintptr{6, 0, 0}, prefer, 5, nil, fast},
		{"ON_SOFTCAP=demote FAST_SOFT=10", [3]uintptr{6, 0, 0}, prefer, 5, nil, fast},
		{"SLOW_SOFT=10", [3]uintptr{0, 0, 6}, cold, 5, []uintptr{slow}, slow},
		{"FAST_HARD=10", [3]uintptr{6, 0, 0}, pinFast, 5, []uintptr{fast}, Refused},
		{"FAST_HARD=10", [3]uintptr{6, 0, 0}, pinFast, 11, nil, Refused},
		{"FAST_HARD=10 NORMAL_HARD=10 SLOW_HARD=10", [3]uintptr{6, 6, 6}, hot, 5,
			[]uintptr{fast, normal, slow}, Refused},
		{"FAST_SOFT=10 NORMAL_SOFT=10 SLOW_SOFT=10", [3]uintptr{6, 6, 6}, prefer, 5,
			[]uintptr{fast, normal, slow}, fast},
		{"FAST_SOFT=3 FAST_HARD=10 SLOW_HARD=10 NORMAL_HARD=10", [3]uintptr{3, 6, 6}, prefer, 5,
			[]uintptr{normal, slow}, fast},
		// for the hard cap
		{"FAST_SOFT=3 FAST_HARD=10", [3]uintptr{6, 0, 0}, prefer, 5, []uintptr{fast}, normal},
		{"ON_HARDCAP=fail NORMAL_HARD=10", [3]uintptr{6, 6, 6}, warm, 5, []uintptr{normal},
			Refused},
	} {
		setup(t, "prog", words(c.env)...)
		for tier, n := range c.filled {
			Admit(uintptr(tier), n)
		}
		before := allFigures()
		trimmed := uintptr(0)
		for _, tier := range c.want {
			if got := Reserve(c.hint, c.n, trimmed); got&^Last != Trim|tier {
				t.Errorf("%+v: %#x, not to trim %d", c, got, tier)
			}
			if after := allFigures(); after != before {
				t.Errorf("%+v: %+v after being asked to trim", c, after)
			}
			trimmed |= 1 << tier
		}
		if got := Reserve(c.hint, c.n, trimmed); got != c.answer {
			t.Errorf("%+v: %#x in the end", c, got)
		}
	}
	// Trimming that helps.
	setup(t, "prog", "FAST_HARD=10")
	Admit(fast, 8)
	if got := Reserve(pinFast, 4, 0); got != Trim|Last|fast {
		t.Errorf("%#x", got)
	}
	Release(fast, 2)
	if got := Reserve(pinFast, 4, 1); got != fast {
		t.Errorf("%#x after it was trimmed", got)
	}
	if got := allFigures()[0]; got != (figures{current: 10}) {
		t.Errorf("%+v", got)
	}
}

// TestHugeRequests: sums beyond 64 bits are no small ones.
func TestHugeRequests(t *testing.T) {
	const all = math.MaxUint64
	setup(t, "prog", "FAST_HARD=1G", "NORMAL_SOFT=1G")
	Admit(fast, 1)
	Admit(normal, 1)
	Admit(slow, 1)
	for _, n := range []uintptr{all, all - 1, 1 << 63, all - 1<<30 + 1} {
		if got, _ := reserve(pinFast, n); got != Refused {
			t.Errorf("%#x bytes: %#x", n, got)
		}
		if Admit(fast, n) || Room(fast, n) || !Full(fast, n) || Room(normal, n) {
			t.Errorf("%#x bytes fit", n)
		}
	}
	if got, _ := reserve(cold, all); got != Refused {
		t.Errorf("the sum wraps: %#x", got)
	}
	if got, _ := reserve(warm, all-1); got != slow && got != normal {
		t.Errorf("all that a tier without a cap holds: %#x", got)
	}
}

func TestRoomAndExcess(t *testing.T) {
	setup(t, "prog", "FAST_SOFT=800", "FAST_HARD=1000", "NORMAL_HARD=100")
	for _, c := range []struct {
		tier, current, n uintptr
		room, full       bool
		excess           uint64
	}{
		{fast, 0, 700, true, false, 0}, {fast, 0, 701, false, false, 0},
		{fast, 700, 0, true, false, 0},
		{fast, 701, 0, false, false, 0}, {fast, 800, 200, false, false, 0},
		{fast, 801, 199, false, false, 1},
		{fast, 1000, 0, false, false, 200}, {fast, 1000, 1, false, true, 200},
		{normal, 0, 100, true, false, 0}, {normal, 0, 101, false, true, 0},
		{normal, 100, 0, true, false, 0},
		{slow, 1 << 40, 1 << 40, true, false, 0},
	} {
		if !Admit(c.tier, c.current) {
			t.Fatalf("%+v", c)
		}
		if Room(c.tier, c.n) != c.room || Full(c.tier, c.n) != c.full ||
			Excess(c.tier) != c.excess {
			t.Errorf("%+v: room %v, full %v, excess %d", c, Room(c.tier, c.n), Full(c.tier, c.n),
				Excess(c.tier))
		}
		Release(c.tier, c.current)
	}
	setup(t, "prog", "FAST_SOFT=1000", "FAST_HARD=1000")
	if Room(fast, 876) || !Room(fast, 875) {
		t.Error("7/8 of 1000")
	}
}

func TestAdmitAndRelease(t *testing.T) {
	setup(t, "prog", "FAST_SOFT=4", "FAST_HARD=10")
	if !Admit(fast, 10) || Admit(fast, 1) || !Admit(normal, 100) {
		t.Error("the cap does not hold")
	}
	Release(fast, 7)
	Release(normal, 100)
	got := filled()
	if f := figuresOf(got[0]); f != (figures{current: 3, violations: 1}) || got[0].BytesPeak != 10 {
		t.Errorf("%+v, peak %d", f, got[0].BytesPeak)
	}
	if got[1].BytesCurrent != 0 || got[1].BytesPeak != 100 {
		t.Errorf("%+v", got[1])
	}
}

// TestOverRelease: what was never charged cannot be released.
func TestOverRelease(t *testing.T) {
	if os.Getenv("OVER_RELEASE") != "" {
		setup(t, "prog")
		Admit(fast, 5)
		Release(fast, 5)
		Release(fast, 1)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOverRelease$")
	cmd.Env = append(os.Environ(), "OVER_RELEASE=1")
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out),
		"tieralloc: internal check failed: a tier is released more") {
		t.Errorf("%v, %s", err, out)
	}
}

func TestMigrating(t *testing.T) {
	for env, want := range map[string]bool{"": false, "ON_SOFTCAP=demote": false,
		"FAST_SOFT=1":                   false,
		"ON_SOFTCAP=demote SLOW_SOFT=1": true, "ON_SOFTCAP=demote FAST_SOFT=1": true,
		"ON_SOFTCAP=warn FAST_SOFT=1":   false,
		"ON_SOFTCAP=demote FAST_HARD=1": false} {
		if setup(t, "prog", words(env)...); Migrating() != want {
			t.Errorf("%s: %v", env, !want)
		}
	}
}

// TestSetupForgets: nothing of a policy or of its counts is left by the next.
func TestSetupForgets(t *testing.T) {
	setup(t, "prog", "FAST_SOFT=1", "FAST_HARD=2", "FAST_BW=1K", "FAST_LAT=1us",
		"ON_SOFTCAP=demote", "ON_HARDCAP=fail",
		"RULES=size=1,lib=x,thread=y:hot", "MIGRATE_BW=1K")
	reserve(hot, 2)
	reserve(hot, 3)
	Wait(fast, 1<<20, raw.Clock(raw.ClockMono))
	Moved(fast, 1, 2)
	setup(t, "prog")
	if got := filled(); allFigures() != [3]figures{} || got[0].SimulatedWaitNs != 0 ||
		got[0].Migrations.Attempted != 0 || got[0].CapacitySoft != 0 || got[0].ThrottleBW != 0 ||
		got[0].BytesPeak != 0 {
		t.Errorf("%+v", got)
	}
	if Migrating() || AnyThrottled() || RulesOn() || NeedsCaller() || NeedsThread() {
		t.Error("the old policy is left")
	}
}

func TestFill(t *testing.T) {
	setup(t, "prog", "FAST_SOFT=1K", "FAST_HARD=2K", "NORMAL_BW=100K", "SLOW_BW=100M",
		"SLOW_BURST=5", "SLOW_LAT=7ns")
	Admit(slow, 11)
	Release(slow, 1)
	Wait(slow, 10, raw.Clock(raw.ClockMono))
	Moved(slow, 5, 3)
	Moved(slow, 0, 1)
	got := filled()
	if f := got[0]; f.CapacitySoft != 1024 || f.CapacityHard != 2048 || f.ThrottleBW != 0 ||
		f.ThrottleBurst != 0 {
		t.Errorf("fast: %+v", f)
	}
	if n := got[1]; n.CapacitySoft != 0 || n.CapacityHard != 0 || n.ThrottleBW != 100<<10 ||
		n.ThrottleBurst != 64<<10 || n.ThrottleLatNs != 0 {
		t.Errorf("normal: %+v", n)
	}
	s := got[2]
	if s.ThrottleBW != 100<<20 || s.ThrottleBurst != 5 || s.ThrottleLatNs != 7 ||
		s.BytesCurrent != 10 || s.BytesPeak != 11 ||
		s.ThrottleSleeps != 0 || s.ThrottleOvershootNs != 0 {
		t.Errorf("slow: %+v", s)
	}
	if w := s.SimulatedWaitNs; w < 7 || w > 7+96 { // ten bytes, or fewer that were not in the burst
		t.Errorf("waits %d ns", w)
	}
	if m := s.Migrations; m.Attempted != 2 || m.MovedPages != 5 || m.FailedPages != 4 {
		t.Errorf("%+v", m)
	}
	setup(t, "prog", "SLOW_BW=1G")
	if got := filled()[2].ThrottleBurst; got != 1<<30/100 {
		t.Errorf("the default burst of 1 GiB/s is %d", got)
	}
}

// TestForkChild: a child has its parent's memory and caps, and counts for itself.
func TestForkChild(t *testing.T) {
	setup(t, "prog", "FAST_SOFT=10", "FAST_HARD=20", "FAST_BW=1M", "FAST_BURST=9", "FAST_LAT=5ns")
	reserve(hot, 15)
	reserve(hot, 15)
	reserve(prefer, 4)
	Release(fast, 5)
	Wait(fast, 1<<20, raw.Clock(raw.ClockMono))
	Moved(fast, 1, 1)
	owed := tiers[fast].bucket
	ForkChild()
	want := filled()[0]
	for _, v := range []*uint64{&want.CapacityViolations, &want.SoftExceeded, &want.Rerouted,
		&want.RoutedSlow, &want.Refused,
		&want.SimulatedWaitNs, &want.Migrations.Attempted, &want.Migrations.MovedPages,
		&want.Migrations.FailedPages} {
		if *v != 0 {
			t.Errorf("%+v", want)
			break
		}
	}
	if want.BytesCurrent != 10 || want.BytesPeak != 10 || want.CapacitySoft != 10 ||
		want.CapacityHard != 20 ||
		want.ThrottleBW != 1<<20 || want.ThrottleBurst != 9 || want.ThrottleLatNs != 5 ||
		!Throttled(fast) {
		t.Errorf("%+v", want)
	}
	if got, asked := reserve(pinFast, 11); got != Refused || !slices.Equal(asked, []uintptr{fast}) {
		t.Errorf("the cap is gone: %#x", got)
	}
	if tiers[fast].bucket != owed {
		t.Error("the bucket is not the parent's")
	}
}
