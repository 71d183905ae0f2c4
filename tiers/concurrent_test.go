package tiers

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

// TestConcurrent has 16 threads reserve and release at caps that are always near. The
// peak is taken from each charge itself, so it would show the shortest excess; a reader
// samples the sums as well.
func TestConcurrent(t *testing.T) {
	const threads = 16
	caps := [3]uint64{100_000, 50_000, 70_000}
	for _, mode := range []string{"ON_SOFTCAP=reroute", "ON_SOFTCAP=warn",
		"ON_SOFTCAP=demote ON_HARDCAP=fail",
		"ON_SOFTCAP=reroute ON_HARDCAP=fail"} {
		t.Run(mode, func(t *testing.T) {
			setup(t, "prog", append(words(mode), fmt.Sprintf("FAST_HARD=%d", caps[0]),
				fmt.Sprintf("NORMAL_HARD=%d", caps[1]),
				fmt.Sprintf("SLOW_HARD=%d", caps[2]), "FAST_SOFT=60000", "NORMAL_SOFT=40000",
				"SLOW_SOFT=50000")...)
			done, sampled := make(chan bool), make(chan bool)
			go sample(t, caps, done, sampled)
			var requests, taken, refused, admitRefused atomic.Uint64
			var live [3]atomic.Uint64
			charge := func(r *rand.Rand) (holding, bool) {
				n := 1 + r.Uint64N(12_000)
				if r.IntN(8) == 0 {
					tier := r.Uint64N(3)
					if Admit(uintptr(tier), uintptr(n)) {
						return holding{tier, n}, true
					}
					admitRefused.Add(1)
					return holding{}, false
				}
				requests.Add(1)
				answer, _ := reserve(uintptr(r.IntN(5)), uintptr(n))
				if answer == Refused {
					refused.Add(1)
					return holding{}, false
				}
				taken.Add(1)
				return holding{uint64(answer), n}, true
			}
			contend(threads, charge, func(_ *rand.Rand, h holding) {
				Release(uintptr(h.tier), uintptr(h.n))
			}, func(h holding) { live[h.tier].Add(h.n) })
			close(done)
			<-sampled
			var sum, violations uint64
			for i, f := range filled() {
				if f.BytesCurrent != live[i].Load() {
					t.Errorf("tier %d holds %d bytes and says %d", i, live[i].Load(),
						f.BytesCurrent)
				}
				if f.BytesPeak > caps[i] || f.BytesPeak < caps[i]/2 {
					t.Errorf("tier %d: peak %d, hard cap %d", i, f.BytesPeak, caps[i])
				}
				sum += f.Refused
				violations += f.CapacityViolations
			}
			if requests.Load() != taken.Load()+refused.Load() || sum != refused.Load() ||
				violations < refused.Load()+admitRefused.Load() || refused.Load() == 0 ||
				taken.Load() == 0 {
				t.Errorf("%d requests, %d taken, %d refused of which %d counted; %d violations",
					requests.Load(), taken.Load(),
					refused.Load(), sum, violations)
			}
		})
	}
}

// contend has threads charge and release at random, 20,000 times each and at most 9 charges at
// once. What is left of them at the end goes to leave.
func contend(threads int, charge func(*rand.Rand) (holding, bool),
	release func(*rand.Rand, holding), leave func(holding)) {
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 9))
			var held []holding
			for range 20_000 {
				if n := len(held); n > 8 || n > 0 && r.IntN(2) == 0 {
					release(r, held[n-1])
					held = held[:n-1]
				} else if h, ok := charge(r); ok {
					held = append(held, h)
				}
			}
			for _, h := range held {
				leave(h)
			}
		})
	}
	wg.Wait()
}

// sample looks at the sums until done, and says when it has looked for the last time.
func sample(t *testing.T, caps [3]uint64, done, sampled chan bool) {
	defer close(sampled)
	for {
		for i := range caps {
			if c := held(uintptr(i)); c > caps[i] {
				t.Errorf("tier %d holds %d bytes, hard cap %d", i, c, caps[i])
			}
		}
		select {
		case <-done:
			return
		default:
		}
	}
}
