package cuda

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestProfiler: a profiler that is preloaded behind the library and gives the program, and us, our
// own handle for the driver's.
func TestProfiler(t *testing.T) {
	driver := filepath.Join(drivers, "libcuda.so.1")
	profiler := object(t, t.TempDir(), "profiler.so", "testdata/profiler.c", "-Wl,--no-as-needed",
		driver)
	// what is next to the program's library is not what is next to ours
	part := object(t, t.TempDir(), "ways.so", "testdata/ways.c", "-Dmain=ways", "-pthread")
	program := cc(t, "inlibrary.c", part)
	for _, c := range []string{"handle", "proc", "proc_v2", "everywhere"} {
		plain := testlib.Run(t, command(false, []string{"LD_PRELOAD=" + profiler}, program, c))
		clean(t, plain)
		for _, order := range [][2]string{{testlib.Lib(t), profiler}, {profiler, testlib.Lib(t)}} {
			preload := order[0] + " " + order[1] + " " + driver
			file := filepath.Join(t.TempDir(), "stats.json")
			r := testlib.Run(t, command(false, []string{"LD_PRELOAD=" + preload,
				"TA_STATS_FILE=" + file}, program, c))
			clean(t, r)
			if got := results(r.Stdout); got != results(plain.Stdout) {
				t.Errorf("LD_PRELOAD=%s %s:\n%s", preload, c,
					differences(results(plain.Stdout), got))
			}
			if order[1] == profiler {
				served(t, file)
			}
		}
	}
}
