package manager

import (
	"math/rand"
	"testing"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// ofHeap is chunk with what the device heap says is free.
func (r *rig) ofHeap(arrays []array, free, runs uint64) (Chunking, uint64) {
	requests := r.requests(arrays)
	out := new(Chunking)
	why := r.do(OpChunk, 0, func(c *Call) {
		c.Group, c.Free, c.FreeOfHeap, c.Runs, c.Count = r.text("g"), free, 1, runs,
			uint64(len(arrays))
		c.Requests, c.Out = r.address(&requests[0]), r.address(out)
	})
	r.kept = r.kept[:0]
	return *out, why
}

// TestShorten: a chunk has room as the device heap rounds, and in proportion to its runs only
// where its arrays have as many.
func TestShorten(t *testing.T) {
	r := newRig(t, 1<<40)
	r.register(1, "g", -1)
	many := func(n int, a array) (all []array) {
		for range n {
			all = append(all, a)
		}
		return all
	}
	row := func(bytes, runs uint64) array { return array{bytes / runs, []uint64{runs}, 0, false} }
	short := array{40 * mib, []uint64{2}, 0, false}
	for _, c := range []struct {
		name                       string
		arrays                     []array
		free, runs                 uint64
		length, chunks, why, plain uint64 // plain: the length by a figure that is not the heap's
	}{
		{"whole units", many(4, row(16*mib, 1024)), 64*mib + 1, 1024, 1024, 1, 0, 1024},
		{"17 MiB take 18", many(4, row(17*mib, 1024)), 68*mib + 1, 1024, 963, 2, 0, 1024},
		// their segment may be there already
		{"small ones", many(3, row(500*kib, 1000)), 1900 * kib, 1000, 1000, 1, 0, 1000},
		{"small ones, short", many(6, row(900*kib, 1024)), 6 * mib, 1024, 776, 2, 0, 1024},
		{"fewer runs", []array{row(100*mib, 1000), short}, 100*mib + 1, 1000, 200, 5, 0, 200},
		{"not a run", []array{row(10*mib, 10), short}, 39 * mib, 10, 10, 1, noSpace, 10},
	} {
		got, why := r.ofHeap(c.arrays, c.free, c.runs)
		if why != c.why || got.ChunkLength != c.length || got.Chunks != c.chunks {
			t.Errorf("%s: %+v, answer %d; expected length %d, %d chunks, answer %d", c.name, got,
				why, c.length, c.chunks, c.why)
		}
		if got, _ = r.chunk(c.arrays, "g", c.free, c.runs); got.ChunkLength != c.plain {
			t.Errorf("%s: length %d by a figure, expected %d", c.name, got.ChunkLength, c.plain)
		}
	}
}

// TestShortenRandom: whatever is wanted, a chunk fits by its bytes, and as the heap rounds where
// one run does.
func TestShortenRandom(t *testing.T) {
	r := newRig(t, 1<<50)
	r.register(1, "g", -1)
	random := rand.New(rand.NewSource(3))
	units := func(arrays []array, runs uint64) (plain, heap uint64) {
		var small uint64
		for _, a := range arrays {
			bytes := a.itemsize * min(a.shape[0], runs)
			plain += bytes
			if bytes < mib {
				small += (bytes + 511) &^ 511
			} else {
				heap += (bytes + 2*mib - 1) &^ (2*mib - 1)
			}
		}
		return plain, heap + (small+2*mib-1)&^(2*mib-1)
	}
	for range 20000 {
		runs := uint64(1) << random.Intn(12)
		arrays := make([]array, 1+random.Intn(20))
		for i := range arrays {
			arrays[i] = array{1 + uint64(random.Intn(1<<(6+random.Intn(14)))),
				[]uint64{1 + runs>>random.Intn(3)}, 0, false}
		}
		free := uint64(2+random.Intn(200)) * mib
		got, why := r.ofHeap(arrays, free, runs)
		plain, heap := units(arrays, got.ChunkLength)
		if why != 0 {
			if plain, _ = units(arrays, 1); plain < free {
				t.Fatalf("%v, %d free: %d, and a run fits", arrays, free, why)
			}
			continue
		}
		if one, _ := units(arrays, 1); plain > free && one <= free {
			t.Fatalf("%v, %d free: %+v takes %d", arrays, free, got, plain)
		}
		if _, one := units(arrays, 1); heap > free && one+2*mib*uint64(len(arrays)) <= free {
			t.Fatalf("%v, %d free: %+v takes %d of the heap", arrays, free, got, heap)
		}
	}
}

// TestHeld: whoever is held is not asked, and asks nobody for a block.
func TestHeld(t *testing.T) {
	r, other := newRig(t, 1000), newRig(t, 1000)
	for id := uint64(1); id <= 3; id++ {
		r.register(id, "g", -1)
		r.add(id, id<<12, 10, 0)
	}
	other.register(4, "g", -1)
	other.add(4, 9<<12, 10, 0)
	hold := func(id, on uint64) uint64 { return r.do(OpHold, id, func(c *Call) { c.On = on }) }
	asked := func(bytes uint64) (ids []uint64) {
		c := r.call(OpCandidate, 3)
		for c.Everywhere, c.Bytes = 1, bytes; Serve(c) == 0; {
			ids = append(ids, c.Found)
			if (c.FoundManager == other.m) != (c.Found == 4) {
				t.Errorf("%d is of another manager", c.Found)
			}
		}
		return ids
	}
	same := func(got []uint64, want ...uint64) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%v, expected %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("%v, expected %v", got, want)
			}
		}
	}
	same(asked(1), 1, 2, 4)
	if why := hold(1, 0); why != invalid {
		t.Errorf("let go though not held: %d", why)
	}
	if why := hold(1, 2); why != invalid {
		t.Errorf("held twice at once: %d", why)
	}
	hold(1, 1)
	hold(1, 1)
	same(asked(1), 2, 4)
	hold(1, 0)
	same(asked(1), 2, 4)
	hold(1, 0)
	same(asked(1), 1, 2, 4)
	hold(3, 1)
	same(asked(1))
	same(asked(0), 1, 2, 4)
	hold(3, 0)
	// Blocks that are not on the device are of no use to it.
	r.do(OpCharge, 1, func(c *Call) { c.Bytes, c.Kind = 10, KindPinned })
	r.do(OpAdd, 1, func(c *Call) { c.Bytes, c.Kind, c.Address = 10, KindPinned, 11<<12 })
	c := r.call(OpRemove, 0)
	c.Address = 1 << 12
	Serve(c)
	same(asked(1), 2, 4)
}
