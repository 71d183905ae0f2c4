package alloc

import (
	"fmt"
	"testing"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// regionsNow is what a survey lists, by address.
func regionsNow(token uintptr) map[uintptr]Region {
	all := map[uintptr]Region{}
	s := new(Survey)
	for {
		n := SurveyNext(token, uintptr(unsafe.Pointer(s)))
		if n == 0 {
			return all
		}
		for _, r := range s.Regions[:n] {
			all[r.Start] = r
		}
	}
}

// follows moves the region at an address.
func follows(t *testing.T, h *Heap, at, tier, want uintptr) {
	t.Helper()
	r, ok := regionsNow(h.Thread.token)[at]
	if !ok {
		t.Fatalf("no region at %#x", at)
	}
	h.Thread.Now += 1e9
	got := Follow(h.Thread.token, uintptr(h.Thread.Now), r.Block, r.Start, r.Bytes, tier)
	if got != want {
		t.Errorf("moving %d KiB at %#x to tier %d: %d, not %d", r.Bytes>>10, at, tier, got, want)
	}
	sound(t)
}

// TestFollowParts: parts of a huge block move one by one, are charged exactly, and the block can be
// resized, moved as a whole and freed as any other.
func TestFollowParts(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	b := mustServe(t, h, 21*mib)
	numbered(b, 21*mib)
	follows(t, h, b+4*mib, 2, FollowMoved)
	lies(t, b, "tier 0, 19 0 2 of 19 0 2")
	follows(t, h, b, 2, FollowMoved)
	follows(t, h, b+20*mib, 2, FollowMoved)
	lies(t, b, "tier 2, 16 0 5 of 16 0 5")
	follows(t, h, b+6*mib, 1, FollowRefused) // it lies in two tiers
	follows(t, h, b, 0, FollowMoved)
	follows(t, h, b, 0, FollowGone)
	lies(t, b, "tier 0, 18 0 3 of 18 0 3")
	for _, c := range []struct {
		n    uintptr
		want string
	}{
		{40, "tier 0, 18 0 22 of 18 0 22"},
		{5, "tier 0, 4 0 1 of 4 0 1"},
		{4, "tier 0, 4 0 0 of 4 0 0"},
		{3, "tier 0, 3 0 0 of 3 0 0"},
		{9, "tier 0, 2 0 7 of 2 0 7"},
	} {
		if b = Resize(h, b, c.n*mib); b == 0 {
			t.Fatalf("not resized to %d MiB", c.n)
		}
		lies(t, b, c.want)
		isNumbered(t, b, min(c.n, 3)*mib)
	}
	if to := Move(h, b, 1); to != b {
		t.Errorf("ta_move: %#x", to)
	}
	lies(t, b, "tier 1, 0 9 0 of 0 9 0")
	follows(t, h, b+2*mib, 0, FollowMoved)
	follows(t, h, b+2*mib, 1, FollowMoved)
	follows(t, h, b+2*mib, 2, FollowMoved) // it was in one tier
	lies(t, b, "tier 1, 0 7 2 of 0 7 2")
	drop(h, b)
	sound(t)
	if pool.freeParts == nil || pool.cache.n != 0 {
		t.Error("the part map is lost, or the block cached")
	}
	for _, f := range tierFigures() {
		if f.BytesCurrent != 0 {
			t.Errorf("%d bytes are charged", f.BytesCurrent)
		}
	}
}

// TestFollowSplit: a split block moves by parts as well.
func TestFollowSplit(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=32M", "TA_MIGRATE_BW=0")
	b := mustServe(t, h, 64*mib)
	numbered(b, 64*mib)
	follows(t, h, b+50*mib, 0, FollowFull)
	follows(t, h, b, 1, FollowMoved)
	follows(t, h, b+50*mib, 0, FollowMoved)
	follows(t, h, b+48*mib, 0, FollowFull)
	lies(t, b, "tier 1, 32 32 0 of 32 32 0")
	if TierOf(b) != 1 {
		t.Errorf("the first byte is in tier %d", TierOf(b))
	}
	b = Resize(h, b, 80*mib)
	lies(t, b, "tier 1, 32 48 0 of 32 48 0")
	isNumbered(t, b, 64*mib)
	ForkChild(8, ForkPrepare(8), h, false)
	lies(t, b, "tier 1, 32 48 0 of 32 48 0")
	other := mustAcquire(t, 16)
	if why := Free(other, b, HowAny, NoSize, 0); why != FreeOK {
		t.Errorf("free says %d", why)
	}
	sound(t)
}

// TestFollowSpans: spans of small blocks and huge blocks of one part move whole.
func TestFollowSpans(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	var small []uintptr
	for range 4000 {
		small = append(small, mustServe(t, h, 100))
	}
	huge := mustServe(t, h, 2*mib)
	p := Lookup(small[0])
	follows(t, h, p.Start, 2, FollowMoved)
	follows(t, h, huge, 2, FollowMoved)
	if TierOf(small[0]) != 2 || TierOf(huge) != 2 {
		t.Errorf("in tiers %d and %d", TierOf(small[0]), TierOf(huge))
	}
	follows(t, h, Lookup(small[3999]).Start, 2, FollowMoved) // more comes from there
	mustServe(t, h, 100)
	drop(h, huge)
	token := h.Thread.token
	if got := Follow(token, 1<<50, huge, huge, 2*mib, 0); got != FollowGone {
		t.Errorf("a freed block: %d", got)
	}
	if got := Follow(token, 1<<51, p.Start, p.Start+raw.Page, raw.Page, 0); got != FollowGone {
		t.Errorf("a part of a span: %d", got)
	}
}

// TestFollowPace: TA_MIGRATE_BW holds moves up.
func TestFollowPace(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=2M")
	b := mustServe(t, h, 20*mib)
	now := uintptr(raw.Clock(raw.ClockMono))
	for i, want := range []uintptr{FollowMoved, FollowLater} {
		at := b + uintptr(i)*2*mib
		if got := Follow(h.Thread.token, now, b, at, 2*mib, 1); got != want {
			t.Errorf("move %d: %d, not %d", i, got, want)
		}
	}
}

// TestSurvey lists every span and block in use once, whatever their number.
func TestSurvey(t *testing.T) {
	h := splitWorld(t)
	want := map[uintptr]uintptr{}
	for i := range 3000 {
		n := uintptr(16<<10 + i%7*64<<10)
		if i%300 == 0 {
			n = uintptr(1+i/300) * 700 << 10
		}
		mustServe(t, h, n)
	}
	spansDo(func(_ *segment, _ uintptr, p *Page) bool {
		if p.state == spanInUse {
			want[p.spanStart()] = p.bytes()
		}
		return true
	})
	for p := pool.huge.head; p != nil; p = p.pendNext {
		for at := uintptr(0); at < p.Size; at += 2 * mib {
			want[p.Start+at] = min(2*mib, p.Size-at)
		}
	}
	got := map[uintptr]uintptr{}
	for start, r := range regionsNow(h.Thread.token) {
		got[start] = r.Bytes
	}
	if len(got) != len(want) {
		t.Errorf("%d regions, not %d", len(got), len(want))
	}
	for start, n := range want {
		if got[start] != n {
			t.Fatalf("%d bytes at %#x, not %d", got[start], start, n)
		}
	}
}

// watches sets Watching, as with TA_ON_SOFTCAP=follow.
func watches(t *testing.T) {
	Watching = true
	t.Cleanup(func() { Watching = false })
}

// TestFollowPinned: what is pinned stays so when it was told apart and ta_move wants it where it
// is.
func TestFollowPinned(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	watches(t)
	b := Alloc(h, 8*mib, uintptr(config.HintPinFast)) &^ ZeroBit
	p := Lookup(b)
	poolLock.Take(8)
	if p.makeParts(1) == nil {
		t.Error("no part map")
	}
	poolLock.Release()
	follows(t, h, p.Start, 1, FollowGone)
	if to := Move(h, b, 0); to != b || p.placement != placementPin {
		t.Errorf("moved to %#x, placement %d", to, p.placement)
	}
	sound(t)
}

// TestFollowRefused: a part that the kernel moves neither there nor back is charged where it was.
func TestFollowRefused(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	absentNodes()
	watches(t)
	b := Alloc(h, 8*mib, uintptr(config.HintWarm)) &^ ZeroBit
	numbered(b, 8*mib)
	follows(t, h, Lookup(b).Start+2*mib, 2, FollowRefused)
	lies(t, b, "tier 1, 0 8 0 of 0 8 0")
	if failed := tierFigures()[1].Migrations.FailedPages; failed != 2*mib/raw.Page {
		t.Errorf("%d pages failed", failed)
	}
}

// TestFollowFork: a fork between the move of a part and the end of its pin does not take the charge
// for it back once more.
func TestFollowFork(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	b := mustServe(t, h, 21*mib)
	follows(t, h, b, 2, FollowMoved)
	p := Lookup(b)
	pinMigration(16, p)
	if !p.endSlower(16, 40*mib) {
		t.Error("the end did not move")
	}
	ForkUnprepared(8, h)
	lies(t, b, "tier 2, 18 0 3 of 18 0 3")
}

// TestFollowByAge: a block with a part map moves by age when nothing measures use any more.
func TestFollowByAge(t *testing.T) {
	h := splitWorld(t, "TA_FAST_SOFT=12M", "TA_ON_SOFTCAP=follow", "TA_MIGRATE_BW=0")
	a, b := mustServe(t, h, 8*mib), mustServe(t, h, 8*mib)
	numbered(a, 8*mib)
	follows(t, h, a+2*mib, 1, FollowMoved)
	follows(t, h, b, 1, FollowMoved)
	follows(t, h, b, 0, FollowMoved)
	c := mustServe(t, h, 8*mib)
	lies(t, a, "tier 0, 6 2 0 of 22 2 0")
	tiers.FollowByAge()
	migrates(h)
	lies(t, c, "tier 1, 0 8 0 of 12 12 0")
	lies(t, a, "tier 0, 4 4 0 of 12 12 0") // a part moved down
	isNumbered(t, a, 8*mib)
	drop(h, b)
	drop(h, c)
	hugeExpire(8, 0, anyPlacement, true)
	migrates(h)
	lies(t, a, "tier 0, 8 0 0 of 8 0 0") // its parts moved up
	isNumbered(t, a, 8*mib)
	hot := Alloc(h, 8*mib, uintptr(config.HintHot)) &^ ZeroBit
	for at := uintptr(0); at < 8*mib; at += 2 * mib {
		Follow(8, uintptr(h.Thread.Now), hot, hot+at, 2*mib, 0)
	}
	lies(t, hot, "tier 0, 8 0 0 of 12 4 0")
	migrates(h)
	lies(t, a, "tier 1, 4 4 0 of 12 4 0") // all of it was in one tier
	isNumbered(t, a, 8*mib)
}

// migrates has memory move by age until nothing does.
func migrates(h *Heap) {
	for range 100 {
		h.Thread.Now += 1e9
		migrate(h.Thread.token, h.Thread.Now)
	}
}

// followed moves a region as the control plane does, at random.
func (s *sim) followed() error {
	t := s.anyThread()
	token := t.enter().Thread.token
	defer t.leave()
	all := regionsNow(token)
	if len(all) == 0 {
		return nil
	}
	skip := s.pick(len(all))
	for _, p := range s.m.blocks {
		if skip--; skip < 0 {
			if r, ok := all[Lookup(p.addr).Start]; ok {
				at := Follow(token, uintptr(s.now), r.Block, r.Start, r.Bytes, uintptr(s.pick(3)))
				if at > FollowLater {
					return fmt.Errorf("Follow says %d", at)
				}
			}
			break
		}
	}
	return nil
}

// TestFollowAlone: where memory follows its use a block of a slice or more has a span of its own,
// unless that wastes much.
func TestFollowAlone(t *testing.T) {
	h := splitWorld(t)
	watches(t)
	for _, c := range []struct {
		n     uintptr
		alone bool
	}{{64 << 10, true}, {128 << 10, true}, {80 << 10, false}, {48 << 10, false}, {1 << 20, true}} {
		a, b := mustServe(t, h, c.n), mustServe(t, h, c.n)
		if got := Lookup(a) != Lookup(b) && Lookup(a).blocks == 1; got != c.alone {
			t.Errorf("blocks of %d KiB are alone: %v", c.n>>10, got)
		}
	}
	sound(t)
}

// TestPartExtent: who reads the descriptor and the part map of another process's block finds its
// parts.
func TestPartExtent(t *testing.T) {
	h := splitWorld(t, "TA_MIGRATE_BW=0")
	b := mustServe(t, h, 9*mib)
	p := Lookup(b)
	descriptor := (*[DescriptorSize]byte)(raw.Ptr(addrOf(p)))
	if PartMapOf(descriptor) != 0 {
		t.Error("a block without parts has a part map")
	}
	follows(t, h, b+2*mib, 2, FollowMoved)
	parts := (*[PartMapBytes]byte)(raw.Ptr(PartMapOf(descriptor)))
	text := ""
	for i := uintptr(0); ; i++ {
		start, n, tier := PartExtent(descriptor, parts, i)
		if n == 0 {
			break
		}
		text += fmt.Sprintf("%d+%d:%d ", (start-b)/mib, n/mib, tier)
	}
	if text != "0+2:0 2+2:2 4+2:0 6+2:0 8+1:0 " {
		t.Error(text)
	}
}
