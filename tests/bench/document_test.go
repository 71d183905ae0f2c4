package bench

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// step is a line of bench_alloc and bench_roll, the programs in document.
type step struct {
	Step   int
	What   string
	Blocks int `json:"blocks_live"`
	Tiers  map[string][3]int
}

func stepsOf(t *testing.T, env []string, program string, args ...string) []step {
	t.Helper()
	path := filepath.Join(filepath.Dir(testlib.Lib(t)), "benchmark", program)
	r := testlib.Run(t, testlib.Cmd{Args: append([]string{path}, args...), Env: env})
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d: %s", r.Status, r.Stderr)
	}
	var steps []step
	for line := range strings.Lines(r.Stdout) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil || s.Step != len(steps)+1 ||
			len(s.Tiers) != 6 {
			t.Fatalf("%v in %s", err, line)
		}
		steps = append(steps, s)
	}
	return steps
}

// TestDocumentPrograms: TierAlloc's benchmarks run without arguments, as in its document, or with
// some, and tell of each step.
func TestDocumentPrograms(t *testing.T) {
	quiet := []string{"TA_FAST_HARD=", "TA_DISABLE=", "TA_USE_LIBNUMA=0"}
	steps := stepsOf(t, quiet, "bench_alloc")
	if len(steps) != 3 || steps[0].Blocks != 64 || steps[0].Tiers["alloc_calls"][0] != 22 ||
		steps[0].Tiers["bytes_current"][2] != 21<<24 ||
		steps[1].Tiers["free_calls"][2] != 11 || steps[2].Tiers["bytes_current"][0] != 0 {
		t.Errorf("bench_alloc: %+v", steps)
	}
	steps = stepsOf(t, quiet, "bench_roll", "4", "3", "1000000")
	if len(steps) != 4 || steps[1].What != "no block has moved" ||
		steps[2].Tiers["alloc_calls"][2] != 1 || steps[3].Tiers["alloc_calls"][2] != 2 ||
		steps[3].Tiers["free_calls"][0] != 2 || steps[3].Blocks != 12 {
		t.Errorf("bench_roll: %+v", steps)
	}
	if steps = stepsOf(t, append(quiet, "TA_DISABLE=1"), "bench_roll"); len(steps) != 10 ||
		steps[9].Blocks != 80 {
		t.Errorf("with TA_DISABLE=1: %+v", steps)
	}
}
