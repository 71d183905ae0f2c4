package cudahook

import (
	"fmt"
	"testing"

	"tieralloc/internal/config"
)

// manyBytes is a cap that no model comes to.
const manyBytes = 1 << 40

var variants = map[string]func(*config.CUDA){
	"default": func(*config.CUDA) {},
	"event":   func(c *config.CUDA) { c.ReuseEvent = true },
	"all":     func(c *config.CUDA) { c.SuballocAll = true; c.CacheLimit = 32 << 20 },
	"plain":   plainSegments,
	"spill":   func(c *config.CUDA) { c.Hard, c.Soft, c.Spill = 90<<20, 60<<20, true },
	"capped":  func(c *config.CUDA) { c.Hard, c.ReuseEvent, c.Zero = 90<<20, true, true },
	"managed": func(c *config.CUDA) {
		c.Managed, c.Hard, c.Soft, c.Spill, c.SpillHard = true, 90<<20, 60<<20, true, manyBytes
	},
	"managed, no cap": func(c *config.CUDA) {
		c.Managed, c.ReuseEvent, c.Zero,
			c.SpillHard = true, true, true, manyBytes
	},
	"managed, full host": func(c *config.CUDA) { c.Managed, c.SpillHard = true, 24<<20 },
	"nothing kept": func(c *config.CUDA) {
		c.CacheLimit, c.SuballocAll, c.ReuseEvent = 0, true, true
	},
}

// TestModel runs random programs of several threads, streams, contexts and devices. The name of a
// subtest, given to -run, replays it.
func TestModel(t *testing.T) {
	calls, taken, given, ended, hosted, ran := map[Action]int{}, 0, 0, 0, 0, 0
	for name, set := range variants {
		for seed := range uint64(2) {
			t.Run(fmt.Sprintf("%s/seed=%d", name, seed), func(t *testing.T) {
				w := newWorld(t, seed, set)
				w.f.noContext = seed%2 == 1
				if seed%2 == 0 {
					r := newRequest(800)
					for _, pair := range [][2]uint64{{0xc3, 0xc1}, {0xc2, 0xc1}} {
						*r = Request{Token: 800, Op: OpPeer, Context: pair[0], Address: pair[1],
							Device: w.f.device[pair[0]], Count: 1}
						w.f.run(r)
						w.f.peers[pair] = true
					}
				}
				runWorld(t, w, 9000)
				ran++
				taken, given, ended, hosted = taken+w.taken, given+w.given, ended+w.ended,
					hosted+w.hosted
				for action, n := range w.f.calls {
					calls[action] += n
				}
			})
		}
	}
	if ran < 2*len(variants) {
		return // what follows is of all programs together
	}
	if hosted < 300 {
		t.Errorf("%d blocks on the host", hosted)
	}
	if taken < 1000 || given < 1000 || ended < 100 {
		t.Errorf("%d blocks taken and %d given without a request, %d contexts ended", taken, given,
			ended)
	}
	for _, action := range []Action{ActDriver, ActContext, ActMap, ActMapManaged, ActUnmap, ActZero,
		ActSynchronize, ActEventCreate,
		ActEventRecord, ActEventRecordContext, ActEventQuery, ActInfo,
		ActReserve, ActUnreserve, ActMapAt, ActUnmapAt} {
		if calls[action] == 0 {
			t.Errorf("action %d was never asked for", action)
		}
	}
}

// TestModelFailures is the same while the driver fails now and then.
func TestModelFailures(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			w := newWorld(t, seed, func(c *config.CUDA) {
				c.ReuseEvent = seed%2 == 0
				c.Hard = 120 << 20
				c.Spill = seed%3 == 0
				c.Managed = seed > 3
			})
			w.failing = true
			w.f.failRate = 0.02
			runWorld(t, w, 4000)
		})
	}
}
