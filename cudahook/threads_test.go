package cudahook

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
)

// unscheduled lets goroutines wait for a raw.Lock. Go's scheduler does not know of that: a
// goroutine that waits there keeps its processor, and nothing can stop the world.
func unscheduled(t *testing.T) {
	procs := runtime.GOMAXPROCS(16)
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(procs)
	})
}

// TestThreads has threads allocate and free at once, each on a stream of its own and now
// and then for all streams, on a driver that has always finished. Nobody gets what
// another one has.
func TestThreads(t *testing.T) {
	const threads, rounds = 6, 4000
	unscheduled(t)
	fresh(t, nil)
	var next atomic.Uint64
	next.Store(1 << 40)
	var mapped atomic.Int64
	var owners sync.Map // granules of the first and last byte of each block
	errs := make(chan error, threads)
	var wg sync.WaitGroup
	for i := range uint64(threads) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rng := rand.New(rand.NewPCG(i, 9))
			r := newRequest(8 * (i + 1))
			do := func(op Op, address, n uint64) error {
				*r = Request{Token: 8 * (i + 1), Op: op, Context: 0xc1, Stream: 100 + i,
					Address: address, Bytes: n}
				for action := Step(r); action > ActPass; action = Step(r) {
					r.Result = Success
					switch action {
					case ActContext:
						r.Value, r.Extra = 0, 1<<40
					case ActMap:
						r.Value = next.Add(r.OnBytes) - r.OnBytes
						mapped.Add(int64(r.OnBytes))
					case ActUnmap:
						mapped.Add(-int64(r.unmapping))
					case ActEventCreate:
						r.Value = next.Add(1)
					}
				}
				if r.Result != Success {
					return fmt.Errorf("operation %d: %d", op, r.Result)
				}
				return nil
			}
			type own struct {
				address, n uint64
				op         Op
			}
			var mine []own
			for range rounds {
				if rng.IntN(2) == 0 && len(mine) < 40 {
					b := own{0, 1 + rng.Uint64N(1<<(9+rng.IntN(15))), OpStreamFree}
					op := OpStreamAlloc
					if rng.IntN(4) == 0 {
						op, b.op = OpAlloc, OpFree
					}
					if err := do(op, 0, b.n); err != nil {
						errs <- err
						return
					}
					b.address = r.Address
					for _, at := range []uint64{b.address, b.address + rounded(b.n) - granule} {
						if o, taken := owners.LoadOrStore(at, i); taken && rounded(b.n) > granule {
							errs <- fmt.Errorf("%#x belongs to thread %d", at, o)
							return
						}
					}
					mine = append(mine, b)
				} else if len(mine) > 0 {
					k := rng.IntN(len(mine))
					b := mine[k]
					mine = append(mine[:k], mine[k+1:]...)
					owners.Delete(b.address)
					owners.Delete(b.address + rounded(b.n) - granule)
					if err := do(b.op, b.address, 0); err != nil {
						errs <- err
						return
					}
				}
			}
		}()
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		t.Error(err)
	}
	h := &heaps[0]
	if err := h.valid(); err != nil {
		t.Error(err)
	}
	if uint64(mapped.Load()) != h.count.reserved || devices[0].reserved != h.count.reserved {
		t.Errorf("%d bytes are mapped, %d reserved, %d charged", mapped.Load(), h.count.reserved,
			devices[0].reserved)
	}
}
