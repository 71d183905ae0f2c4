package alloc

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/stats/profile"
	"tieralloc/tiers"
)

// profiledWorld is newWorld where a sample is taken in so many bytes.
func profiledWorld(t *testing.T, rate uint64) {
	newWorld(t)
	if !profile.Start(rate, 1, 1, nil) {
		t.Fatal("no memory for a profile")
	}
	Profiling = true
	t.Cleanup(func() { Profiling = false })
}

// rationed is a thread that a test of rations follows: how many blocks of each class it has had
// since a sample, and how many were drawn then.
type rationed struct {
	thread
	t     *testing.T
	since [sizeclass.Count]int64
	drawn [sizeclass.Count]int64
}

// count notes a block of n bytes, and that it was or was not sampled when one was drawn.
func (r *rationed) count(n uintptr) {
	c := sizeclass.Of(n)
	r.since[c]++
	left := r.h.rationOf(c).left
	sampled := r.h.Thread.Sampled != 0
	r.h.Thread.Sampled = 0
	switch {
	case sampled:
		if r.drawn[c] != 0 && r.since[c] != r.drawn[c] {
			r.t.Fatalf("block %d of %d bytes was sampled, not block %d", r.since[c], n, r.drawn[c])
		}
		r.since[c], r.drawn[c] = 0, left
	case r.drawn[c] == 0: // the first
		r.drawn[c] = left + 1
	case r.since[c] >= r.drawn[c]:
		r.t.Fatalf("block %d of %d bytes was not sampled", r.since[c], n)
	}
}

// bounded compares what the fast path may pop with what is left before the next sample.
func (r *rationed) bounded(n uintptr) {
	c := sizeclass.Of(n)
	h, g := r.h, r.h.rationOf(c)
	s := h.cacheList(c)
	popped := g.From.Allocs + h.pops(c) - g.seen
	most := g.Budget
	if p := h.Cur[c]; p != &h.none {
		most = p.Trigger - p.Frees
		for b := p.Free; b != 0; b = raw.Load(b) {
			most++
		}
		most += uint64(g.slack) / uint64(p.stride())
	}
	if g.shown {
		most += cacheLimit(c) - s.Room + uint64(s.Credit)
	} else if s := h.CacheLists[c]; s.Head != 0 || s.Room != 0 || h.Cur[c] != &h.none {
		r.t.Fatalf("class %d is shown", c)
	}
	if left := g.left - int64(popped); most != 0 && most >= uint64(max(left, 0)) {
		r.t.Fatalf("the fast path may pop %d blocks of %d bytes, and block %d is the next sample",
			most, n, left)
	}
}

// TestRation: whatever a thread does, the block that is sampled is the one that was drawn, and the
// fast path is shown fewer blocks than there are before it. Nothing is counted twice.
func TestRation(t *testing.T) {
	for _, rate := range []uint64{4 << 10, 512 << 10, 64 << 20} {
		t.Run(strconv.FormatUint(rate, 10), func(t *testing.T) { testRation(t, rate) })
	}
}

