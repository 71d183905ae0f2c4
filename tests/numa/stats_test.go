package numa

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"testing"
)

// stats is what the tests read of a statistics file.
type stats struct {
	Backend string
	Nodes   []int
	Sampled bool `json:"bytes_per_node_sampled"`
	Tiers   map[string]*tier

	Following *following
}

// following is what a process did that follows.
type following struct {
	Source     string
	Samples    int64
	Regions    int64
	ThreadNs   int64 `json:"thread_ns"`
	UpRoom     moves `json:"up_room"`
	UpHotter   moves `json:"up_hotter"`
	DownColder moves `json:"down_colder"`
	DownSoft   moves `json:"down_softcap"`
	Refused    moves
	PutOff     moves `json:"put_off"`
}

type moves struct{ Regions, Bytes int64 }

type tier struct {
	Current    int64         `json:"bytes_current"`
	Peak       int64         `json:"bytes_peak"`
	PerNode    map[int]int64 `json:"bytes_per_node"`
	MovedIn    int64         `json:"kernel_moved_in"`
	MovedOut   int64         `json:"kernel_moved_out"`
	Hot        int64         `json:"bytes_hot"`
	Cold       int64         `json:"bytes_cold"`
	Violations int64         `json:"capacity_violations"`
	Exceeded   int64         `json:"soft_exceeded"`
	Rerouted   int64
	RoutedSlow int64 `json:"routed_slow"`
	Refused    int64
	Nodes      []int
	SameMemory []string `json:"same_memory"`
	HugePages  string
	Fallbacks  int64 `json:"hugepage_fallbacks"`
	Migrations struct {
		Attempted int64
		Moved     int64 `json:"moved_pages"`
		Failed    int64 `json:"failed_pages"`
	}
}

// stats is the statistics file of that name among what a check left.
func (r *results) stats(t *testing.T, name string) *stats {
	t.Helper()
	s := new(stats)
	if err := json.Unmarshal([]byte(r.read(t, name)), s); err != nil {
		t.Fatalf("%s: %v", filepath.Join(r.dir, name), err)
	}
	for _, key := range []string{"fast", "normal", "slow"} {
		if s.Tiers[key] == nil {
			t.Fatalf("%s has no tier %s", name, key)
		}
	}
	return s
}

// perNode is what all tiers together have on each node.
func (s *stats) perNode() map[int]int64 {
	sum := map[int]int64{}
	for _, tier := range s.Tiers {
		for node, n := range tier.PerNode {
			sum[node] += n
		}
	}
	return sum
}

// kib is a number of bytes for a message.
func kib(n int64) string { return strconv.FormatInt(n>>10, 10) + " KiB" }
