package cuda

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestTrace: every free has an allocation of the same address and size before it.
func TestTrace(t *testing.T) {
	program := cc(t, "limits.c")
	file := filepath.Join(t.TempDir(), "trace-%e.csv")
	r := testlib.Run(t, command(true, []string{"TA_CUDA_TRACE=" + file, "TA_CUDA_HARD=64M"},
		program, "fill"))
	clean(t, r)
	text, err := os.ReadFile(strings.ReplaceAll(file, "%e", "limits"))
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if lines[0] != "Thread,Action,Pointer,Size,Stream" {
		t.Fatalf("the first line is %q", lines[0])
	}
	live, counts := map[string]string{}, map[string]int{}
	for _, line := range lines[1:] {
		f := strings.Split(line, ",")
		if len(f) != 5 {
			t.Fatalf("line %q", line)
		}
		counts[f[1]]++
		switch f[1] {
		case "allocate":
			if _, twice := live[f[2]]; twice {
				t.Errorf("%s is allocated twice", f[2])
			}
			live[f[2]] = f[3]
		case "free":
			if live[f[2]] != f[3] {
				t.Errorf("%s: %s bytes are freed, %q were allocated", f[2], f[3], live[f[2]])
			}
			delete(live, f[2])
		}
	}
	if counts["allocate"] < 10 || counts["free"] != counts["allocate"] ||
		counts["allocate failure"] == 0 || len(live) != 0 {
		t.Errorf("%v, live %v", counts, live)
	}
}

// TestTraceRefused: a trace that cannot be written is one line, and the program runs.
func TestTraceRefused(t *testing.T) {
	r := testlib.Run(t, command(true, []string{"TA_CUDA_TRACE=/no/such/folder/x"},
		cc(t, "limits.c"), "fill"))
	if r.Status != 0 || strings.Count(r.Stderr, "\n") != 1 ||
		!strings.Contains(r.Stderr, "TA_CUDA_TRACE /no/such/folder/x") {
		t.Errorf("status %d, stderr %q", r.Status, r.Stderr)
	}
}

// TestTraceLink: the trace that a process of root writes into a user's folder does not follow the
// links that the user makes there. Root's own links lead where they lead.
func TestTraceLink(t *testing.T) {
	program := cc(t, "limits.c")
	for owner, want := range map[int]int{0: 1, 65534: 0} {
		target, link := testlib.LinkOf(t, owner)
		r := testlib.Run(t, command(true, []string{"TA_CUDA_TRACE=" + filepath.Join(link, "new"),
			"TA_CUDA_HARD=64M"}, program, "fill"))
		if told := strings.Contains(r.Stderr, "TA_CUDA_TRACE"); r.Status != 0 ||
			told != (want == 0) {
			t.Errorf("link of user %d: status %d, stderr %q", owner, r.Status, r.Stderr)
		}
		if files, err := os.ReadDir(target); err != nil || len(files) != want {
			t.Errorf("link of user %d: the target holds %v, %v", owner, files, err)
		}
	}
}

// TestRegions: memory of a region that sleeps goes back, and comes again with its contents.
func TestRegions(t *testing.T) {
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testlib.Lacks(t, python)
	}
	r := testlib.Run(t, command(true, []string{"PYTHONPATH=" + filepath.Join("..", "..", "python")},
		python, "testdata/regions.py"))
	clean(t, r)
	if r.Stdout != "ok\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
}

// TestPythonControls: what Python records and reads comes from the library.
func TestPythonControls(t *testing.T) {
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testlib.Lacks(t, python)
	}
	r := testlib.Run(t, command(true, []string{"PYTHONPATH=" + filepath.Join("..", "..", "python")},
		python, "testdata/manager.py"))
	clean(t, r)
	if r.Stdout != "ok\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
}
