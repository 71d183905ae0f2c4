package throttle

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// passage is a request that was let through.
type passage struct{ at, bytes uint64 }

// held checks that no moment had more than the limit.
func held(t *testing.T, all []passage, rate, burst uint64) (bytes, end uint64) {
	t.Helper()
	slices.SortFunc(all, func(a, b passage) int { return cmp.Compare(a.at, b.at) })
	for _, p := range all {
		bytes += p.bytes
		if m := limit(rate, burst, p.at); float64(bytes) > m {
			t.Fatalf("%d bytes by %d ns, at most %.0f allowed", bytes, p.at, m)
		}
		end = p.at
	}
	return bytes, end
}

// TestConcurrent has goroutines ask at the same time, of a clock that they move
// together. A charge that gets lost lets too much through.
func TestConcurrent(t *testing.T) {
	const rate, burst, threads, rounds = 1e9, 1 << 20, 16, 4000
	b := newBucket(rate, burst, 0)
	var clock atomic.Uint64
	var wg sync.WaitGroup
	lists := make([][]passage, threads)
	for i := range lists {
		wg.Add(1)
		go func() {
			defer wg.Done()
			r := rand.New(rand.NewPCG(uint64(i), 3))
			for range rounds {
				n := r.Uint64N(4096) + 1
				now := clock.Add(r.Uint64N(1000)) // a quarter of what the bytes are worth
				lists[i] = append(lists[i], passage{now + b.Charge(now, uintptr(n)), n})
			}
		}()
	}
	wg.Wait()
	bytes, end := held(t, slices.Concat(lists...), rate, burst)
	// Nor does it take more: the requests came four times as fast as they may pass.
	if least := limit(rate, burst, end) * 0.999; float64(bytes) < least {
		t.Errorf("%d bytes in %d ns, at least %.0f expected", bytes, end, least)
	}
}

// TestNoChargeIsLost: with the clock standing still all is owed in the end.
func TestNoChargeIsLost(t *testing.T) {
	const threads, rounds, size = 8, 100_000, 256
	b := newBucket(256e6, 0, 0) // a byte takes 1000 units exactly
	var wg sync.WaitGroup
	for range threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range rounds {
				b.Charge(0, size)
			}
		}()
	}
	wg.Wait()
	if got, want := b.Copy(0, 0), uint64(threads*rounds*size*1000>>fraction); got != want {
		t.Errorf("%d ns are owed, not %d", got, want)
	}
}

// TestSleeping waits in earnest.
func TestSleeping(t *testing.T) {
	const rate, burst, size, threads = 64e6, 256 << 10, 16 << 10, 8
	b := newBucket(rate, burst, 0)
	start := time.Now()
	clock := func() uint64 { return uint64(time.Since(start)) }
	var wg sync.WaitGroup
	lists := make([][]passage, threads)
	for i := range lists {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range 100 {
				now := clock()
				if wait := b.Charge(now, size); wait > 0 {
					time.Sleep(time.Duration(now + wait - clock()))
				}
				lists[i] = append(lists[i], passage{clock(), size})
			}
		}()
	}
	wg.Wait()
	bytes, end := held(t, slices.Concat(lists...), rate, burst)
	t.Logf("%.1f MB/s of %.1f, burst included", float64(bytes)/float64(end)*1e3, rate/1e6)
}
