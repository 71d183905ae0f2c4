package stress

import (
	"strconv"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// TestPhases: blocks of every size stay whole where the heap grows among the survivors of earlier phases.
func TestPhases(t *testing.T) {
	program := testlib.CC(t, "phases.c", "-O2")
	for name, env := range map[string][]string{
		"plain":  nil,
		"purge":  {"TA_PURGE_DELAY=1ms"},
		"demote": {"TA_NORMAL_SOFT=8M", "TA_ON_SOFTCAP=demote"},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range 2 {
				res := testlib.Run(t, testlib.Cmd{Args: []string{program, "4", "60", strconv.Itoa(seed + 1)}, Env: env, Preload: true, Timeout: 2 * time.Minute})
				if res.Status != 0 || res.Stdout != "sound\n" {
					t.Fatalf("seed %d: status %d, stdout %q, stderr %q", seed+1, res.Status, res.Stdout, res.Stderr)
				}
			}
		})
	}
}
