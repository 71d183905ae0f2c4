package manager

import (
	"math"
	"math/big"
	"math/rand"
	"sort"
	"testing"
)

// array is a request in plain terms.
type array struct {
	itemsize    uint64
	shape       []uint64
	axis        int
	unchunkable bool
}

// sums are the bytes of arrays that are cut, in chunks of so many runs, and of the others.
func sums(arrays []array, runs uint64) (chunkable, unchunkable *big.Int) {
	chunkable, unchunkable = new(big.Int), new(big.Int)
	for _, a := range arrays {
		cuttable := !a.unchunkable && a.axis >= 0 && a.axis < len(a.shape) && a.shape[a.axis] != 1
		size := new(big.Int).SetUint64(a.itemsize)
		for k, n := range a.shape {
			if cuttable && k == a.axis {
				n = min(n, runs)
			}
			size.Mul(size, new(big.Int).SetUint64(n))
		}
		if cuttable {
			chunkable.Add(chunkable, size)
		} else {
			unchunkable.Add(unchunkable, size)
		}
	}
	return chunkable, unchunkable
}

// plainly is the arithmetic of the documentation, with numbers of any size.
func plainly(arrays []array, available, free, runs uint64) (length, chunks, why uint64, far bool) {
	chunkable, unchunkable := sums(arrays, math.MaxUint64)
	all := new(big.Int).Add(chunkable, unchunkable)
	have := new(big.Int).SetUint64(available)
	if all.Cmp(have) < 0 {
		return runs, 1, 0, false
	}
	far = all.Cmp(new(big.Int).Mul(big.NewInt(20), new(big.Int).SetUint64(free))) > 0
	room := new(big.Int).Sub(have, unchunkable)
	switch {
	case chunkable.Sign() == 0:
		return runs, 1, unchunked, far
	case unchunkable.Sign() != 0 && room.Sign() <= 0:
		return runs, 1, tooLarge, far
	}
	cut := new(big.Int).SetUint64(runs)
	cut.Mul(cut, room).Quo(cut, chunkable)
	if cut.Sign() == 0 {
		return runs, 1, noSpace, far
	}
	// Arrays with fewer runs are not cut in proportion: the longest chunk of which all fits.
	length = uint64(sort.Search(int(cut.Uint64()), func(n int) bool {
		cuttable, rest := sums(arrays, uint64(n)+1)
		return cuttable.Add(cuttable, rest).Cmp(have) > 0
	}))
	if length == 0 {
		return runs, 1, noSpace, far
	}
	return length, (runs + length - 1) / length, 0, far
}

// requests are the arrays as C has them.
func (r *rig) requests(arrays []array) []request {
	requests := make([]request, len(arrays)+1)
	for i, a := range arrays {
		requests[i] = request{itemsize: a.itemsize, shape: uintptr(r.address(a.shape)),
			ndim: int32(len(a.shape)), axis: int32(a.axis)}
		if a.unchunkable {
			requests[i].unchunkable = 1
		}
	}
	return requests
}

func (r *rig) chunk(arrays []array, group string, free, runs uint64) (Chunking, uint64) {
	requests := r.requests(arrays)
	out := new(Chunking)
	why := r.do(OpChunk, 0, func(c *Call) {
		c.Group, c.Free, c.Runs, c.Count = r.text(group), free, runs, uint64(len(arrays))
		c.Requests, c.Out = r.address(&requests[0]), r.address(out)
	})
	r.kept = r.kept[:0]
	return *out, why
}

