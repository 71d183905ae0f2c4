package profile

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestTruth compares the estimates for 20 sites with what the program has counted. Some settings
// send requests past the fast path or to other heaps. An estimate of B bytes in blocks of n has a
// variance of at most B·(n + rate); the bound is five standard deviations, so that one run in a
// hundred thousand fails by chance.
func TestTruth(t *testing.T) {
	const rate = 64 << 10
	program := testlib.CC(t, "sites.c", "-O1")
	for seed, setting := range []string{
		"TA_RULES=", "TA_RULES=", "TA_RULES=", "TA_RULES=lib=absent.so:cold",
		"TA_RULES=size=40-3000:cold", "TA_DEFAULT_HINT=cold", "TA_NORMAL_BW=100G",
	} {
		p, out := runWith(t, []string{setting}, fmt.Sprint(rate), program, fmt.Sprint(seed), "400")
		checkTruth(t, p, out, 20, rate)
		if broken := p.comment(t, "stacks not unwound to their end"); broken != 0 {
			t.Errorf("%d stacks were not unwound to their end", broken)
		}
	}
}

// TestGrown is TestTruth for blocks that grow, most of which are sampled: a sample ends with its
// block, whoever frees that.
func TestGrown(t *testing.T) {
	const rate = 1 << 10
	program := testlib.CC(t, "grown.c", "-O1", "-pthread")
	for _, setting := range []string{"TA_RULES=", "TA_RULES=size=100000-200000:cold",
		"TA_DEFAULT_HINT=cold", "TA_NORMAL_BW=100G"} {
		p, out := runWith(t, []string{setting}, fmt.Sprint(rate), program)
		checkTruth(t, p, out, 4, rate)
	}
}

// checkTruth compares a profile with the lines of a program, each with a site, the bytes that it
// has allocated and those that are in use.
func checkTruth(t *testing.T, p taken, out string, sites int, rate float64) {
	t.Helper()
	allocs, used := p.sums(t, "alloc_space", "site"), p.sums(t, "inuse_space", "site")
	checked := 0
	for line := range strings.Lines(out) {
		var site string
		var allocated, inUse float64
		if _, err := fmt.Sscan(line, &site, &allocated, &inUse); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		within(t, site+" allocated", allocs[site], allocated, rate)
		within(t, site+" in use", used[site], inUse, rate)
		checked++
	}
	if checked != sites {
		t.Errorf("%d sites", checked)
	}
}

func within(t *testing.T, what string, got, want, rate float64) {
	t.Helper()
	if bound := 5*math.Sqrt(want*rate) + 5*rate; math.Abs(got-want) > bound {
		t.Errorf("%s: %.0f bytes, not %.0f (within %.0f)", what, got, want, bound)
	}
}