func testRation(t *testing.T, rate uint64) {
	profiledWorld(t, rate)
	now := uint64(1e9)
	clock := func() uint64 { now += 1e4; return now }
	r := &rationed{t: t, thread: thread{h: mustAcquire(t, 8), now: clock}}
	other := &thread{h: mustAcquire(t, 16), now: clock}
	random := rand.New(rand.NewPCG(1, rate))
	sizes := []uintptr{1, 16, 40, 200, 1000, 3000, 3500, 20_000, 100_000}
	var live []uintptr
	take := func(i int) (b uintptr) {
		b = live[i]
		live[i] = live[len(live)-1]
		live = live[:len(live)-1]
		return b
	}
	had := func(b, n uintptr) {
		live = append(live, b&^ZeroBit)
		r.count(n)
	}
	calls, fast, grown := uint64(0), uint64(0), 0
	get := func(n uintptr) {
		calls++
		b := r.mallocFast(n)
		if b != 0 {
			fast++
		} else {
			b, _ = r.malloc(n)
		}
		had(b, n)
	}
	for step := range 400_000 {
		n := sizes[random.IntN(len(sizes))]
		switch what := random.IntN(1000); {
		case what < 2:
			r.h.Thread.collectPages(what == 0)
		case what == 2:
			c := sizeclass.Of(n)
			r.h.setRuled(c, true)
			for range random.IntN(40) {
				get(n)
			}
			r.h.setRuled(c, false)
		case what == 3: // the base heap is another one for a while
			SetHint(r.enter(), uintptr(config.HintCold))
			r.leave()
			for range min(len(live), random.IntN(1000)) {
				r.free(take(random.IntN(len(live))))
			}
			SetHint(r.enter(), tiers.NoHint)
			r.leave()
		case what < 10:
			calls++
			had(Aligned(r.enter(), 64, n, uintptr(tiers.CallerSet(0, 0, 0)), 0), n)
			r.leave()
		case what >= 500 && len(live) < 3000 || len(live) == 0:
			get(n)
		case what == 10: // in turn
			for i := range 1000 {
				get(n)
				if b := take(len(live) - 1); i%2 == 0 {
					r.freeSlow(b)
				} else {
					r.free(b)
				}
				r.bounded(n)
			}
		case what < 20:
			other.free(take(random.IntN(len(live))))
		case what < 24: // grows where it is
			get(300_000)
			n = 400_000
			b := live[len(live)-1]
			to := Resize(r.enter(), b, n)
			if to != 0 {
				calls++
				take(len(live) - 1)
				had(to, n)
				if to == b {
					grown++
				}
			}
			r.leave()
			if to == 0 { // copied
				get(n)
				r.free(take(len(live) - 2))
			}
			r.free(take(len(live) - 1))
		default:
			i := len(live) - 1
			if what%3 == 0 {
				i = random.IntN(len(live))
			}
			if why := r.free(take(i)); why != FreeOK {
				t.Fatalf("step %d: free says %d", step, why)
			}
		}
		if r.h.opened.Has(sizeclass.Of(n)) {
			r.bounded(n)
		}
	}
	if rate == 64<<20 && (fast < calls/2 || grown < 100) {
		t.Errorf("the fast path served %d of %d blocks, and %d have grown", fast, calls, grown)
	}
	report := filled(r.h.Thread.token)
	if report.BlocksLive != uint64(len(live)) || report.BlocksTotalAlloc != calls {
		t.Errorf("the report has %d blocks of %d, not %d of %d", report.BlocksLive,
			report.BlocksTotalAlloc, len(live), calls)
	}
	for len(live) != 0 {
		r.free(take(0))
	}
}

// TestSampledNursery: sampled blocks of all small classes lie in one page, however many there were.
func TestSampledNursery(t *testing.T) {
	profiledWorld(t, 4<<10)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	pages := map[*Page]bool{}
	for round := range 20 * nurseryFirst {
		for c := uintptr(0); sizeclass.Size(c) <= nurserySmall; c++ {
			var blocks []uintptr
			for r.h.Thread.Sampled == 0 {
				b, _ := r.malloc(sizeclass.Size(c))
				blocks = append(blocks, b)
			}
			p := Lookup(r.h.Thread.Sampled)
			if r.h.Thread.Sampled = 0; !p.isNursery() || !heapOf(p.Owner).sampled {
				t.Fatalf("round %d: a sampled block of %d bytes is not in a nursery", round, p.Size)
			}
			pages[p] = true
			for _, b := range blocks {
				r.free(b)
			}
		}
	}
	if len(pages) != 1 {
		t.Errorf("the sampled blocks were in %d pages", len(pages))
	}
}

// TestWalkAdopted: a thread adopted in the middle of a walk, as in a forked child, can walk.
func TestWalkAdopted(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	if h.Thread.WalkBegin() == nil || h.Thread.WalkBegin() != nil {
		t.Fatal("no walk, or two")
	}
	Leave(h)
	a := mustAcquire(t, 16)
	if a.Thread != h.Thread || a.Thread.WalkBegin() == nil {
		t.Error("the thread that was adopted cannot walk")
	}
	first := a.Thread.stack
	a.Thread.WalkEnd()
	if a.Thread.WalkBegin() != first {
		t.Error("the next walk has other memory")
	}
	a.Thread.WalkEnd()
}

