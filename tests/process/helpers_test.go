package process

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/testlib"
)

// quiet is an environment that no caller's settings reach.
var quiet = []string{"LC_ALL=C", "TA_STATS_FILE=", "TA_PURGE_DELAY=", "TA_STRICT=", "TA_LOG=",
	"TA_DISABLE=", "TA_INTERPOSE=", "LD_BIND_NOW="}

// preloaded runs the program with the library; env adds to the quiet one.
func preloaded(t *testing.T, env []string, args ...string) testlib.Result {
	t.Helper()
	return testlib.Run(t, testlib.Cmd{Args: args, Env: append(append([]string{}, quiet...), env...),
		Preload: true})
}

// plain runs the program without it.
func plain(t *testing.T, args ...string) testlib.Result {
	t.Helper()
	return testlib.Run(t, testlib.Cmd{Args: args, Env: quiet})
}

// clean fails the test unless the program ended with status 0 and without a word
// on standard error.
func clean(t *testing.T, r testlib.Result) {
	t.Helper()
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("status %d\nstdout: %s\nstderr: %s", r.Status, clip(r.Stdout), clip(r.Stderr))
	}
}

// cases runs each case of a program preloaded, as a subtest.
func cases(t *testing.T, program string, env []string, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			clean(t, preloaded(t, env, program, name))
		})
	}
}

func clip(s string) string {
	const most = 1500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// class is one entry of heap.size_classes.
type class struct {
	Size       int64 `json:"size"`
	Live       int64 `json:"blocks_live"`
	TotalAlloc int64 `json:"blocks_total_alloc"`
	TotalFreed int64 `json:"blocks_total_freed"`
	BytesPages int64 `json:"bytes_pages"`
}

// report is the part of a statistics file that the tests judge.
type report struct {
	Pid         int              `json:"pid"`
	Program     string           `json:"program"`
	Calls       map[string]int64 `json:"calls"`
	CallsFailed int64            `json:"calls_failed"`
	Heap        struct {
		Mapped        int64   `json:"bytes_mapped"`
		Committed     int64   `json:"bytes_committed"`
		Live          int64   `json:"bytes_live"`
		Peak          int64   `json:"bytes_peak"`
		Cached        int64   `json:"bytes_cached"`
		BytesAlloc    int64   `json:"bytes_total_alloc"`
		BytesFreed    int64   `json:"bytes_total_freed"`
		Blocks        int64   `json:"blocks_live"`
		TotalAlloc    int64   `json:"blocks_total_alloc"`
		TotalFreed    int64   `json:"blocks_total_freed"`
		Cross         int64   `json:"cross_thread_frees"`
		Heaps         int64   `json:"thread_heaps"`
		Abandoned     int64   `json:"thread_heaps_abandoned"`
		Purged        int64   `json:"bytes_purged"`
		HugeBlocks    int64   `json:"huge_blocks_live"`
		HugeBytes     int64   `json:"huge_bytes_live"`
		Pressures     int64   `json:"pressures"`
		BytesPressure int64   `json:"bytes_pressure"`
		Unguarded     int64   `json:"unguarded_blocks"`
		Classes       []class `json:"size_classes"`
	} `json:"heap"`
}

// validReport reads a statistics file, which must be valid by the schema and have
// no number that went below zero and wrapped.
func validReport(t *testing.T, path string) report {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	schema, err := os.ReadFile(filepath.Join(testlib.Root(), "docs", "stats.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonschema.Validate(schema, text); err != nil {
		t.Errorf("%s: %v", filepath.Base(path), err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%s: %v\n%s", filepath.Base(path), err, clip(string(text)))
	}
	for name, n := range r.Calls {
		if n < 0 || n > 1<<40 {
			t.Errorf("%s: %d calls of %s", filepath.Base(path), n, name)
		}
	}
	return r
}

// readReport is validReport for a process whose threads were quiet: the report
// agrees with itself.
func readReport(t *testing.T, path string) report {
	t.Helper()
	r := validReport(t, path)
	h := &r.Heap
	if h.Live > h.Committed || h.Committed > h.Mapped || h.Committed > h.Peak ||
		h.Live+h.Cached > h.Committed {
		t.Errorf("%s: live %d, cached %d, committed %d, mapped %d, peak %d do not fit",
			filepath.Base(path), h.Live, h.Cached, h.Committed, h.Mapped, h.Peak)
	}
	var blocks, bytes int64
	for _, c := range h.Classes {
		blocks += c.Live
		bytes += c.Live * c.Size
		if c.Live*c.Size > c.BytesPages || c.Live < 0 {
			t.Errorf("%s: class %d has %d blocks live in %d bytes", filepath.Base(path), c.Size,
				c.Live, c.BytesPages)
		}
	}
	if blocks+h.HugeBlocks != h.Blocks || bytes+h.HugeBytes != h.Live {
		t.Errorf("%s: classes sum to %d blocks and %d bytes, the heap has %d and %d",
			filepath.Base(path), blocks+h.HugeBlocks, bytes+h.HugeBytes, h.Blocks, h.Live)
	}
	return r
}

// statsFiles are the names in dir, temporary ones included.
func statsFiles(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// oneLine reports whether text is exactly one line that holds every word.
func oneLine(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return strings.Count(text, "\n") == 1 && strings.HasSuffix(text, "\n")
}
