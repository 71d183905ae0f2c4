package stress

import (
	"fmt"
	"path/filepath"
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

// TestManyThreads: what many threads that allocate a little cost is in proportion to what they cost
// without the library, whatever the tiers' caps are. How much processor time is taken varies, so
// only several times as much is too much. With a profile each thread has a page more, in which its
// blocks are counted.
func TestManyThreads(t *testing.T) {
	program := testlib.CC(t, "threads.c", "-O2", "-pthread")
	const threads, page = 2000, 4
	profile := "TA_PROFILE=" + filepath.Join(t.TempDir(), "heap.pb")
	for _, mode := range []string{"together", "pass"} {
		plain := threadsCost(t, false, nil, program, strconv.Itoa(threads), mode)
		for _, c := range []struct {
			name string
			env  []string
			more int64 // KiB
		}{
			{"default", nil, 0},
			{"caps", []string{"TA_NORMAL_HARD=1G"}, 0},
			{"demote", []string{"TA_NORMAL_SOFT=16M", "TA_NORMAL_HARD=1G",
				"TA_ON_SOFTCAP=demote"}, 0},
			{"profile", []string{profile}, threads * page},
			{"profile and demote", []string{profile, "TA_NORMAL_SOFT=16M", "TA_NORMAL_HARD=1G",
				"TA_ON_SOFTCAP=demote"}, threads * page},
		} {
			t.Run(mode+"-"+c.name, func(t *testing.T) {
				got := threadsCost(t, true, append([]string{"TA_PROFILE="}, c.env...), program,
					strconv.Itoa(threads), mode)
				t.Logf("%+v, without the library %+v", got, plain)
				if most := plain.kib*3/2 + 20<<10 + c.more; got.kib > most {
					t.Errorf("%d KiB are resident, more than %d: %d without the library", got.kib,
						most, plain.kib)
				}
				if got.cpu > 4*plain.cpu {
					t.Errorf("%d µs of processor time, %d without the library", got.cpu, plain.cpu)
				}
			})
		}
	}
}
