package profile

import (
	"testing"

	"tieralloc/internal/testlib"
)

// TestThinned: by default a thread that allocates all the time is sampled at a lower rate, and the
// sums are as true as that allows. A rate that is set stays as it is.
func TestThinned(t *testing.T) {
	program := testlib.CC(t, "thinned.c", "-O1")
	const full = 512 << 10
	for _, rate := range []string{"auto", "512K"} {
		p, out := run(t, rate, program)
		farthest := p.comment(t, "bytes between samples at most")
		if thinned := farthest > full; thinned != (rate == "auto") || p.Period != full {
			t.Errorf("%s: a sample in %d to %d bytes", rate, p.Period, farthest)
		}
		checkTruth(t, p, out, 3, float64(farthest))
		samples := p.comment(t, "samples")
		if all := 300_000; (samples > all) != (rate == "512K") {
			t.Errorf("%s: %d samples", rate, samples)
		}
	}
}
