package selftest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// result is what a run of run.sh came to: its status, and its table's rows by result.
type result struct {
	status int
	rows   map[string][]string
	all    string
}

// script runs run.sh with stubs for all programs that it needs.
func script(t *testing.T, env []string, args ...string) result {
	t.Helper()
	stub, err := filepath.Abs("testdata/stub")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	for _, name := range []string{"nvidia-smi", "nvcc", "compute-sanitizer", "python3"} {
		if err := os.Symlink(stub, filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	run := filepath.Join(testlib.Root(), "tests", "gpu", "run.sh")
	r := testlib.Run(t, testlib.Cmd{
		Args: append([]string{"bash", run, "-l", testlib.Lib(t), "-o", t.TempDir()}, args...),
		Env: append([]string{"PATH=" + bin + ":" + os.Getenv("PATH"),
			"STUB_PYTHON=" + systemPython(t)}, env...),
	})
	got := result{r.Status, map[string][]string{}, r.Stdout + r.Stderr}
	_, table, _ := strings.Cut(r.Stdout, "\n\n") // the rows before it are the same
	for _, line := range strings.Split(table, "\n") {
		if word, rest, found := strings.Cut(line, " "); found {
			got.rows[word] = append(got.rows[word], strings.TrimSpace(rest))
		}
	}
	return got
}

func (r result) want(t *testing.T, status int, counts map[string]int) {
	t.Helper()
	for _, word := range []string{"ok", "FAIL", "skip", "info"} {
		if len(r.rows[word]) != counts[word] {
			t.Errorf("%d rows %s, expected %d", len(r.rows[word]), word, counts[word])
		}
	}
	if r.status != status || t.Failed() {
		t.Fatalf("status %d, expected %d\n%s", r.status, status, r.all)
	}
}

// checks is how many rows "ok" each part has when all is well; further ones are "info".
var checks = map[string]int{"unmodified": 12, "sequences": 8, "warmup": 1, "reuse": 9, "peer": 2,
	"limits": 4, "ipc": 5, "train": 12,
	"managed": 5, "manager": 3, "heap": 9, "async": 8, "regions": 2, "memcheck": 4}

var parts = []string{"unmodified", "sequences", "warmup", "reuse", "peer", "limits", "ipc", "train",
	"managed", "manager", "heap", "async", "regions", "memcheck"}

func TestAllHold(t *testing.T) {
	ok := 0
	for _, n := range checks {
		ok += n
	}
	r := script(t, nil, "-r")
	r.want(t, 0, map[string]int{"ok": ok, "info": 2})
	for _, name := range []string{"same_size", "large", "transformer", "pressure", "variable",
		"grad_accum", "random_4M", "random_64M"} {
		if !slices.ContainsFunc(r.rows["ok"],
			func(row string) bool { return strings.HasPrefix(row, "sequence "+name+" ") }) {
			t.Errorf("no row for the sequence %s\n%s", name, r.all)
		}
	}
}

// TestNothingTested: programs that print nothing, end early, or print what is wrong fail in
// every part.
func TestNothingTested(t *testing.T) {
	for _, how := range []string{"silent", "crash", "wrong"} {
		r := script(t, []string{"STUB=" + how}, "-n", "1", "-r")
		if len(r.rows["ok"]) != 0 || r.status != 1 {
			t.Errorf("%s: status %d\n%s", how, r.status, r.all)
		}
		for _, part := range parts {
			_, rows, _ := strings.Cut(r.all, "== "+part+"\n")
			rows, _, _ = strings.Cut(rows, "\n== ")
			if rows, _, _ = strings.Cut(rows, "\n\n"); !strings.Contains("\n"+rows, "\nFAIL ") {
				t.Errorf("%s, %s: no row failed\n%s", how, part, r.all)
			}
		}
	}
}

// TestOneFails: one program that does not do its work fails its own rows and no other.
func TestOneFails(t *testing.T) {
	for _, c := range []struct {
		part, only, how string
		fail            []string
	}{
		{"sequences", " ours 5 pressure ", "crash", []string{"sequence pressure"}},
		{"sequences", " torch 5 large ", "crash", []string{"sequence large"}},
		{"reuse", "storm", "silent", []string{"reuse, storm, sync", "reuse, storm, event"}},
		{"limits", " spill ", "silent", []string{"limit of 1 GiB, spill, CuPy"}},
		{"train", " side pluggable ", "silent", []string{"train, side, pluggable"}},
		{"memcheck", " 3 ", "silent", []string{"memcheck, loop_static 3", "memcheck, loop_static 3",
			"memcheck, storm 3", "memcheck, storm 3"}},
		{"warmup", " warm ", "silent", []string{"warm-up, transformer, first cycle"}},
		{"managed", " batch ", "silent", []string{"managed, example batch, cupy"}},
		{"managed", "prefetch ", "wrong", []string{"managed, prefetch of 64, beside the driver's"}},
		{"managed", "prefetch ", "silent",
			[]string{"managed, prefetch of 64, beside the driver's"}},
		{"async", " time ", "crash", []string{"async, a pair beside the driver's pool"}},
		{"async", " storm ", "wrong", []string{"async, storm, sync", "async, storm, event"}},
		{"async", " cupy_async ", "wrong", []string{"async, CuPy, MemoryAsyncPool"}},
		{"manager", " limit ", "crash", []string{"manager, limit, cupy"}},
	} {
		r := script(t, []string{"STUB=" + c.how, "STUB_ONLY=" + c.only}, "-n", "1", "-r",
			c.part)
		if len(r.rows["FAIL"]) != len(c.fail) || r.status != 1 ||
			len(r.rows["ok"]) == 0 && c.part != "warmup" {
			t.Errorf("%v: status %d\n%s", c, r.status, r.all)
			continue
		}
		for i, row := range r.rows["FAIL"] {
			if !strings.HasPrefix(row, c.fail[i]+" ") {
				t.Errorf("%v: FAIL %s", c, row)
			}
		}
	}
}

// TestRequired: what is missing is skipped, and with -r fails.
func TestRequired(t *testing.T) {
	for _, c := range []struct {
		env, part string
		ok, lacks int
	}{
		{"STUB_DEVICES=1", "peer", 0, 1},
		{"STUB_REFUSED=1", "memcheck", 0, 1},
		{"STUB_REFUSED=1", "managed", 4, 1},
		{"STUB_NO_MODULES=1", "managed", 1, 1},
		{"STUB_MODULES=cuda.core", "managed", 5, 0},
		{"STUB_MODULES=cuda.core", "manager", 0, 1},
		{"STUB_MODULES=numba", "manager", 3, 0},
		{"STUB_NO_MODULES=1", "heap", 3, 2},
		{"STUB_NO_MODULES=1", "async", 6, 2},
		{"STUB_NO_MODULES=1", "limits", 0, 2},
		{"STUB_NO_MODULES=1", "unmodified", 4, 3},
		{"STUB_NO_MODULES=1", "sequences", 0, 1},
		{"STUB_NO_MODULES=1", "train", 0, 1},
	} {
		script(t, []string{c.env}, c.part).want(t, 0, map[string]int{"ok": c.ok, "skip": c.lacks})
		script(t, []string{c.env}, "-r", c.part).want(t, min(c.lacks, 1),
			map[string]int{"ok": c.ok, "FAIL": c.lacks})
	}
	for args, status := range map[string]int{"": 0, "-r": 1} {
		if r := script(t, []string{"STUB_DEVICES=0"},
			strings.Fields(args)...); r.status != status ||
			!strings.Contains(r.all, "no CUDA device") {
			t.Errorf("%q: status %d\n%s", args, r.status, r.all)
		}
	}
}

// TestHeapIsManaged: equal results are not enough, the report must tell of managed memory, and
// of the host where cold memory is asked for.
func TestHeapIsManaged(t *testing.T) {
	r := script(t, []string{"STUB_MANAGED=false"}, "-r", "heap")
	if r.want(t, 1, map[string]int{"FAIL": 9}); !strings.Contains(r.all,
		"no managed memory in the report") {
		t.Error(r.all)
	}
	r = script(t, []string{"STUB_COLD=0"}, "-r", "heap")
	if r.want(t, 1, map[string]int{"ok": 6, "FAIL": 3}); !strings.Contains(r.all,
		"nothing on the host in the report") {
		t.Error(r.all)
	}
}

// TestAsyncServed: the report must tell that the heap has reused blocks.
func TestAsyncServed(t *testing.T) {
	r := script(t, []string{"STUB_HITS=0"}, "-r", "async")
	r.want(t, 1, map[string]int{"ok": 5, "FAIL": 3})
}

// TestPrefetchLimit: the library's call may take 5% more than the driver's.
func TestPrefetchLimit(t *testing.T) {
	for batch, ok := range map[string]int{"20999": 5, "21001": 4, "0": 4, "x": 4} {
		script(t, []string{"STUB_BATCH=" + batch}, "-r", "managed").want(t, 5-ok,
			map[string]int{"ok": ok, "FAIL": 5 - ok})
	}
}

func TestWrongUse(t *testing.T) {
	for _, args := range [][]string{{"nothing"}, {"-x"}, {"-t", "0"}, {"-t", "121"}, {"-t", "x"},
		{"-n", "0"}, {"-n", "10"}, {"-l", "/no/such/lib"}, {"ipc", ""}} {
		if r := script(t, nil, args...); r.status != 2 || len(r.rows) != 0 {
			t.Errorf("%q: status %d\n%s", args, r.status, r.all)
		}
	}
}
