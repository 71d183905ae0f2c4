package process

import (
	"maps"
	"path/filepath"
	"strconv"
	"testing"

	"tieralloc/internal/testlib"
)

// withCxx keeps libstdc++ in the program, where operator new looks for the new
// handler: the search for a library that is not there allocates.
var withCxx = []string{"-Wl,--no-as-needed", "-lstdc++", "-ldl"}

// delta is what one turn of a case adds to the counters.
type delta struct {
	calls                  map[string]int64
	failed                 int64
	allocs, frees          int64 // blocks; allocs -1: as many as frees
	bytesAlloc, bytesFreed int64 // class-rounded; -1: not looked at
	cross, hugeLive        int64
	classLive              map[int64]int64
}

// twoRuns runs a case n and 2n times and returns both reports.
func twoRuns(t *testing.T, prog, name string, n int, child bool) (a, b report) {
	t.Helper()
	run := func(n int) report {
		dir := t.TempDir()
		args := []string{prog, name, strconv.Itoa(n)}
		if child {
			args = append(args, "child")
		}
		clean(t, preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "stats")}, args...))
		files := statsFiles(t, dir)
		if !child && len(files) != 1 || child && len(files) != 2 {
			t.Fatalf("files %q", files)
		}
		return readReport(t, filepath.Join(dir, files[len(files)-1]))
	}
	return run(n), run(2 * n)
}

// judge compares what the second run counted more with n turns of d.
func judge(t *testing.T, a, b report, n int64, d delta) {
	t.Helper()
	is := func(what string, got, want int64) {
		t.Helper()
		if got != want*n {
			t.Errorf("%s: %d in %d turns, want %d", what, got, n, want*n)
		}
	}
	for name := range maps.Keys(b.Calls) {
		is(name, b.Calls[name]-a.Calls[name], d.calls[name])
	}
	x, y := a.Heap, b.Heap
	is("calls_failed", b.CallsFailed-a.CallsFailed, d.failed)
	is("blocks_total_alloc", y.TotalAlloc-x.TotalAlloc, d.allocs)
	is("blocks_total_freed", y.TotalFreed-x.TotalFreed, d.frees)
	is("blocks_live", y.Blocks-x.Blocks, d.allocs-d.frees)
	is("cross_thread_frees", y.Cross-x.Cross, d.cross)
	is("huge_blocks_live", y.HugeBlocks-x.HugeBlocks, d.hugeLive)
	if d.bytesAlloc >= 0 {
		is("bytes_total_alloc", y.BytesAlloc-x.BytesAlloc, d.bytesAlloc)
		is("bytes_total_freed", y.BytesFreed-x.BytesFreed, d.bytesFreed)
		is("bytes_live", y.Live-x.Live, d.bytesAlloc-d.bytesFreed)
	}
	live := map[int64]int64{}
	for _, c := range y.Classes {
		live[c.Size] += c.Live
	}
	for _, c := range x.Classes {
		live[c.Size] -= c.Live
	}
	for size, l := range live {
		is("blocks live of "+strconv.FormatInt(size, 10)+" bytes", l, d.classLive[size])
	}
}

type (
	counts  = map[string]int64
	classes = map[int64]int64
)

var callCases = []struct {
	name string
	n    int
	want delta
}{
	{"basic", 1000, delta{calls: counts{"malloc": 6, "free": 4}, failed: 2, allocs: 4, frees: 3,
		bytesAlloc: 48 + 5120 + 16 + 112, bytesFreed: 48 + 5120 + 16, classLive: classes{112: 1}}},
	{"zeroed", 1000, delta{calls: counts{"calloc": 5, "free": 2}, failed: 2, allocs: 3, frees: 2,
		bytesAlloc: 160 + 704 + 16, bytesFreed: 160 + 16, classLive: classes{704: 1}}},
	{"resized", 1000, delta{calls: counts{"realloc": 8, "reallocarray": 2}, failed: 3, allocs: 5,
		frees:      4,
		bytesAlloc: 208 + 5120 + 30720 + 64 + 96, bytesFreed: 208 + 5120 + 30720 + 64,
		classLive: classes{96: 1}}},
	// How often such a block moves is the heap's affair; that each move is two-sided is not.
	{"resized huge", 60, delta{calls: counts{"malloc": 1, "realloc": 6, "free": 1}, bytesAlloc: -1,
		allocs: -1}},
	{"aligned", 500, delta{calls: counts{"memalign": 3, "aligned_alloc": 2, "posix_memalign": 3,
		"valloc": 2, "pvalloc": 2, "free": 7},
		failed: 5, allocs: 7, frees: 7, bytesAlloc: alignedBytes, bytesFreed: alignedBytes}},
	{"aligned invalid", 500, delta{calls: counts{"posix_memalign": 1, "memalign": 1}, failed: 2}},
	{"others", 500, delta{calls: counts{"malloc": 2, "malloc_usable_size": 2, "free_sized": 2,
		"free_aligned_sized": 1, "malloc_trim": 1},
		allocs: 2, frees: 2, bytesAlloc: 128, bytesFreed: 128}},
	{"cxx", 500, delta{calls: counts{"operator new": 4, "operator delete": 2}, failed: 1, allocs: 3,
		frees:      2,
		bytesAlloc: 80 + 128 + 20480, bytesFreed: 80 + 128, classLive: classes{20480: 1}}},
	{"null deletes", 500, delta{calls: counts{"operator delete": 1}}},
	{"own", 100, delta{calls: counts{"ta_alloc": 3, "ta_free": 1}, failed: 1, allocs: 2, frees: 1,
		hugeLive:   1,
		bytesAlloc: 32 + 5<<20, bytesFreed: 32}},
	{"own odd", 500, delta{calls: counts{"ta_alloc": 1, "ta_free": 1}, failed: 1}},
}

