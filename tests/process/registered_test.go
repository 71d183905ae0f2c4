package process

import (
	"fmt"
	"testing"

	"tieralloc/internal/testlib"
)

// TestRegistered: who watches libc's munmap, mremap and madvise, as UCX and MPI libraries do, learns
// of all memory that leaves its address, also where these functions allocate.
func TestRegistered(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "registered.c", "-pthread", "-ldl")
	for _, env := range []string{"", "TA_PURGE_DELAY=0", "TA_HUGEPAGES=off", "TA_HUGEPAGES=thp",
		"TA_BACKGROUND=1", "TA_NORMAL_HARD=4G", "TA_SECURE=1"} {
		for _, args := range [][]string{{prog, "1"}, {prog, "4"}, {prog, "4", "greedy"}} {
			if env != "" && len(args) == 3 {
				continue
			}
			r := preloaded(t, []string{env}, args...)
			clean(t, r)
			var lost, announced int
			fmt.Sscanf(r.Stdout, "%d lost, %d announced", &lost, &announced)
			if lost != 0 || announced < 100 {
				t.Errorf("%s %v: %s", env, args[1:], r.Stdout)
			}
		}
	}
}
