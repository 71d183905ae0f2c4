package alloc

import (
	"fmt"
	"os"
	"testing"

	"tieralloc/internal/raw"
	"tieralloc/numa"
)

// refusable is a heap whose huge blocks are written, resized and freed while the kernel may refuse,
// with every equation of the package checked after each step.
type refusable struct {
	t      *testing.T
	h      *Heap
	chance uint64
	block  [6]struct{ at, size, mark uintptr }
}

func (r *refusable) below(n uint64) uint64 {
	r.chance += 0x9e3779b97f4a7c15
	return mix(r.chance) % n
}

// words calls f with the addresses that are looked at of the first n bytes of block i.
func (r *refusable) words(i int, n uintptr, f func(at, word uintptr)) {
	b := &r.block[i]
	for at := b.at; at < b.at+n; at += 512 << 10 {
		f(at, b.mark+at-b.at)
	}
}

func (r *refusable) fill(i int) {
	r.block[i].mark = uintptr(r.below(1 << 40))
	r.words(i, r.block[i].size, func(at, word uintptr) { raw.Store(at, word) })
}

func (r *refusable) sound(step string, i int, n uintptr) {
	r.words(i, n, func(at, word uintptr) {
		if raw.Load(at) != word {
			r.t.Fatalf("%s of block %d: %#x at %#x, not %#x", step, i, raw.Load(at), at, word)
		}
	})
	if err := inspect(); err != nil {
		r.t.Fatalf("%s of block %d: %v", step, i, err)
	}
}

func (r *refusable) make(i int, n uintptr) {
	r.h.Thread.Now += 1e5
	if b := Malloc(r.h, n, 0, 0) &^ ZeroBit; b != 0 {
		r.block[i].at, r.block[i].size = b, n
		r.fill(i)
	}
	r.sound("malloc", i, r.block[i].size)
}

func (r *refusable) resize(i int, n uintptr) {
	b := &r.block[i]
	r.h.Thread.Now += 1e5
	if b.size == 0 {
		return
	}
	if at := Resize(r.h, b.at, n); at != 0 {
		b.at = at
		r.sound("resize", i, min(n, b.size))
		b.size = n
		r.fill(i)
	}
	r.sound("resize", i, b.size)
}

func (r *refusable) drop(i int) {
	if b := &r.block[i]; b.size != 0 {
		drop(r.h, b.at)
		b.at, b.size = 0, 0
		r.sound("free", i, 0)
	}
}

// TestHugeSteps: blocks that are cut, coalesced and moved. tests/faults runs it with each call that
// maps memory refused in turn; it wants to know whether the steps have begun, for before that a
// heap is lacking.
func TestHugeSteps(t *testing.T) {
	h := hugeWorld(t)
	fmt.Fprintln(os.Stderr, "begin")
	r := refusable{t: t, h: h, chance: 1}
	for i, n := range []uintptr{20, 6, 15, 6} {
		r.make(i, n*mib)
	}
	r.drop(0)
	r.drop(2)
	for _, n := range []uintptr{33, 50} {
		r.make(0, n*mib)
		r.resize(0, (n+9)*mib)
		r.resize(0, 18*mib)
		r.resize(0, 31*mib)
		r.drop(0)
	}
	r.make(0, hugeCacheMax+mib) // is unmapped when it is freed
	r.drop(0)
	// A stream of its own: it makes the same calls of the kernel as others that copy many MiB into
	// cached blocks, where each page is two page faults.
	r.chance = 1
	for range 30 {
		i, n := int(r.below(uint64(len(r.block)))),
			uintptr(5+r.below(25))*mib+uintptr(r.below(2))*12345
		switch {
		case r.block[i].size == 0 && r.below(4) == 0:
			r.make(i, 300<<10+n/16)
		case r.block[i].size == 0:
			r.make(i, n)
		case r.below(3) == 0:
			r.drop(i)
		default:
			r.resize(i, n)
		}
	}
	r.end()
}

// end frees everything, and looks at what is left.
func (r *refusable) end() {
	for i := range r.block {
		r.drop(i)
	}
	Trim(r.h)
	r.sound("the end", 0, 0)
	lost := uintptr(0)
	for _, n := range pool.lost {
		lost += n
	}
	if pool.count.committed != uint64(lost+pool.dirtyBytes) || pool.cache.n != 0 ||
		pool.extents != 0 {
		r.t.Errorf("%d bytes committed, %d lost, %d blocks cached, %d parts", pool.count.committed,
			lost, pool.cache.n, pool.extents)
	}
}

// move does what ta_move does with a huge block.
func (r *refusable) move(i int, tier uintptr) {
	b := &r.block[i]
	if b.size == 0 {
		return
	}
	switch to := Move(r.h, b.at, tier); {
	case to == b.at && tierOf(Lookup(b.at).placement) != tier:
		r.t.Fatalf("block %d is in tier %d, not %d", i, Lookup(b.at).placement, tier)
	case to != b.at && to >= raw.Page:
		r.t.Fatalf("block %d moved to %#x", i, to)
	}
	r.sound("move", i, b.size)
}

// TestSplitSteps is TestHugeSteps for blocks that are larger than what is left of a tier, whose
// tiers the kernel is told of, too.
func TestSplitSteps(t *testing.T) {
	h := splitWorld(t, "TA_FAST_HARD=24M", "TA_NORMAL_HARD=40M")
	SetPlacements(&testSettings, &numa.Map{Nodes: 1, Pin: numa.Place{Nodes: 1, Mode: numa.Strict},
		Tier: [4]numa.Place{
			{Nodes: 1, Mode: numa.PreferredMany}, {Nodes: 1, Mode: numa.Interleave},
			{Nodes: 1, Mode: numa.Strict},
		}})
	fmt.Fprintln(os.Stderr, "begin")
	r := refusable{t: t, h: h, chance: 1}
	split := 0
	for range 60 {
		i, n := int(r.below(3)), uintptr(5+r.below(60))*mib+uintptr(r.below(2))*12345
		switch {
		case r.block[i].size == 0:
			r.make(i, n)
		case r.below(3) == 0:
			r.drop(i)
		case r.below(3) == 0:
			r.move(i, uintptr(r.below(3)))
		default:
			r.resize(i, n)
		}
		if b := r.block[i].at; b != 0 && Lookup(b).done != 0 {
			split++
		}
	}
	if split < 20 {
		t.Errorf("%d blocks were split", split)
	}
	r.end()
}
