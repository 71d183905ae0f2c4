package cudahook

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"
)

// A sequence is what a program asks for: op > 0 allocates slot op-1 with n bytes, op < 0
// frees slot -op-1.
type seqOp struct {
	op int
	n  uint64
}

const (
	kib = uint64(1) << 10
	mib = uint64(1) << 20
	gib = uint64(1) << 30
)

func freeAll(ops []seqOp, live map[int]bool) []seqOp {
	var slots []int
	for s := range live {
		slots = append(slots, s)
	}
	sort.Ints(slots)
	for _, s := range slots {
		ops = append(ops, seqOp{op: -s - 1})
	}
	return ops
}

// cycles allocates all sizes and frees them in the order that free says.
func cycles(sizes []uint64, rounds int, free func(i, n int) int) (ops []seqOp) {
	for range rounds {
		for i, n := range sizes {
			ops = append(ops, seqOp{i + 1, n})
		}
		for i := range sizes {
			ops = append(ops, seqOp{op: -free(i, len(sizes)) - 1})
		}
	}
	return ops
}

func forward(i, _ int) int  { return i }
func backward(i, n int) int { return n - 1 - i }

// replaced keeps slots full and replaces them in random order.
func replaced(rng *rand.Rand, slots, rounds int, first, size func() uint64) (ops []seqOp) {
	live := map[int]bool{}
	for s := range slots {
		ops = append(ops, seqOp{s + 1, first()})
		live[s] = true
	}
	for range rounds {
		s := rng.IntN(slots)
		ops = append(ops, seqOp{op: -s - 1}, seqOp{s + 1, size()})
	}
	return freeAll(ops, live)
}

// rmm is the random scheme of RMM's benchmark: an allocation with 73%, else a free of a
// random block, sizes uniform up to most, at most limit bytes live.
func rmm(rng *rand.Rand, n int, most, limit uint64) (ops []seqOp) {
	var slots []int
	sizes := map[int]uint64{}
	live, total := map[int]bool{}, uint64(0)
	next := 0
	for range n {
		size := 1 + rng.Uint64N(most)
		if len(slots) == 0 || rng.Float64() < 0.73 && total+size <= limit {
			ops = append(ops, seqOp{next + 1, size})
			slots = append(slots, next)
			sizes[next], live[next] = size, true
			total += size
			next++
			continue
		}
		i := rng.IntN(len(slots))
		s := slots[i]
		slots[i] = slots[len(slots)-1]
		slots = slots[:len(slots)-1]
		total -= sizes[s]
		delete(live, s)
		ops = append(ops, seqOp{op: -s - 1})
	}
	return freeAll(ops, live)
}

// sequences are those by which the allocators are compared.
func sequences() map[string][]seqOp {
	rng := rand.New(rand.NewPCG(7, 7))
	uniform := func(lo, hi uint64) uint64 { return lo + rng.Uint64N(hi-lo+1) }
	list := func(n int, size func() uint64) (sizes []uint64) {
		for range n {
			sizes = append(sizes, size())
		}
		return sizes
	}
	out := map[string][]seqOp{}
	out["same_size"] = cycles(list(10, func() uint64 { return 4 * mib }), 2000, forward)
	var large []uint64
	for i := range uint64(20) {
		large = append(large, (4+8*i)*mib)
	}
	out["large"] = cycles(large, 1000, forward)
	out["transformer"] = cycles(list(60, func() uint64 { return uniform(4*mib, 320*mib) }), 400,
		backward)
	out["pressure"] = replaced(rng, 112, 20000, func() uint64 { return gib },
		func() uint64 { return uniform(gib/2, gib) })
	logs := func() uint64 { return uint64(math.Exp2(9 + rng.Float64()*17)) }
	out["variable"] = replaced(rng, 128, 30000, logs, logs)
	var window []seqOp
	tensors := list(200, func() uint64 { return uniform(mib/2, 32*mib) })
	for i := range 200 * 60 {
		if i >= 50 {
			window = append(window, seqOp{op: -(i-50)%200 - 1})
		}
		window = append(window, seqOp{i%200 + 1, tensors[i%200]})
	}
	for i := 200*60 - 50; i < 200*60; i++ {
		window = append(window, seqOp{op: -(i % 200) - 1})
	}
	out["grad_accum"] = window
	out["random_4M"] = rmm(rng, 40000, 4*mib, 16*gib)
	out["random_64M"] = rmm(rng, 40000, 64*mib, 16*gib)
	return out
}

