package alloc

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/numa"
	"tieralloc/tiers"
)

// tierOperations are what programs that know of tiers do, among what all do.
var tierOperations = slices.Concat(operations, []func(*sim) error{
	(*sim).hinted, (*sim).hinted, (*sim).hinted, (*sim).setHint, (*sim).move, (*sim).move,
	(*sim).renew, (*sim).followed, (*sim).parted, (*sim).parted,
})

// hinted allocates for a hint, as ta_alloc does.
func (s *sim) hinted() error {
	t, n, hint := s.anyThread(), s.someSize(), uintptr(s.pick(int(config.HintCount)))
	for range 1 + s.pick(32) {
		if len(s.m.blocks) >= simBlocks || s.m.bytes+n > simBytes {
			return nil
		}
		b := Alloc(t.enter(), n, hint)
		t.leave()
		if b == 0 && s.capped {
			return nil
		}
		if b == 0 {
			return fmt.Errorf("no memory for %d bytes, hint %d", n, hint)
		}
		p := Lookup(b)
		if !s.capped && tierOf(p.placement) != tiers.Home(hint) || uintptr(p.Hint) != hint {
			return fmt.Errorf(
				"a block for hint %d is in tier %d, hint %d",
				hint,
				tierOf(p.placement),
				p.Hint,
			)
		}
		if hint == uintptr(config.HintPinFast) && n != 0 && p.placement != placementPin {
			return fmt.Errorf("a pinned block is in place %d", p.placement)
		}
		if err := s.m.add(b&^ZeroBit, n, sizeclass.Granule, b&ZeroBit != 0); err != nil {
			return err
		}
	}
	return nil
}

func (s *sim) setHint() error {
	t, hint := s.anyThread(), uintptr(s.pick(int(config.HintCount)))
	was := uintptr(tiers.NoHint)
	if t.h.Thread.hinted {
		was = uintptr(t.h.Thread.hint)
	}
	if before := SetHint(t.enter(), hint); before != was {
		return fmt.Errorf("SetHint says %d, not %d", before, was)
	}
	t.leave()
	return nil
}

// move does what ta_move does.
func (s *sim) move() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	t, i, tier := s.anyThread(), s.pick(len(s.m.blocks)), uintptr(s.pick(int(config.TierCount)))
	b := s.m.blocks[i]
	p := Lookup(b.addr)
	pin, here := p.placement == placementPin, tierOf(p.placement)
	span := p.Owner == OwnerHuge || p.blocks == 1 && movable(p, uint32(tier))
	to := Move(t.enter(), b.addr, tier)
	t.leave()
	switch {
	case to == b.addr:
		if tierOf(p.placement) != tier {
			return fmt.Errorf(
				"block %#x moved to tier %d is in %d",
				b.addr,
				tier,
				tierOf(p.placement),
			)
		}
		return b.intact()
	case span && here != tier && tiers.Same(here, tier) && syscall.Errno(to) == syscall.ENOMEM:
		return fmt.Errorf("block %#x of %d bytes is to have room for another name of its memory",
			b.addr, b.size)
	case to < raw.Page:
		return s.notMoved(b, syscall.Errno(to), pin && tier != uintptr(config.TierFast))
	case span || pin && b.size != 0:
		return fmt.Errorf("block %#x of %d bytes moved to %#x", b.addr, b.size, to)
	}
	if q := Lookup(to); tierOf(q.placement) != tier || q.usable(to) < b.size {
		return fmt.Errorf("block %#x is to move to one of %d bytes in tier %d", b.addr,
			q.usable(to), tierOf(q.placement))
	}
	if err := s.freeBlock(t, i); err != nil {
		return err
	}
	return s.m.add(to, b.n, sizeclass.Granule, false)
}

func (s *sim) notMoved(b block, errno syscall.Errno, pin bool) error {
	switch {
	case pin != (errno == syscall.EPERM):
		return fmt.Errorf("moving block %#x: %v; pinned: %v", b.addr, errno, pin)
	case !s.capped && errno != syscall.EPERM && errno != syscall.EBUSY:
		return fmt.Errorf("moving block %#x: %v", b.addr, errno)
	}
	return b.intact()
}

// renew allocates what a realloc that copies would.
func (s *sim) renew() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	t, old, n := s.anyThread(), s.m.blocks[s.pick(len(s.m.blocks))], s.someSize()
	if len(s.m.blocks) >= simBlocks || s.m.bytes+n > simBytes {
		return nil
	}
	b := Renew(t.enter(), n, uintptr(tiers.CallerSet(0, 0, 0)), old.addr)
	t.leave()
	if b == 0 && s.capped {
		return nil
	}
	if b == 0 {
		return fmt.Errorf("no memory for %d bytes", n)
	}
	if !tiers.RulesOn() && Lookup(b).Hint != Lookup(old.addr).Hint {
		return fmt.Errorf("a block of hint %d is renewed for %d", Lookup(old.addr).Hint,
			Lookup(b).Hint)
	}
	return s.m.add(b&^ZeroBit, n, sizeclass.Granule, b&ZeroBit != 0)
}

// environment makes the settings of variables, as a process gets them.
func environment(t *testing.T, vars ...string) {
	t.Helper()
	at := raw.Map(16 << 10)
	t.Cleanup(func() { raw.Unmap(at, 16<<10) })
	text := at + 4096
	for i, v := range vars {
		raw.Store(at+uintptr(i)*8, text)
		copy(unsafe.Slice((*byte)(raw.Ptr(text)), len(v)), v)
		text += uintptr(len(v)) + 1
	}
	if bad := config.Parse(&testSettings, at); bad != 0 {
		t.Fatalf("%d of %q are bad", bad, vars)
	}
	DefaultHint = testSettings.DefaultHint
	tiers.Setup(&testSettings, &[4]uintptr{0, 1, 2, 3}, 0)
	SetPlacements(&testSettings, &numa.Map{Nodes: 1, Simulated: true})
}

