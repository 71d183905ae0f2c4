package profile

import (
	"maps"
	"testing"

	"tieralloc/internal/testlib"
)

// TestPeak: a profile that is written at exit has what each site had in use when the process had
// most in use, exactly: at a rate of 1 KiB every block of 64 KiB is sampled. The sites of the
// phases before and after have nothing of their own peaks in it.
func TestPeak(t *testing.T) {
	const size = 64 << 10
	p, _ := run(t, "1K", testlib.CC(t, "peak.c", "-O1", "-pthread"))
	for kind, want := range map[string]map[string]float64{
		"alloc_space": {"early_site": 300 * size, "middle_site": 400 * size,
			"late_site": 200 * size},
		"peak_space":  {"early_site": 50 * size, "middle_site": 400 * size, "late_site": 0},
		"inuse_space": {"early_site": 0, "middle_site": 0, "late_site": 0},
	} {
		got := p.sums(t, kind, "")
		maps.DeleteFunc(got, func(name string, _ float64) bool {
			_, known := want[name]
			return !known
		})
		if !maps.Equal(got, want) {
			t.Errorf("%s is %v, not %v", kind, got, want)
		}
	}
}