const benchMemory = 140 << 30

// replayer replays a sequence on the heap, stream-ordered, with a driver that only counts.
type replayer struct {
	r       *Request
	next    uint64
	device  uint64
	address []uint64
	maps    int
}

func newReplayer(t testing.TB) *replayer {
	fresh(t, nil)
	return &replayer{r: newRequest(8), next: 1 << 40, address: make([]uint64, 1<<17)}
}

func (p *replayer) do(op Op, address, n uint64) {
	r := p.r
	r.Op, r.Address, r.Bytes, r.Context, r.Stream, r.Now = op, address, n, 0xc1, 0x77, 1e9
	for {
		action := Step(r)
		if action <= ActPass {
			return
		}
		r.Result = Success
		switch action {
		case ActContext:
			r.Value, r.Extra = 0, benchMemory
		case ActMap:
			p.maps++
			if p.device+r.OnBytes > benchMemory {
				r.Result = ErrorOutOfMemory
				continue
			}
			p.device += r.OnBytes
			r.Value = p.next
			p.next += r.OnBytes
		case ActReserve:
			r.Value = 1 << 44
		case ActMapAt:
			p.maps++
			if p.device+r.OnBytes > benchMemory {
				r.Result = ErrorOutOfMemory
				continue
			}
			p.device += r.OnBytes
		case ActUnmap, ActUnmapAt:
			p.device -= r.unmapping
		case ActInfo:
			r.Value, r.Extra = benchMemory-p.device, benchMemory
		}
	}
}

func (p *replayer) replay(ops []seqOp) error {
	for _, o := range ops {
		if o.op > 0 {
			p.do(OpStreamAlloc, 0, o.n)
			if p.r.Result != Success {
				return fmt.Errorf("no memory for %d bytes", o.n)
			}
			p.address[o.op] = p.r.Address
		} else {
			p.do(OpStreamFree, p.address[-o.op], 0)
			if p.r.Result != Success {
				return fmt.Errorf("free: %d", p.r.Result)
			}
		}
	}
	return nil
}

// TestPeakRatio: peak reserved over peak live is no worse than that of PyTorch's policy.
func TestPeakRatio(t *testing.T) {
	for name, ops := range sequences() {
		p := newReplayer(t)
		if err := p.replay(ops); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		h := &heaps[0]
		if err := h.valid(); err != nil {
			t.Fatal(err)
		}
		theirs, live := replayTorch(ops)
		ours := float64(h.count.reservedPeak) / float64(live)
		his := float64(theirs) / float64(live)
		c := &h.count
		t.Logf("%-12s ours %.4f torch %.4f  maps %d local %d global %d split %d miss %d merges %d",
			name, ours, his, p.maps,
			c.hitLocal, c.hitGlobal, c.hitSplit, c.misses, c.merges)
		if ours > his {
			t.Errorf("%s: peak reserved over peak live is %.4f, PyTorch's %.4f", name, ours, his)
		}
	}
}

// BenchmarkSequences is the host's cost of one allocation or free.
func BenchmarkSequences(b *testing.B) {
	all := sequences()
	var names []string
	for name := range all {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		b.Run(name, func(b *testing.B) {
			ops := all[name]
			p := newReplayer(b)
			if err := p.replay(ops); err != nil {
				b.Fatal(err)
			}
			b.ResetTimer()
			for n := 0; n < b.N; n += len(ops) {
				if err := p.replay(ops[:min(len(ops), b.N-n+1)]); err != nil {
					b.Fatal(err)
				}
				if len(ops) > b.N-n+1 {
					break
				}
			}
			_, live := replayTorch(ops)
			b.ReportMetric(float64(heaps[0].count.reservedPeak)/float64(live), "reserved/live")
		})
	}
}
