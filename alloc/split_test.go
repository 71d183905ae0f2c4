package alloc

import (
	"fmt"
	"syscall"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// splitWorld is a heap of blocks for the fast tier, under the caps of variables.
func splitWorld(t *testing.T, vars ...string) *Heap {
	t.Helper()
	newWorld(t)
	environment(t, append(vars, "TA_DEFAULT_HINT=prefer_fast")...)
	h := mustAcquire(t, 8)
	h.Thread.Now = 1e9
	h.unspread = true // a block of so many MiB takes no more
	return h
}

// layout is what a block is, and what the tiers are charged with, in MiB.
func layout(t *testing.T, b uintptr) string {
	t.Helper()
	in := raw.Map(raw.Page)
	defer raw.Unmap(in, raw.Page)
	if errno := TierOfRange(b, 0, ^uintptr(0), in); errno != 0 {
		t.Fatalf("no block at %#x: %d", b, errno)
	}
	text := fmt.Sprintf("tier %d, %d %d %d of", TierOf(b), raw.Load(in)/mib, raw.Load(in+8)/mib,
		raw.Load(in+16)/mib)
	for _, f := range tierFigures() {
		text += fmt.Sprintf(" %d", f.BytesCurrent/mib)
	}
	return text
}

// lies fails unless a block has such a layout and the heap is sound.
func lies(t *testing.T, b uintptr, want string) {
	t.Helper()
	if got := layout(t, b); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	sound(t)
}

// numbered writes its distance from the start to each memory page of a block; isNumbered looks for
// it.
func numbered(b, n uintptr) {
	for at := uintptr(0); at < n; at += raw.Page {
		raw.Store(b+at, at)
	}
}

func isNumbered(t *testing.T, b, n uintptr) {
	t.Helper()
	for at := uintptr(0); at < n; at += raw.Page {
		if raw.Load(b+at) != at {
			t.Fatalf("%#x at %#x", raw.Load(b+at), at)
		}
	}
}

// TestSplit: a block larger than what is left of its tier has its first part there.
func TestSplit(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	b := mustServe(t, h, 64*mib)
	lies(t, b, "tier 0, 32 32 0 of 32 32 0")
	c := mustServe(t, h, 5*mib)
	lies(t, c, "tier 1, 0 5 0 of 32 37 0")
	drop(h, c)
	drop(h, b)
	purgeAll(h.Thread)
	c = mustServe(t, h, 29*mib)
	b = Aligned(h, 8*mib, 64*mib, ^uintptr(0), 0) &^ ZeroBit
	lies(t, b, "tier 0, 2 62 0 of 31 62 0")
	drop(h, b)
	drop(h, c)
	sound(t)
	if n := pool.cache.bytes; n != 29*mib {
		t.Errorf("%d bytes are cached", n)
	}
}

// TestSplitRange: TierOfRange tells of the part of a block that it is asked for.
func TestSplitRange(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	b := mustServe(t, h, 64*mib)
	small := mustServe(t, h, 100)
	in := raw.Map(raw.Page)
	defer raw.Unmap(in, raw.Page)
	for _, c := range []struct{ at, n, fast, normal uintptr }{
		{0, 64 * mib, 32 * mib, 32 * mib}, {0, ^uintptr(0), 32 * mib, 32 * mib}, {0, 1, 1, 0},
		{0, 0, 0, 0},
		{32*mib - 1, 2, 1, 1}, {32 * mib, 5, 0, 5}, {5, 10, 10, 0}, {64*mib - 1, 5, 0, 1},
		{64 * mib, 5, 0, 0}, {^uintptr(0), ^uintptr(0), 0, 0},
	} {
		if errno := TierOfRange(b, c.at, c.n, in); errno != 0 || raw.Load(in) != c.fast ||
			raw.Load(in+8) != c.normal || raw.Load(in+16) != 0 {
			t.Errorf("%d bytes from %d on: errno %d, %d and %d", c.n, c.at, errno, raw.Load(in),
				raw.Load(in+8))
		}
	}
	if errno := TierOfRange(small, 0, ^uintptr(0), in); errno != 0 ||
		raw.Load(in)+raw.Load(in+8) != Usable(small) || raw.Load(in) != 0 {
		t.Errorf("a small block: %d, %d and %d bytes", errno, raw.Load(in), raw.Load(in+8))
	}
	if errno := TierOfRange(b+mib, 0, 1, in); errno != uintptr(syscall.EINVAL) {
		t.Errorf("what is no block: %d", errno)
	}
}

// TestSplitResize: a split block grows and shrinks at its end; what is left of it when the end is
// gone is a block as any other.
func TestSplitResize(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	b := mustServe(t, h, 64*mib)
	numbered(b, 64*mib)
	for _, c := range []struct {
		n    uintptr
		want string
	}{
		{65, "tier 0, 32 33 0 of 32 33 0"},
		{300, "tier 0, 32 268 0 of 32 268 0"},
		{40, "tier 0, 32 8 0 of 32 8 0"},
		{32, "tier 0, 32 0 0 of 32 0 0"},
		{34, "tier 0, 32 2 0 of 32 2 0"},
		{20, "tier 0, 20 0 0 of 20 0 0"},
		{25, "tier 0, 25 0 0 of 25 0 0"},
		{90, "tier 0, 32 58 0 of 32 58 0"},
	} {
		if b = Resize(h, b, c.n*mib); b == 0 {
			t.Fatalf("not resized to %d MiB", c.n)
		}
		lies(t, b, c.want)
		isNumbered(t, b, min(c.n, 20)*mib)
	}
	drop(h, b)
	sound(t)
	for _, f := range tierFigures() {
		if f.BytesCurrent != 0 {
			t.Errorf("%d bytes are charged", f.BytesCurrent)
		}
	}
}

// TestSplitGrowthOfPage: a page of one block that becomes a block of its own, and larger than its
// tier, is split.
func TestSplitGrowthOfPage(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	b := mustServe(t, h, mib)
	numbered(b, mib)
	if b = Resize(h, b, 64*mib); b == 0 {
		t.Fatal("not resized")
	}
	isNumbered(t, b, mib)
	if first := Lookup(b).parted(64 * mib); first.placement != 0 || first.bytes > 32*mib ||
		first.bytes < 28*mib {
		t.Errorf("%d MiB are in %d", first.bytes/mib, first.placement)
	}
	sound(t)
}

// TestSplitMove: ta_move brings all of a split block to a tier, also to a third one while the two
// are full.
func TestSplitMove(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M", "TA_NORMAL_HARD=40M")
	b := mustServe(t, h, 64*mib)
	numbered(b, 64*mib)
	lies(t, b, "tier 0, 32 32 0 of 32 32 0")
	for _, c := range []struct {
		tier, answer uintptr
		want         string
	}{
		{uintptr(config.TierFast), uintptr(syscall.ENOMEM), "tier 0, 32 32 0 of 32 32 0"},
		{uintptr(config.TierNormal), uintptr(syscall.ENOMEM), "tier 0, 32 32 0 of 32 32 0"},
		{uintptr(config.TierSlow), b, "tier 2, 0 0 64 of 0 0 64"},
	} {
		if to := Move(h, b, c.tier); to != c.answer {
			t.Errorf("moving to %d: %#x", c.tier, to)
		}
		lies(t, b, c.want)
		isNumbered(t, b, 64*mib)
	}
	drop(h, b)
	sound(t)
}

// TestSplitNames: what of a split block lies in the new tier's memory by another name needs no room
// there, and stays.
func TestSplitNames(t *testing.T) {
	for _, c := range []struct {
		account  [4]uintptr
		before   string
		tier     uintptr
		after    string
		slowHard string
	}{
		{[4]uintptr{0, 0, 2, 3}, "tier 0, 40 0 10 of 60 0 10", uintptr(config.TierNormal),
			"tier 1, 0 50 0 of 0 50 0", "TA_SLOW_HARD=1G"},
		{[4]uintptr{0, 1, 1, 3}, "tier 0, 40 10 0 of 60 10 0", uintptr(config.TierSlow),
			"tier 2, 0 0 50 of 0 0 50", "TA_SLOW_HARD=56M"},
		{[4]uintptr{0, 1, 1, 3}, "tier 0, 40 10 0 of 60 10 0", uintptr(config.TierSlow),
			"tier 0, 40 10 0 of 40 10 0", "TA_SLOW_HARD=48M"},
	} {
		h := splitWorld(t, "TA_FAST_HARD=60M", c.slowHard)
		oneMemory(t, c.account)
		a := mustServe(t, h, 20*mib)
		b := mustServe(t, h, 50*mib)
		numbered(b, 50*mib)
		lies(t, b, c.before)
		drop(h, a)
		purgeAll(h.Thread)
		if to := Move(h, b, c.tier); (to == b) != (TierOf(b) == c.tier) ||
			to != b && to != uintptr(syscall.ENOMEM) {
			t.Errorf("moving to %d: %#x", c.tier, to)
		}
		lies(t, b, c.after)
		isNumbered(t, b, 50*mib)
		drop(h, b)
		sound(t)
	}
}

// TestSplitHome: with demotion a split block goes on to its home when that has room.
func TestSplitHome(t *testing.T) {
	h := splitWorld(t, "TA_FAST_SOFT=64M", "TA_FAST_HARD=128M", "TA_ON_SOFTCAP=demote",
		"TA_MIGRATE_BW=0")
	a := mustServe(t, h, 40*mib)
	b := mustServe(t, h, 100*mib)
	numbered(b, 100*mib)
	lies(t, b, "tier 0, 24 76 0 of 64 76 0")
	drop(h, a)
	purgeAll(h.Thread)
	for range 8 {
		h.Thread.Now += 1e9
		migrate(h.Thread.token, h.Thread.Now)
	}
	lies(t, b, "tier 0, 56 44 0 of 56 44 0") // up to 7/8 of the soft cap
	isNumbered(t, b, 100*mib)
}

// TestSplitDown: with demotion the first part of a split block goes down in its turn, before what
// is HOT, from its end, and comes back when there is room.
func TestSplitDown(t *testing.T) {
	h := splitWorld(t, "TA_FAST_SOFT=64M", "TA_FAST_HARD=128M", "TA_ON_SOFTCAP=demote",
		"TA_MIGRATE_BW=0")
	step := func() {
		for range 8 {
			h.Thread.Now += 1e9
			migrate(h.Thread.token, h.Thread.Now)
		}
	}
	b := mustServe(t, h, 130*mib)
	numbered(b, 130*mib)
	lies(t, b, "tier 0, 64 66 0 of 64 66 0")
	hot := Alloc(h, 20*mib, uintptr(config.HintHot)) &^ ZeroBit
	step()
	lies(t, b, "tier 0, 44 86 0 of 64 86 0")
	lies(t, hot, "tier 0, 20 0 0 of 64 86 0")
	more := Alloc(h, 60*mib, uintptr(config.HintHot)) &^ ZeroBit
	step()
	lies(t, b, "tier 1, 0 130 0 of 64 146 0")
	isNumbered(t, b, 130*mib)
	drop(h, more)
	drop(h, hot)
	purgeAll(h.Thread)
	step()
	lies(t, b, "tier 0, 56 74 0 of 56 74 0")
	isNumbered(t, b, 130*mib)
	drop(h, b)
	sound(t)
}

// TestSplitForeign: another thread frees a split block, and a forked child has it charged to both
// tiers.
func TestSplitForeign(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	b := mustServe(t, h, 64*mib)
	ForkChild(8, ForkPrepare(8), h, false)
	lies(t, b, "tier 0, 32 32 0 of 32 32 0")
	other := mustAcquire(t, 16)
	if why := Free(other, b, HowAny, NoSize, 0); why != FreeOK {
		t.Errorf("free says %d", why)
	}
	sound(t)
}

// TestSplitRefused: where the kernel refuses to map, nothing stays charged.
func TestSplitRefused(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	const most = 1 << 46
	if b := Malloc(h, most, 0, 0); b != 0 {
		t.Skip("the kernel maps all")
	}
	sound(t)
	for i, f := range tierFigures() {
		if f.BytesCurrent != 0 {
			t.Errorf("tier %d is charged with %d bytes", i, f.BytesCurrent)
		}
	}
}

// TestSplitSecure: so it is with TA_SECURE=1.
func TestSplitSecure(t *testing.T) {
	hardWorld(t)
	environment(t, "TA_FAST_HARD=32M", "TA_DEFAULT_HINT=prefer_fast")
	h := mustAcquire(t, 8)
	b := mustServe(t, h, 64*mib)
	lies(t, b, "tier 0, 32 32 0 of 32 32 0")
	drop(h, b)
	sound(t)
}

// TestNoSplit: PIN_FAST is whole or refused, and so is everything where the policy is to fail.
func TestNoSplit(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M")
	if b := Alloc(h, 64*mib, uintptr(config.HintPinFast)); b != 0 {
		t.Error("64 MiB are pinned")
	}
	h = splitWorld(t, "TA_FAST_HARD=32M", "TA_ON_HARDCAP=fail")
	if b := Malloc(h, 64*mib, 0, 0); b != 0 {
		t.Error("64 MiB under a cap of 32")
	}
	sound(t)
	if f := tierFigures()[0]; f.Refused != 1 || f.CapacityViolations != 1 || f.BytesCurrent != 0 {
		t.Errorf("%d refused, %d violations", f.Refused, f.CapacityViolations)
	}
}

// TestSplitThrottled: each part takes the time of its tier.
func TestSplitThrottled(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M", "TA_FAST_BW=1G", "TA_NORMAL_BW=1G")
	h.Thread.Now = raw.Clock(raw.ClockMono)
	mustServe(t, h, 64*mib)
	const each = 32 * mib // nanoseconds, at a byte for each, less what a burst lets through
	for i, f := range tierFigures()[:2] {
		if f.SimulatedWaitNs == 0 || f.SimulatedWaitNs > each*11/10 {
			t.Errorf("tier %d: a wait of %d ns", i, f.SimulatedWaitNs)
		}
	}
}

// TestSplitStuck: once pages of a split block would not go down, there are more in the faster tier
// than its first part. No step moves such a block any more; ta_move does, all of it.
func TestSplitStuck(t *testing.T) {
	h := splitWorld(t, "TA_FAST_SOFT=120M", "TA_FAST_HARD=128M", "TA_ON_SOFTCAP=demote",
		"TA_MIGRATE_BW=0")
	a := mustServe(t, h, 100*mib)
	b := mustServe(t, h, 40*mib)
	lies(t, b, "tier 0, 20 20 0 of 120 20 0")
	p := Lookup(b)
	poolLock.Take(8)
	if !pinMigrationLocked(8, p) || !charged(p, p.placement, migrateChunk) {
		t.Fatal("not held")
	}
	moved(p, p.placement, migrateChunk, mib)
	unpinMigrationLocked(8, p)
	poolLock.Release()
	drop(h, a)
	purgeAll(h.Thread)
	for range 8 {
		h.Thread.Now += 1e9
		migrate(h.Thread.token, h.Thread.Now)
	}
	lies(t, b, "tier 0, 16 24 0 of 17 23 0")
	if Move(h, b, uintptr(config.TierFast)) != b {
		t.Error("not moved")
	}
	lies(t, b, "tier 0, 40 0 0 of 40 0 0")
	drop(h, b)
	sound(t)
}
