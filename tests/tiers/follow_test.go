package tiers

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestNothingFollows: where nothing can follow, one line says why, whether or not there is a
// report, and the program is served as any other.
func TestNothingFollows(t *testing.T) {
	const line = "tieralloc: TA_ON_SOFTCAP=follow: nothing will move: the tiers are simulated, " +
		"there is one kind of memory only\n"
	for _, more := range []string{"TA_FAST_SOFT=1G", "TA_STATS_FILE=" + t.TempDir() + "/s.json"} {
		r := testlib.Run(t, testlib.Cmd{Args: []string{"/bin/echo", "served"},
			Env: []string{"LD_PRELOAD=" + testlib.Lib(t), "TA_ON_SOFTCAP=follow",
				"TA_USE_LIBNUMA=0", more}})
		if r.Status != 0 || r.Stdout != "served\n" || r.Stderr != line {
			t.Errorf("%s: %+v", more, r)
		}
	}
}
