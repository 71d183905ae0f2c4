package stress

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// cost is what a run of testdata/threads.c took: processor time in microseconds, the most resident
// memory in KiB, time in microseconds.
type cost struct{ cpu, kib, micros int64 }

func threadsCost(t *testing.T, preload bool, env []string, args ...string) (c cost) {
	t.Helper()
	res := testlib.Run(t, testlib.Cmd{Args: args, Env: env, Preload: preload, Timeout: time.Minute})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("%v: status %d, stderr: %s", args, res.Status, res.Stderr)
	}
	if _, err := fmt.Sscan(res.Stdout, &c.cpu, &c.kib, &c.micros); err != nil {
		t.Fatalf("%v in %q", err, res.Stdout)
	}
	return c
}

// manyThreads are the settings of TestManyThreads. With a profile each thread has a page more, in
// which its blocks are counted.
func manyThreads(profile string) []struct {
	name  string
	env   []string
	pages int64
} {
	demote := []string{"TA_NORMAL_SOFT=16M", "TA_NORMAL_HARD=1G", "TA_ON_SOFTCAP=demote"}
	return []struct {
		name  string
		env   []string
		pages int64
	}{
		{"default", nil, 0},
		{"caps", []string{"TA_NORMAL_HARD=1G"}, 0},
		{"demote", demote, 0},
		{"profile", []string{profile}, 1},
		{"profile and demote", append(demote, profile), 1},
	}
}

// TestManyThreads: what many threads that allocate a little cost is in proportion to what they cost
// without the library, whatever the tiers' caps are. How much processor time is taken varies, the
// more so on a busy machine, so only several times as much as beside it is too much, in the median
// of some rounds.
func TestManyThreads(t *testing.T) {
	program := testlib.CC(t, "threads.c", "-O2", "-pthread")
	const threads, rounds = 2000, 3
	settings := manyThreads("TA_PROFILE=" + filepath.Join(t.TempDir(), "heap.pb"))
	for _, mode := range []string{"together", "pass"} {
		args := []string{program, strconv.Itoa(threads), mode}
		ratios := make([][]float64, len(settings))
		for range rounds {
			plain := threadsCost(t, false, nil, args...)
			for i, c := range settings {
				got := threadsCost(t, true, append([]string{"TA_PROFILE="}, c.env...), args...)
				t.Logf("%s-%s: %+v, without the library %+v", mode, c.name, got, plain)
				if most := plain.kib*3/2 + 20<<10 + c.pages*4*threads; got.kib > most {
					t.Errorf("%s-%s: %d KiB are resident, more than %d: %d without the library",
						mode, c.name, got.kib, most, plain.kib)
				}
				ratios[i] = append(ratios[i], float64(got.cpu)/float64(plain.cpu))
			}
		}
		for i, c := range settings {
			slices.Sort(ratios[i])
			if ratios[i][rounds/2] > 4 {
				t.Errorf("%s-%s: %.2f times the processor time without the library", mode, c.name,
					ratios[i])
			}
		}
	}
}
