package stress

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// What a storm is like. A long one, of a day's worth of operations:
//
//	go test ./tests/stress/ -run TestStorm -timeout 4h -seeds 1 -threads 16 -operations 1400000000 -lives 1000 -fork 1s
var (
	first      = flag.Int("first", 1, "seed of the first storm")
	seeds      = flag.Int("seeds", 20, "storms, a quarter of them with -short")
	threads    = flag.Int("threads", 8, "threads at a time")
	operations = flag.Int64("operations", 500_000, "operations of a storm")
	lives      = flag.Int("lives", 10, "threads that run a lane, one after the other")
	forkEvery  = flag.Duration("fork", 100*time.Millisecond, "processor time between forks")
)

// noStackCache makes glibc free a thread's structures when the thread is joined.
// It would keep some, and how many depends on chance: then no two runs could end
// with the same number of blocks.
const noStackCache = "GLIBC_TUNABLES=glibc.pthread.stack_cache_size=0"

// report is what the tests read of a statistics file.
type report struct {
	Calls map[string]int64
	Heap  struct {
		BlocksLive       int64 `json:"blocks_live"`
		BytesLive        int64 `json:"bytes_live"`
		BlocksTotalAlloc int64 `json:"blocks_total_alloc"`
		BlocksTotalFreed int64 `json:"blocks_total_freed"`
		BytesTotalAlloc  int64 `json:"bytes_total_alloc"`
		BytesTotalFreed  int64 `json:"bytes_total_freed"`
		BytesCommitted   int64 `json:"bytes_committed"`
		BytesMapped      int64 `json:"bytes_mapped"`
		HugeBlocksLive   int64 `json:"huge_blocks_live"`
		Purges           int64
		SizeClasses      []struct {
			Size       int64
			BlocksLive int64 `json:"blocks_live"`
		} `json:"size_classes"`
	}
	Tiers map[string]struct {
		Migrations struct {
			Moved int64 `json:"moved_pages"`
		}
	}
}

// own is what the storm says of itself.
type own struct {
	Ops, Forks int64
	Calls      map[string]int64
}

func readReport(t *testing.T, file string) report {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v", filepath.Base(file), err)
	}
	return r
}

// storm runs one storm to its good end.
func storm(t *testing.T, program string, seed int, ops int64) (own, report) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "stats.json")
	args := []string{program, strconv.Itoa(seed), strconv.Itoa(*threads),
		strconv.FormatInt(ops, 10), strconv.Itoa(*lives),
		strconv.FormatInt(forkEvery.Milliseconds(), 10)}
	res := testlib.Run(t, testlib.Cmd{
		Args: args, Env: []string{noStackCache, "TA_STATS_FILE=" + file}, Preload: true,
		Timeout: 3*time.Minute + time.Duration(ops)*10*time.Microsecond,
	})
	if res.Status != 0 || res.Stderr != "" {
		t.Fatalf("status %d, stderr: %s\nto replay, in tests/stress:\n%s", res.Status, res.Stderr,
			replay(t, args))
	}
	var o own
	if err := json.Unmarshal([]byte(res.Stdout), &o); err != nil {
		t.Fatalf("%v in %q", err, res.Stdout)
	}
	if ops > 0 {
		checkChildren(t, file, o.Forks)
	}
	return o, readReport(t, file)
}

func replay(t *testing.T, args []string) string {
	return fmt.Sprintf("gcc -O2 -g -fno-builtin -pthread -o storm testdata/storm.c "+
		"testdata/block.c && %s LD_PRELOAD=%s ./storm %s",
		noStackCache, testlib.Lib(t), strings.Join(args[1:], " "))
}

// checkChildren looks for the reports of the forked children, two of each fork.
func checkChildren(t *testing.T, file string, forks int64) {
	t.Helper()
	if forks == 0 {
		t.Error("the storm has not forked")
	}
	children, err := filepath.Glob(file + ".*")
	if err != nil {
		t.Fatal(err)
	}
	// The kernel gives numbers of processes out again, in the end: then two have one name.
	want := 2 * forks
	if n := int64(len(children)); n > want || n < want-want*want/32768 {
		t.Errorf("%d children's statistics of %d forks, want two each", len(children), forks)
	}
	for _, c := range children {
		if r := readReport(t, c); r.Calls["malloc"] == 0 {
			t.Errorf("%s counts no malloc", filepath.Base(c))
		}
	}
}

// checkCounts holds the statistics of a storm against those of a storm of no
// operations, which starts as many threads, and against the storm's own counts.
func checkCounts(t *testing.T, o own, got, empty report) {
	t.Helper()
	h, e := got.Heap, empty.Heap
	if h.BlocksLive != e.BlocksLive || h.BytesLive != e.BytesLive ||
		h.HugeBlocksLive != e.HugeBlocksLive {
		t.Errorf("live at the end: %d blocks of %d bytes (%d huge); want those of an empty run: "+
			"%d, %d (%d)",
			h.BlocksLive, h.BytesLive, h.HugeBlocksLive, e.BlocksLive, e.BytesLive,
			e.HugeBlocksLive)
		for _, c := range h.SizeClasses {
			if c.BlocksLive != 0 {
				t.Logf("%d blocks of %d bytes", c.BlocksLive, c.Size)
			}
		}
	}
	if h.BlocksLive != h.BlocksTotalAlloc-h.BlocksTotalFreed ||
		h.BytesLive != h.BytesTotalAlloc-h.BytesTotalFreed {
		t.Errorf("live (%d blocks, %d bytes) is not allocated (%d, %d) less freed (%d, %d)",
			h.BlocksLive, h.BytesLive,
			h.BlocksTotalAlloc, h.BytesTotalAlloc, h.BlocksTotalFreed, h.BytesTotalFreed)
	}
	if h.BytesLive > h.BytesCommitted || h.BytesCommitted > h.BytesMapped {
		t.Errorf("live %d, committed %d, mapped %d: each should be at most the next", h.BytesLive,
			h.BytesCommitted, h.BytesMapped)
	}
	for name, n := range got.Calls {
		if d := n - empty.Calls[name]; d != o.Calls[name] {
			t.Errorf("calls of %s: %d counted, %d made", name, d, o.Calls[name])
		}
	}
}

func TestStorm(t *testing.T) {
	program := testlib.CC(t, "storm.c", "testdata/block.c", "-O2")
	_, empty := storm(t, program, 0, 0)
	n := *seeds
	if testing.Short() {
		n = max(n/4, 1)
	}
	for seed := *first; seed < *first+n; seed++ {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			start := time.Now()
			o, got := storm(t, program, seed, *operations)
			each := int64(*threads * *lives)
			if want := *operations / each * each; o.Ops != want {
				t.Errorf("%d operations, want %d", o.Ops, want)
			}
			checkCounts(t, o, got, empty)
			calls := int64(0)
			for name, n := range o.Calls {
				if name != "malloc_usable_size" {
					calls += n
				}
			}
			t.Logf("%d operations, %d of them calls that allocate, resize or free; %d forks; %v",
				o.Ops, calls, o.Forks,
				time.Since(start).Round(time.Second))
		})
	}
}