// absentNodes makes the normal and the slow tier lie on nodes that do not exist: the
// kernel then refuses to move a page that has been touched, and none is bound.
func absentNodes() {
	SetPlacements(&testSettings, &numa.Map{Nodes: 1, Pin: numa.Place{Nodes: 1, Mode: numa.Strict},
		Tier: [4]numa.Place{
			{Nodes: 1, Mode: numa.PreferredMany}, {Nodes: 1 << 62, Mode: numa.PreferredMany},
			{Nodes: 1 << 63, Mode: numa.PreferredMany},
		}})
}

// oneMemory makes tiers one account, as where they lie on the same nodes.
func oneMemory(t *testing.T, account [4]uintptr) {
	t.Helper()
	none := uintptr(0)
	if bad := testSettings.ShareCaps(uintptr(unsafe.Pointer(&none)), &account, 2); bad != 0 {
		t.Fatalf("%d caps contradict", bad)
	}
	tiers.Setup(&testSettings, &account, 0)
}

// TestTierSimulation runs the simulation with tiers that are configured in all ways.
func TestTierSimulation(t *testing.T) {
	worlds := []struct {
		name      string
		vars      []string
		capped    bool
		otherTier bool
	}{
		{"idle", nil, false, false},
		{"cold", []string{"TA_DEFAULT_HINT=cold"}, false, false},
		{"reroute", []string{"TA_NORMAL_SOFT=8M", "TA_FAST_SOFT=4M"}, true, false},
		{"warn", []string{"TA_NORMAL_SOFT=8M", "TA_FAST_SOFT=4M", "TA_ON_SOFTCAP=warn"}, false,
			false},
		{"demote", []string{"TA_NORMAL_SOFT=8M", "TA_FAST_SOFT=4M", "TA_ON_SOFTCAP=demote",
			"TA_MIGRATE_BW=0"}, true, false},
		{"demote slowly", []string{"TA_NORMAL_SOFT=8M", "TA_FAST_SOFT=4M", "TA_ON_SOFTCAP=demote",
			"TA_MIGRATE_BW=100M"}, true, false},
		{"route", []string{"TA_FAST_HARD=10M", "TA_NORMAL_HARD=20M", "TA_SLOW_HARD=30M"}, true,
			false},
		{"fail", []string{"TA_FAST_HARD=10M", "TA_NORMAL_HARD=20M", "TA_SLOW_HARD=30M",
			"TA_ON_HARDCAP=fail"}, true, false},
		{"all", []string{"TA_FAST_HARD=16M", "TA_FAST_SOFT=8M", "TA_NORMAL_SOFT=16M",
			"TA_NORMAL_HARD=50M", "TA_ON_SOFTCAP=demote", "TA_SLOW_HARD=40M"}, true, false},
		{"throttled", []string{"TA_NORMAL_BW=1G", "TA_SLOW_LAT=1us", "TA_FAST_SOFT=4M"}, true,
			false},
		{
			"rules",
			[]string{
				"TA_RULES=size<=100:hot; size=5000-70000:cold; size>=1M:prefer_fast; lib=x*:cold",
			},
			true,
			false,
		},
		{"thp", []string{"TA_HUGEPAGES=thp", "TA_NORMAL_HARD=40M"}, true, false},
		{"on to thp", []string{"TA_HUGEPAGES=normal:thp,slow:2M", "TA_FAST_SOFT=4M",
			"TA_NORMAL_SOFT=12M", "TA_SLOW_HARD=60M"}, true, false},
		{"2M", []string{"TA_HUGEPAGES=fast:2M,normal:2M,slow:thp", "TA_FAST_HARD=40M"}, true,
			false},
		{"fast is normal, route", []string{"TA_FAST_HARD=20M", "TA_SLOW_HARD=40M"}, true, false},
		{"fast is normal, demote", []string{"TA_NORMAL_SOFT=8M", "TA_FAST_HARD=30M",
			"TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0"}, true, false},
		{"slow is normal, demote", []string{"TA_FAST_SOFT=4M", "TA_SLOW_SOFT=8M",
			"TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0"}, true, false},
		{"one memory for all", []string{"TA_SLOW_HARD=40M", "TA_FAST_SOFT=8M"}, true, false},
		{"stuck", []string{"TA_FAST_SOFT=4M", "TA_NORMAL_SOFT=8M", "TA_ON_SOFTCAP=demote",
			"TA_MIGRATE_BW=0"}, true, true},
		{"stuck and capped", []string{"TA_FAST_SOFT=4M", "TA_FAST_HARD=20M", "TA_NORMAL_HARD=20M",
			"TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0"}, true, true},
	}
	memories := map[string][4]uintptr{"fast is normal, route": {0, 0, 2, 3},
		"fast is normal, demote": {0, 0, 2, 3},
		"slow is normal, demote": {0, 1, 1, 3}, "one memory for all": {0, 0, 0, 3}}
	for _, w := range worlds {
		for seed := uint64(1); seed <= 3; seed++ {
			t.Run(fmt.Sprintf("%s/seed=%d", w.name, seed), func(t *testing.T) {
				newWorld(t)
				if seed == 3 {
					heaps = nurseryAfter
				}
				environment(t, w.vars...)
				if w.otherTier {
					absentNodes()
				}
				if account, ok := memories[w.name]; ok {
					oneMemory(t, account)
				}
				if err := simulateOf(&randomly{rand.New(rand.NewPCG(seed, 1)), *simOps / 2},
					tierOperations, w.capped); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}
