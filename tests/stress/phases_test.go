package stress

import (
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestPhases: blocks of every size stay whole where the heap grows among the survivors of earlier
// phases. Each size comes several times in the twelve phases of four threads, twice.
func TestPhases(t *testing.T) {
	program := testlib.CC(t, "phases.c", "-O2")
	for name, c := range map[string]struct {
		env   []string
		count func(report) int64 // of what the case is about
	}{
		"plain": {nil, func(r report) int64 { return r.Heap.BlocksTotalAlloc }},
		"purge": {[]string{"TA_PURGE_DELAY=1ms"}, func(r report) int64 { return r.Heap.Purges }},
		"demote": {[]string{"TA_NORMAL_SOFT=8M", "TA_ON_SOFTCAP=demote"},
			func(r report) int64 { return r.Tiers["normal"].Migrations.Moved }},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 2 {
				file := filepath.Join(t.TempDir(), "stats.json")
				res := testlib.Run(t, testlib.Cmd{Args: []string{program, "4", "12",
					strconv.Itoa(seed + 1)},
					Env: append(c.env, "TA_STATS_FILE="+file), Preload: true,
					Timeout: 2 * time.Minute})
				if res.Status != 0 || res.Stdout != "sound\n" {
					t.Fatalf("seed %d: status %d, stdout %q, stderr %q", seed+1, res.Status,
						res.Stdout, res.Stderr)
				}
				if n := c.count(readReport(t, file)); n < 100 {
					t.Errorf("seed %d: that happened %d times", seed+1, n)
				}
			}
		})
	}
}