// alignedBytes is what a turn of the case "aligned" allocates, in its own order.
const alignedBytes = 128 + 256 + 4096 + 8192 + 65536 + 64 + 8192

// TestCounts: the report says exactly how often each function was called, and how
// many blocks and bytes of each class came of it.
func TestCounts(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "calls.c", withCxx...)
	for _, c := range callCases {
		for _, child := range []bool{false, true} {
			name := c.name
			if child {
				name += " in a child"
			}
			t.Run(name, func(t *testing.T) {
				a, b := twoRuns(t, prog, c.name, c.n, child)
				d := c.want
				if d.allocs < 0 {
					d.allocs = (b.Heap.TotalAlloc - a.Heap.TotalAlloc) / int64(c.n)
					d.frees = d.allocs
				}
				if child { // blocks from before the fork
					d.classLive = maps.Clone(d.classLive)
					judgeChild(t, a, b, int64(c.n), d)
					return
				}
				judge(t, a, b, int64(c.n), d)
			})
		}
	}
}

// judgeChild is judge for a child whose parent made a turn of "basic" for each of
// the child's: what is live is both's, what is counted is the child's own.
func judgeChild(t *testing.T, a, b report, n int64, d delta) {
	t.Helper()
	a.Heap.Blocks -= n
	a.Heap.Live -= 112 * n
	b.Heap.Blocks -= 2 * n
	b.Heap.Live -= 2 * 112 * n
	less := func(r *report, by int64) {
		for i := range r.Heap.Classes {
			if r.Heap.Classes[i].Size == 112 {
				r.Heap.Classes[i].Live -= by
			}
		}
	}
	less(&a, n)
	less(&b, 2*n)
	judge(t, a, b, n, d)
}

// TestCountsOfThreads: the same once the threads are joined, with frees of other
// threads' blocks counted.
func TestCountsOfThreads(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "calls.c", withCxx...)
	a, b := twoRuns(t, prog, "threads", 2000, false)
	// In 2 turns: makes runs twice, so 4 mallocs, 4 callocs and 4 free(NULL) of its
	// own; drops frees 2 and makes 2; the main thread frees 1.
	judge(t, a, b, 1000, delta{calls: counts{"malloc": 6, "calloc": 4, "free": 7}, allocs: 10,
		frees:      3,
		bytesAlloc: 4*352 + 4*352 + 2*1536, bytesFreed: 2*352 + 1536,
		cross:     b.Heap.Cross/1000 - a.Heap.Cross/1000,
		classLive: classes{352: 6, 1536: 1}})
	if got := b.Heap.Cross - a.Heap.Cross; got < 1000 {
		t.Errorf("cross_thread_frees: %d in 1000 turns, at least the main thread's frees", got)
	}
}

// TestThreadHeaps: the running threads' heaps are told from those that wait.
func TestThreadHeaps(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "calls.c", withCxx...)
	a, b := twoRuns(t, prog, "together", 10, false)
	if a.Heap.Heaps != 1 || b.Heap.Heaps != 1 {
		t.Errorf("thread_heaps %d and %d; only the main thread was left", a.Heap.Heaps,
			b.Heap.Heaps)
	}
	if a.Heap.Abandoned != 10 || b.Heap.Abandoned != 20 {
		t.Errorf("thread_heaps_abandoned %d after 10 threads at a time, %d after 20",
			a.Heap.Abandoned, b.Heap.Abandoned)
	}
	if got := b.Heap.Cross - a.Heap.Cross; got != 10 {
		t.Errorf("cross_thread_frees: %d more for 10 more blocks", got)
	}
}