// TestChunks compares a million random cases with plain arithmetic, in both modes.
func TestChunks(t *testing.T) {
	const total = 1 << 34
	r := newRig(t, total)
	r.register(1, "g", 0.25)
	random := rand.New(rand.NewSource(7))
	log := func(most int) uint64 { return uint64(random.Int63()) >> (63 - random.Intn(most+1)) }
	cases := 1_000_000
	if testing.Short() {
		cases = 50_000
	}
	seen := map[uint64]int{}
	for n := range cases {
		active := uint64(n & 1)
		r.do(OpMode, 0, func(c *Call) { c.On = active })
		runs, free := max(log(30), 1), log(36)
		arrays := make([]array, random.Intn(5))
		for i := range arrays {
			a := &arrays[i]
			a.itemsize = []uint64{1, 4, 8}[random.Intn(3)]
			a.shape = make([]uint64, random.Intn(4))
			for k := range a.shape {
				a.shape[k] = log(12)
			}
			a.axis = random.Intn(5) - 1
			if a.axis >= 0 && a.axis < len(a.shape) && random.Intn(4) != 0 {
				a.shape[a.axis] = runs
			}
			a.unchunkable = random.Intn(5) == 0
		}
		available := free
		if active != 0 {
			available = min(free, total/4)
		}
		length, chunks, want, far := plainly(arrays, available, free, runs)
		got, why := r.chunk(arrays, "g", free, runs)
		seen[why]++
		if why != want || got.ChunkLength != length || got.Chunks != chunks ||
			(got.FarTooLarge == 1) != far || got.Available != available {
			t.Fatalf("%+v, free %d, %d runs, active %d: %+v, answer %d; "+
				"expected length %d, %d chunks, answer %d, far %v",
				arrays, free, runs, active, got, why, length, chunks, want, far)
		}
	}
	for _, why := range []uint64{0, unchunked, tooLarge, noSpace} {
		if seen[why] < cases/1000 {
			t.Errorf("answer %d came %d times only", why, seen[why])
		}
	}
}

// TestChunkEdges: a request of just what is available is cut into one chunk; what cannot be
// counted is too large, and not small.
func TestChunkEdges(t *testing.T) {
	r := newRig(t, 1<<40)
	one := []array{{4, []uint64{10, 100}, 1, false}}
	for _, c := range []struct {
		free, length, chunks, why uint64
	}{{4001, 100, 1, 0}, {4000, 100, 1, 0}, {3999, 99, 2, 0}, {40, 1, 100, 0},
		{39, 100, 1, noSpace}, {0, 100, 1, noSpace}} {
		if got, why := r.chunk(one, "g", c.free, 100); got.ChunkLength != c.length ||
			got.Chunks != c.chunks || why != c.why {
			t.Errorf("free %d: %+v, answer %d", c.free, got, why)
		}
	}
	huge := []array{{8, []uint64{1 << 40, 1 << 40}, 1, false}}
	if got, why := r.chunk(huge, "g", 1<<40, 1<<40); why != noSpace && got.Chunkable < most ||
		got.FarTooLarge != 1 {
		t.Errorf("%+v, answer %d", got, why)
	}
	if _, why := r.chunk(one, "g", 10, 0); why != invalid {
		t.Errorf("no runs: %d", why)
	}
	bad := []request{{itemsize: 4, ndim: 2}}
	out := new(Chunking)
	why := r.do(OpChunk, 0, func(c *Call) {
		c.Runs, c.Count = 1, 1
		c.Requests, c.Out = r.address(&bad[0]), r.address(out)
	})
	if why != invalid {
		t.Errorf("no shape: %d", why)
	}
}

func FuzzMulDiv(f *testing.F) {
	f.Add(uint64(5), uint64(3), uint64(7))
	f.Add(uint64(1<<62), uint64(most), uint64(most))
	f.Fuzz(func(t *testing.T, a, b, c uint64) {
		c = c%most + 1
		b %= c + 1
		want := new(big.Int).Mul(new(big.Int).SetUint64(a), new(big.Int).SetUint64(b))
		want.Quo(want, new(big.Int).SetUint64(c))
		if got := mulDiv(a, b, c); got != want.Uint64() {
			t.Errorf("%d * %d / %d = %d, expected %d", a, b, c, got, want)
		}
	})
}
