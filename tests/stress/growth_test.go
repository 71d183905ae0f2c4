package stress

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// growth runs testdata/growth.c and returns its figures, in KiB.
func growth(t *testing.T, program string, args ...string) []int {
	t.Helper()
	res := testlib.Run(t, testlib.Cmd{Args: append([]string{program}, args...), Preload: true,
		Timeout: 2 * time.Minute})
	if res.Status != 0 {
		t.Fatalf("status %d, stderr: %s", res.Status, res.Stderr)
	}
	var kib []int
	for _, line := range strings.Fields(res.Stdout) {
		n, err := strconv.Atoi(line)
		if err != nil {
			t.Fatal(err)
		}
		kib = append(kib, n)
	}
	return kib
}

// TestGrowth fills and frees 200 MB again and again. What is resident after a
// round may vary with what the last blocks were, so the most of a later period
// is compared with the most of an earlier one.
func TestGrowth(t *testing.T) {
	program := testlib.CC(t, "growth.c")
	for _, c := range []struct {
		mode   string
		warm   int // rounds that do not count
		period int
	}{
		{"rounds", 1, 4}, // a round has all sizes in it, and what it leaves varies by a quarter
		{"threads", 2, 8},
	} {
		t.Run(c.mode, func(t *testing.T) {
			kib := growth(t, program, c.mode, strconv.Itoa(c.warm+2*c.period))
			early := slices.Max(kib[c.warm : c.warm+c.period])
			late := slices.Max(kib[c.warm+c.period:])
			t.Logf("resident after each round, in KiB: %v", kib)
			if late > early+early/5+8<<10 {
				t.Errorf("resident memory grows: at most %d KiB early, %d KiB late", early, late)
			}
		})
	}
}

// TestDrop frees 400 MB of small blocks. Within two seconds and one further call
// nine tenths must be the system's again.
func TestDrop(t *testing.T) {
	program := testlib.CC(t, "growth.c")
	for _, args := range [][]string{{"drop", "came"}, {"drop", "back"}, {"drop", "random"},
		{"remote"}} {
		t.Run(strings.Join(args, "-"), func(t *testing.T) {
			kib := growth(t, program, args...)
			t.Logf("resident full, just freed, in the end, in KiB: %v", kib)
			if kib[0] < 390000 {
				t.Fatalf("%d KiB resident when full: the blocks were not touched", kib[0])
			}
			if kib[2] > kib[0]/10 {
				t.Errorf("%d KiB of %d are still resident", kib[2], kib[0])
			}
		})
	}
}
