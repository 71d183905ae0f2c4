package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestPressureResident: what a program frees stays resident while its control group has room, and
// returns to the kernel at once while hardly any of the limit is left.
func TestPressureResident(t *testing.T) {
	const mib, left, freed = 512, 6, 84 * 100000 >> 10
	dir := memoryGroup(t, mib)
	usage := filepath.Join(dir, "memory.current")
	if _, err := os.Stat(usage); err != nil {
		usage = filepath.Join(dir, "memory.usage_in_bytes")
	}
	prog := testlib.CC(t, "pressure.c")
	run := func(args ...string) (kept int, r report) {
		t.Helper()
		file := filepath.Join(t.TempDir(), "stats")
		result := testlib.Run(t, testlib.Cmd{
			Args: inGroup(dir, testlib.Lib(t), append([]string{prog}, args...)...),
			Env: append(append([]string{}, quiet...), "TA_PURGE_DELAY=3600s",
				"TA_STATS_FILE="+file)})
		clean(t, result)
		kept, err := strconv.Atoi(strings.TrimSpace(result.Stdout))
		if err != nil {
			t.Fatal(err)
		}
		return kept, readReport(t, file)
	}

	kept, r := run()
	if kept < freed*3/4 || r.Heap.Pressures != 0 || r.Heap.BytesPressure != 0 {
		psi, _ := os.ReadFile("/proc/pressure/memory")
		t.Errorf("with room %d of %d KiB stay, short %d times, %d bytes returned for it\n%s", kept,
			freed, r.Heap.Pressures, r.Heap.BytesPressure, psi)
	}
	kept, r = run(usage, fmt.Sprint((mib-left)<<20))
	if kept >= 3<<10 || r.Heap.Pressures == 0 || r.Heap.BytesPressure < (freed-3<<10)<<10 {
		t.Errorf("without room %d of %d KiB stay, short %d times, %d bytes returned for it", kept,
			freed, r.Heap.Pressures, r.Heap.BytesPressure)
	}
}
