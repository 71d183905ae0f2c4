package cuda

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestManagers has memory managers used from C.
func TestManagers(t *testing.T) {
	eachReuse(t, "mm.c", "kinds", "pinned", "host", "evict", "full", "chunk", "queue", "threads")
}

// TestManagersRoom: before a queue is cut, idle instances are asked; what does not fit then is cut
// as the device heap rounds, and shorter where that refuses all the same.
func TestManagersRoom(t *testing.T) {
	eachReuse(t, "mm_room.c", "idle", "busy", "managers", "budget", "held", "hopeless", "rounded",
		"shorter")
}

// eachReuse runs the cases of a program with each TA_CUDA_REUSE. It says ok, and nothing else.
func eachReuse(t *testing.T, source string, cases ...string) {
	t.Helper()
	program := cc(t, source)
	for _, name := range cases {
		for _, reuse := range []string{"sync", "event"} {
			t.Run(name+"/"+reuse, func(t *testing.T) {
				r := testlib.Run(t, command(true, []string{"TA_CUDA_REUSE=" + reuse}, program,
					name))
				clean(t, r)
				if r.Stdout != "ok\n" {
					t.Errorf("stdout %q", r.Stdout)
				}
			})
		}
	}
}

// TestManagersHooks has managers beside functions of the program that call back, and ends of
// streams and contexts.
func TestManagersHooks(t *testing.T) {
	program := cc(t, "mm_hooks.c")
	for _, name := range []string{"once", "nested", "hopeless", "queue", "meddling", "streams",
		"last", "capture", "reset", "older", "threads"} {
		for _, reuse := range []string{"sync", "event"} {
			t.Run(name+"/"+reuse, func(t *testing.T) {
				r := testlib.Run(t, command(true, []string{"TA_CUDA_REUSE=" + reuse}, program,
					name))
				clean(t, r)
				if r.Stdout != "" {
					t.Errorf("stdout %q", r.Stdout)
				}
			})
		}
	}
}

// TestManagersReport: the report has the instances of managers that live at the end.
func TestManagersReport(t *testing.T) {
	program, file := cc(t, "mm.c"), filepath.Join(t.TempDir(), "stats.json")
	clean(t, testlib.Run(t, command(true, []string{"TA_STATS_FILE=" + file}, program, "evict")))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	type instance struct {
		ID         uint64 `json:"id"`
		Name       string
		Group      string
		Pool       string
		Proportion float64
		Cap        uint64 `json:"bytes_cap"`
		Live       uint64 `json:"bytes_live"`
		Peak       uint64 `json:"bytes_peak"`
		Allocs     uint64 `json:"alloc_calls"`
		Frees      uint64 `json:"free_calls"`
		Refused    uint64
		Evictions  uint64
	}
	var report struct {
		Managers []struct {
			Name      string
			Device    uint64
			Mode      string
			Total     uint64 `json:"bytes_total"`
			Count     uint64 `json:"instance_count"`
			Instances []instance
		}
	}
	if err := json.Unmarshal(text, &report); err != nil {
		t.Fatal(err)
	}
	if len(report.Managers) != 1 {
		t.Fatalf("%d managers", len(report.Managers))
	}
	m := report.Managers[0]
	const mib = 1 << 20
	if m.Name != "evict" || m.Device != 0 || m.Mode != "active" || m.Total != 100*mib ||
		m.Count != 5 || len(m.Instances) != 5 {
		t.Errorf("%+v", m)
	}
	for i, want := range []instance{
		{1, "x", "default", "manual", 0.2, 20 * mib, 20 * mib, 20 * mib, 2, 1, 0, 1},
		{2, "x", "default", "manual", 0.2, 20 * mib, 0, 20 * mib, 1, 1, 0, 1},
		{3, "x", "default", "manual", 0.2, 20 * mib, 50 * mib, 50 * mib, 3, 0, 2, 0},
		{4, "x", "other", "manual", 0.2, 20 * mib, 20 * mib, 20 * mib, 1, 0, 0, 0},
		{5, "x", "default", "manual", 0.1, 10 * mib, 0, 5 * mib, 1, 1, 0, 1},
	} {
		if i < len(m.Instances) && m.Instances[i] != want {
			t.Errorf("%+v, expected %+v", m.Instances[i], want)
		}
	}
}
