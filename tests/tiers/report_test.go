package tiers_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/testlib"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// tier is the part of a tier's figures that the tests judge.
type tier struct {
	AllocCalls   int64            `json:"alloc_calls"`
	FreeCalls    int64            `json:"free_calls"`
	Current      int64            `json:"bytes_current"`
	Peak         int64            `json:"bytes_peak"`
	BytesAlloc   int64            `json:"bytes_total_alloc"`
	BytesFreed   int64            `json:"bytes_total_freed"`
	BlocksIn     int64            `json:"blocks_entered"`
	BlocksOut    int64            `json:"blocks_left"`
	BytesIn      int64            `json:"bytes_entered"`
	BytesOut     int64            `json:"bytes_left"`
	WaitNs       int64            `json:"simulated_wait_ns"`
	Soft         int64            `json:"capacity_soft"`
	Hard         int64            `json:"capacity_hard"`
	Violations   int64            `json:"capacity_violations"`
	SoftExceeded int64            `json:"soft_exceeded"`
	Rerouted     int64            `json:"rerouted"`
	RoutedSlow   int64            `json:"routed_slow"`
	Refused      int64            `json:"refused"`
	Sleeps       int64            `json:"throttle_sleeps"`
	OvershootNs  int64            `json:"throttle_overshoot_ns"`
	ThrottleBW   int64            `json:"throttle_bw"`
	Burst        int64            `json:"throttle_burst"`
	LatNs        int64            `json:"throttle_lat_ns"`
	HugePages    string           `json:"hugepages"`
	Fallbacks    int64            `json:"hugepage_fallbacks"`
	PerNode      map[string]int64 `json:"bytes_per_node"`
	Migrations   struct {
		Attempted int64 `json:"attempted"`
		Moved     int64 `json:"moved_pages"`
		Failed    int64 `json:"failed_pages"`
	} `json:"migrations"`
}

// live is the bytes of the tier's blocks that are not freed.
func (t *tier) live() int64 { return t.BytesAlloc - t.BytesFreed }

// moved is a kind of moves.
type moved struct{ Regions, Bytes int64 }

// report is the part of a report that the tests judge.
type report struct {
	Pid         int64            `json:"pid"`
	Program     string           `json:"program"`
	Uptime      int64            `json:"uptime_ns"`
	Calls       map[string]int64 `json:"calls"`
	CallsFailed int64            `json:"calls_failed"`
	Heap        struct {
		Committed  int64 `json:"bytes_committed"`
		Live       int64 `json:"bytes_live"`
		Peak       int64 `json:"bytes_peak"`
		Cached     int64 `json:"bytes_cached"`
		Advised    int64 `json:"bytes_hugepages_advised"`
		BytesAlloc int64 `json:"bytes_total_alloc"`
		BytesFreed int64 `json:"bytes_total_freed"`
		Allocs     int64 `json:"blocks_total_alloc"`
		Frees      int64 `json:"blocks_total_freed"`
	} `json:"heap"`
	Backend   string `json:"backend"`
	Following *struct {
		OutCold       moved `json:"out_cold"`
		OutUnknown    moved `json:"out_unknown"`
		BytesResident int64 `json:"bytes_resident"`
	} `json:"following"`
	Policy struct {
		DefaultHint string `json:"default_hint"`
		OnSoftcap   string `json:"on_softcap"`
		OnHardcap   string `json:"on_hardcap"`
		Throttle    string `json:"throttle"`
		Model       string `json:"model"`
		Rules       int64  `json:"rules"`
	} `json:"policy"`
	Hints map[string]int64 `json:"hints"`
	Tiers struct {
		Fast   tier `json:"fast"`
		Normal tier `json:"normal"`
		Slow   tier `json:"slow"`
	} `json:"tiers"`
}

func (r *report) tiers() []*tier { return []*tier{&r.Tiers.Fast, &r.Tiers.Normal, &r.Tiers.Slow} }

var schema = sync.OnceValues(func() ([]byte, error) {
	return os.ReadFile(filepath.Join(testlib.Root(), "docs", "stats.schema.json"))
})

// valid reads a report, which must be valid by the schema.
func valid(t *testing.T, text []byte) report {
	t.Helper()
	s, err := schema()
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonschema.Validate(s, text); err != nil {
		t.Errorf("the report is not valid: %v", err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v\n%s", err, clip(string(text)))
	}
	if r.Backend != "simulated" {
		t.Errorf("the backend is %s", r.Backend)
	}
	for i, x := range r.tiers() {
		if x.Current < 0 || x.Current > x.Peak || x.Hard != 0 && x.Peak > x.Hard {
			t.Errorf("tier %d: current %d, peak %d, hard cap %d", i, x.Current, x.Peak, x.Hard)
		}
	}
	return r
}

// checked is valid for a process whose threads were quiet: the tiers agree with
// the heap, and the kernel has nothing resident that is not charged.
func checked(t *testing.T, text []byte) report {
	t.Helper()
	r := valid(t, text)
	var sum tier
	for i, x := range r.tiers() {
		sum.AllocCalls += x.AllocCalls
		sum.FreeCalls += x.FreeCalls
		sum.BytesAlloc += x.BytesAlloc
		sum.BytesFreed += x.BytesFreed
		sum.Current += x.Current
		if x.BlocksIn-x.BlocksOut != x.AllocCalls-x.FreeCalls || x.BytesIn-x.BytesOut != x.live() {
			t.Errorf("tier %d: %d - %d blocks, %d - %d bytes entered and left; %d - %d, %d - %d "+
				"are there", i,
				x.BlocksIn, x.BlocksOut, x.BytesIn, x.BytesOut, x.AllocCalls, x.FreeCalls,
				x.BytesAlloc, x.BytesFreed)
		}
		there := int64(0)
		for _, n := range x.PerNode {
			there += n
		}
		if there > x.Current {
			t.Errorf("tier %d: %d bytes are resident, %d charged", i, there, x.Current)
		}
	}
	h := &r.Heap
	if sum.AllocCalls != h.Allocs || sum.FreeCalls != h.Frees || sum.BytesAlloc != h.BytesAlloc ||
		sum.BytesFreed != h.BytesFreed {
		t.Errorf("the tiers have %d blocks and %d bytes allocated, %d and %d freed; the heap %d "+
			"and %d, %d and %d",
			sum.AllocCalls, sum.BytesAlloc, sum.FreeCalls, sum.BytesFreed, h.Allocs, h.BytesAlloc,
			h.Frees, h.BytesFreed)
	}
	if sum.Current != h.Committed {
		t.Errorf("the tiers are charged with %d bytes, the heap has %d", sum.Current, h.Committed)
	}
	return r
}
