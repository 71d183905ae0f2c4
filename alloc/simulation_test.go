package alloc

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
)

var (
	simSeed = flag.Uint64("sim.seed", 0, "the one seed that TestSimulation runs; 0: its own few")
	simOps  = flag.Int("sim.ops", 1500, "operations that TestSimulation runs with each seed")
)

// TestSimulation runs random operations of several threads against a model. Each
// seed is a subtest, so that -v names it even when the process dies of it.
func TestSimulation(t *testing.T) {
	first, n := uint64(1), uint64(8)
	if *simSeed != 0 {
		first, n = *simSeed, 1
	}
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			newWorld(t)
			if err := simulate(&randomly{rand.New(rand.NewPCG(seed, 0)), *simOps}); err != nil {
				t.Fatalf("%v\nreplay: go test ./alloc -run TestSimulation -sim.seed=%d -sim.ops=%d",
					err, seed, *simOps)
			}
		})
	}
}

// TestCrowdedSimulation is TestSimulation with heaps that begin in a nursery.
func TestCrowdedSimulation(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			crowdedWorld(t)
			if err := simulate(&randomly{rand.New(rand.NewPCG(seed, 0)), *simOps}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestRoomySimulation is TestSimulation with pages that are summed up.
func TestRoomySimulation(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			roomyWorld(t)
			if err := simulate(&randomly{rand.New(rand.NewPCG(seed, 0)), *simOps}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestSecureSimulation is TestSimulation with TA_SECURE=1.
func TestSecureSimulation(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			hardWorld(t)
			if err := simulate(&randomly{rand.New(rand.NewPCG(seed, 0)), *simOps}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// FuzzHeap reads the operations of a simulation from its bytes.
func FuzzHeap(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		newWorld(t)
		if len(ops) > 4096 {
			ops = ops[:4096]
		}
		source := fromBytes(ops)
		if err := simulate(&source); err != nil {
			t.Fatal(err)
		}
	})
}