// TestRationGrows: a block above 32 KiB that grows keeps its address in a profile as well. It is
// sampled when a block of its new class is due, its free is then told of, and what is left of each
// class before the next sample is as for other requests.
func TestRationGrows(t *testing.T) {
	for _, rate := range []uint64{64 << 10, 512 << 10, 4 << 20} {
		profiledWorld(t, rate)
		h := mustAcquire(t, 8)
		h.Thread.Now = 1e9
		samples, steps := 0, 0
		for range 50 {
			b := get(t, h, 2*InPlaceMin+1)
			numbered(b, InPlaceMin)
			h.Thread.Sampled = 0
			for n := uintptr(InPlaceMin * 3); n <= inPlaceMost; n += n / 2 {
				c := sizeclass.Of(n)
				left := h.rationOf(c).left
				if to := Resize(h, b, n); to != b {
					t.Fatalf("%d bytes: %#x is at %#x", n, b, to)
				}
				sampled := h.Thread.Sampled == b
				if left != 0 && sampled != (left == 1) || !sampled && left > 1 &&
					h.rationOf(c).left != left-1 || sampled && Lookup(b).Carved != 0 {
					t.Fatalf("%d bytes, sampled: %v; %d were left, and are %d now", n, sampled,
						left, h.rationOf(c).left)
				}
				if h.Thread.Sampled = 0; sampled {
					samples++
				}
				steps++
				isNumbered(t, b, InPlaceMin)
				if p := Lookup(b + n - 1); p != Lookup(b) || p.usable(b) < n {
					t.Fatalf("%d bytes: the page has %d", n, p.usable(b))
				}
			}
			if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
				t.Fatal(why)
			}
		}
		if samples == 0 || samples == steps {
			t.Errorf("rate %d: %d samples in %d steps", rate, samples, steps)
		}
	}
}

// TestRetireSampled: the page of a sampled block does not take the place of the one that stays.
func TestRetireSampled(t *testing.T) {
	profiledWorld(t, 64<<10)
	r := &thread{h: mustAcquire(t, 8), now: func() uint64 { return 1e9 }}
	turn := func(n uintptr) {
		b, _ := r.malloc(n)
		give(t, r, b, false)
	}
	for range 40 {
		turn(400 << 10)
	}
	kept := r.h.current(sizeclass.Of(400 << 10))
	if kept == pageNone || !kept.allFree() {
		t.Fatal("no page stays")
	}
	for samples := 0; samples < 10; {
		turn(20 << 10)
		if r.h.Thread.Sampled != 0 {
			r.h.Thread.Sampled = 0
			samples++
			s := r.h.sampling(20 << 10)
			if s == r.h || s.current(sizeclass.Of(20<<10)) != pageNone {
				t.Error("the page of a sampled block stays")
			}
		}
	}
	if r.h.Thread.retiredHeap != r.h {
		t.Error("the heap of sampled blocks has the page that became empty last")
	}
}

// TestSampledLarge: a page of a large class shows the fast path no blocks from a sample on until
// all its blocks are free.
func TestSampledLarge(t *testing.T) {
	profiledWorld(t, 1<<30)
	h := mustAcquire(t, 8)
	const n = 48 << 10
	blocks := []uintptr{get(t, h, n), get(t, h, n)}
	p := Lookup(blocks[0])
	if Lookup(blocks[1]) != p {
		t.Fatal("a page has one block")
	}
	shown := func(when string, want bool) {
		t.Helper()
		if p.hidden() == want || (p.Carved == uint64(p.carved)) != want {
			t.Fatalf("%s: hidden %v, carved %d, shown %d", when, p.hidden(), p.carved, p.Carved)
		}
	}
	shown("without a sample", true)
	h.Thread.sample(blocks[1], n)
	h.Thread.Sampled = 0
	shown("with one", false)
	for i, b := range blocks {
		if why := Free(h, b, HowAny, NoSize, 0); why != FreeOK {
			t.Fatal(why)
		}
		shown("after a free", i == 1)
	}
}
