package stress

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// growth runs testdata/growth.c and returns its figures, in KiB.
func growth(t *testing.T, env []string, program string, args ...string) []int {
	t.Helper()
	res := testlib.Run(t, testlib.Cmd{Args: append([]string{program}, args...), Env: env,
		Preload: true, Timeout: 2 * time.Minute})
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

// TestGrowth fills and frees 100 MB again and again. How much of that is resident after a round
// depends on when threads ran and when memory was purged. Two figures do not. What malloc_trim leaves
// is lost, and must not grow from the first round to the last. Where nothing is purged, and so all
// that is not used again adds up, no round may leave much more than its blocks took.
func TestGrowth(t *testing.T) {
	program := testlib.CC(t, "growth.c")
	for _, c := range []struct {
		name, mode string
		rounds     int
		kept       bool // nothing is purged; other rounds would then be twice as large, in parts
	}{{"rounds", "rounds", 5, false}, {"threads", "threads", 10, false},
		{"threads-kept", "threads", 20, true}} {
		t.Run(c.name, func(t *testing.T) {
			var env []string
			if c.kept {
				env = []string{"TA_PURGE_DELAY=3600s"}
			}
			kib := growth(t, env, program, c.mode, strconv.Itoa(c.rounds))
			t.Logf("in blocks, resident after them, after malloc_trim, in KiB: %v", kib)
			if len(kib) != 3*c.rounds {
				t.Fatal("not three figures for each round")
			}
			if first, last := kib[2], kib[len(kib)-1]; last > first+first/5+4<<10 {
				t.Errorf("%d KiB are lost after the first round, %d KiB after the last", first, last)
			}
			for i := 0; c.kept && i < len(kib); i += 3 {
				if most := kib[i] + kib[i]/5 + 4<<10; kib[i+1] > most {
					t.Errorf("round %d of %d KiB leaves %d KiB", i/3, kib[i], kib[i+1])
				}
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
			kib := growth(t, nil, program, args...)
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
