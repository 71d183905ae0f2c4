package faults

import (
	"fmt"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestHugeRefused refuses every call by which the library maps, moves and gives back memory in turn, while a
// program has huge blocks cut, gathered, resized and cached; each call alone, and some with all that follow,
// with -every each.
func TestHugeRefused(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "huge.c", "-O2", "-ldl", "-I../../interpose")
	pairs := 0
	for _, k := range kinds {
		if !strings.HasPrefix(k.name, "m") || k.never {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			pairs += refuseFrom(t, quiet, k, false, true, program, *seed, "256")
			slack := "256"
			if k.name == "munmap" {
				slack = "8192" // reports stay mapped
			}
			pairs += refuseFrom(t, quiet, k, true, *every, program, *seed, slack)
		})
	}
	t.Logf("%d calls were refused, one in each run", pairs)
}

// TestHugeLimits: the same program under limits that let hardly more be mapped than is, up to enough: of the address space,
// and of private writable memory. The kernel counts the latter as it does what it has promised under
// vm.overcommit_memory=2, and refuses the same calls with the same error, but for one process alone.
func TestHugeLimits(t *testing.T) {
	t.Parallel()
	program := testlib.CC(t, "huge.c", "-O2", "-ldl", "-I../../interpose")
	for _, kind := range []string{"as", "data"} {
		for _, env := range []string{"TA_PURGE_DELAY=", "TA_PURGE_DELAY=0ms"} {
			refused, runs := 0, 0
			for mib := 1; mib <= 160; mib += 1 + mib/16 {
				args := []string{program, *seed, "256", kind, fmt.Sprint(mib)}
				r := testlib.Run(t, testlib.Cmd{Args: args, Env: append(append([]string{}, quiet...), env), Preload: true})
				if why := wrong(outcome{stdout: r.Stdout, stderr: r.Stderr, status: r.Status}, &ending{rss: 1 << 10}); why != "" {
					t.Errorf("%s, %s %d: %s", env, kind, mib, why)
				}
				if e, err := parse(r.Stdout); err != nil || e.refusals > 0 {
					refused++
				}
				runs++
			}
			t.Logf("%s, %s: calls failed in %d of %d runs", env, kind, refused, runs)
			if refused == 0 || refused == runs {
				t.Errorf("%s, %s: calls failed in %d of %d runs", env, kind, refused, runs)
			}
		}
	}
}
