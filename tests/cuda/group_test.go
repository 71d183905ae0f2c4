package cuda

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestGroup: two processes on a device have one cap, and what a killed one had goes to the other.
func TestGroup(t *testing.T) {
	want := `first: free 64 of 64 MiB
second: free 34 of 64 MiB
second: 50 MiB: 2
second: 50 MiB: 0
first: 10 MiB: 0
first: free 24 of 64 MiB
second: free 24 of 64 MiB
second: 30 MiB: 2
second: 14 MiB: 0
second: free 10 of 64 MiB
second: 11 MiB: 2
ended by 9
first: free 24 of 64 MiB
first: 24 MiB: 0
first: 2 MiB: 2
first: 30 MiB: 0
`
	program := cc(t, "group.c")
	for _, setting := range []string{"TA_CUDA_HARD=64M", "TA_CUDA_PROPORTION=0.0625"} {
		r := testlib.Run(t, command(true, []string{"TA_GROUP=" + t.TempDir() + "/group", setting},
			program))
		clean(t, r)
		if r.Stdout != want {
			t.Errorf("%s: %s", setting, differences(want, r.Stdout))
		}
	}
}
