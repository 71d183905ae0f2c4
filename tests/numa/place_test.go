package numa

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const mib = 1 << 20

// blocks is what most checks have plain.c allocate: sizes from all parts of the heap.
const blocks = "64x2000 3000x500 40000x60 300000x20 1000000x5 6000000x3"

var blockSizes = []int64{64, 3000, 40000, 300000, 1000000, 6000000}

// on judges a run of plain.c whose blocks of a size all lie on some nodes: by the
// program's own question to the kernel, and by numa_maps.
func on(sizes []int64, nodes ...int) func(*testing.T, *results) {
	return func(t *testing.T, r *results) {
		t.Helper()
		for _, size := range sizes {
			pages := r.numbers(t, fmt.Sprint(size))[0]
			for node, n := range pages[:3] {
				if n != 0 && !slices.Contains(nodes, node) {
					t.Errorf("blocks of %d bytes: %d pages on node %d", size, n, node)
				}
			}
			if pages[3] != 0 {
				t.Errorf("blocks of %d bytes: %d pages absent", size, pages[3])
			}
			onlyOn(t, r.blockAreas(t, size), nodes...)
		}
	}
}

// numaBackend judges the statistics: real nodes, these for the three tiers.
func numaBackend(t *testing.T, r *results, file string, fast, normal, slow []int) {
	t.Helper()
	s := r.stats(t, file)
	if s.Backend != "numa" || !slices.Equal(s.Tiers["fast"].Nodes, fast) ||
		!slices.Equal(s.Tiers["normal"].Nodes, normal) ||
		!slices.Equal(s.Tiers["slow"].Nodes, slow) {
		t.Errorf("backend %q, tiers on %v %v %v", s.Backend, s.Tiers["fast"].Nodes,
			s.Tiers["normal"].Nodes, s.Tiers["slow"].Nodes)
	}
}

// both puts two judges in a row.
func both(a, b func(*testing.T, *results)) func(*testing.T, *results) {
	return func(t *testing.T, r *results) {
		t.Helper()
		a(t, r)
		b(t, r)
	}
}

// placeChecks: touched pages lie where hints, rules and TA_NODE_* say.
func placeChecks() []check {
	var all []check
	for _, c := range []struct {
		hint string
		node int
	}{{"hot", 0}, {"prefer_fast", 0}, {"pin_fast", 0}, {"warm", 1}, {"cold", 2}} {
		all = append(all, check{
			name: "default hint " + c.hint, env: "TA_DEFAULT_HINT=" + c.hint,
			script: "/guest/plain " + blocks,
			judge: both(on(blockSizes, c.node), func(t *testing.T, r *results) {
				numaBackend(t, r, "plain.json", []int{0}, []int{1}, []int{2})
			}),
		})
	}
	return apart(append(all,
		check{name: "rules by size", env: "TA_RULES=size>=300K:cold;size<=1K:hot",
			script: "/guest/plain " + blocks,
			judge: func(t *testing.T, r *results) {
				on([]int64{64}, 0)(t, r)
				on([]int64{3000, 40000, 300000}, 1)(t, r)
				on([]int64{1000000, 6000000}, 2)(t, r)
			}},
		check{name: "rules by program", env: "TA_RULES=program=pla?n:cold;size>=1:hot",
			script: "/guest/plain " + blocks,
			judge:  on(blockSizes, 2)},
		check{name: "nodes by hand",
			env: "TA_NODE_FAST=2 TA_NODE_NORMAL=0 TA_NODE_SLOW=1 " +
				"TA_RULES=size<=1K:hot;size>=1M:cold",
			script: "/guest/plain 64x2000 3000x500 2000000x5",
			judge: func(t *testing.T, r *results) {
				on([]int64{64}, 2)(t, r)
				on([]int64{3000}, 0)(t, r)
				on([]int64{2000000}, 1)(t, r)
				numaBackend(t, r, "plain.json", []int{2}, []int{0}, []int{1})
			}},
		check{name: "hints", script: "/guest/known hints", judge: func(t *testing.T, r *results) {
			for hint, tier := range map[string]string{"hot": "fast", "warm": "normal",
				"cold": "slow", "pin_fast": "fast", "prefer_fast": "fast"} {
				node := map[string]int{"fast": 0, "normal": 1, "slow": 2}[tier]
				rows := r.numbers(t, hint+" "+tier)
				if len(rows) != 4 {
					t.Errorf("%d sizes of %s are %s", len(rows), hint, tier)
				}
				for _, pages := range rows {
					if sum := pages[0] + pages[1] + pages[2] + pages[3]; pages[node] != sum {
						t.Errorf("%s: pages %v", hint, pages)
					}
				}
			}
		}},
		check{name: "a stranger", env: "TA_DEFAULT_HINT=cold", script: perlScript,
			judge: judgePerl},
		check{name: "report", script: "/guest/known report", judge: judgeReport},
	))
}

// spreadChecks: automatic nodes beside some that are named, and tiers of several nodes.
func spreadChecks() []check {
	return []check{
		{name: "no settings", script: "/guest/plain " + blocks,
			judge: both(on(blockSizes, 0), func(t *testing.T, r *results) {
				numaBackend(t, r, "plain.json", []int{0}, []int{0}, []int{1, 2})
			})},
		{name: "one tier by hand", env: "TA_NODE_FAST=1 TA_DEFAULT_HINT=hot",
			script: "/guest/plain " + blocks,
			judge: both(on(blockSizes, 1), func(t *testing.T, r *results) {
				numaBackend(t, r, "plain.json", []int{1}, []int{0}, []int{2})
			})},
		{name: "nodes shared in part", env: "TA_NODE_NORMAL=0-1 TA_NODE_SLOW=1-2",
			script: "/guest/plain 64x10",
			stderr: line +
				`SLOW="1-2": expected the nodes of TA_NODE_NORMAL (0-1) or none of them; using 2` +
				"\n",
			judge: func(t *testing.T, r *results) {
				numaBackend(t, r, "plain.json", []int{0, 1}, []int{0, 1}, []int{2})
			}},
		{name: "interleaved", env: "TA_NODE_NORMAL=interleave:0,2",
			script: "/guest/plain 6000000x6", judge: ratio(0, 2, 1)},
		{name: "weighted", env: "TA_NODE_NORMAL=weighted:1,2", script: `
			weights=/sys/kernel/mm/mempolicy/weighted_interleave
			echo 3 >$weights/node1 && echo 1 >$weights/node2 && /guest/plain 6000000x6
			status=$?; echo >$weights/node1; echo >$weights/node2;
				exit $status`, judge: ratio(1, 2, 3)},
		{name: "report of nodes that are shared",
			env: "TA_NODE_FAST=0-1 TA_NODE_NORMAL=interleave:0,1", script: "/guest/known report",
			judge: judgeReport},
		{name: "simulated", env: "TA_USE_LIBNUMA=0 TA_DEFAULT_HINT=cold",
			script: "/guest/plain " + blocks,
			judge: func(t *testing.T, r *results) {
				for _, a := range r.blockAreas(t, 0) {
					if a.policy != "default" {
						t.Errorf("policy %s", a.policy)
					}
				}
				if s := r.stats(t, "plain.json"); s.Backend != "simulated" ||
					s.Tiers["slow"].Nodes == nil || len(s.Tiers["slow"].Nodes) != 0 ||
					s.Tiers["slow"].Peak < 25*mib || !slices.Equal(s.Nodes, []int{0, 1, 2}) {
					t.Errorf("%+v %+v", s, s.Tiers["slow"])
				}
			}},
	}
}

// ratio judges a run of plain.c with large blocks only: the first node has so many times
// as much as the second, and there is nothing else. Pages of other threads and the ends of
// blocks make a difference of some pages.
func ratio(first, second int, times int64) func(*testing.T, *results) {
	return func(t *testing.T, r *results) {
		t.Helper()
		pages := r.numbers(t, "6000000")[0]
		all := pages[0] + pages[1] + pages[2]
		if diff := pages[first] - times*pages[second]; pages[first]+pages[second] != all ||
			diff > 64 || diff < -64 || all < 8000 {
			t.Errorf("pages %v, wanted %d to 1 on nodes %d and %d", pages, times, first, second)
		}
	}
}

// A program that nobody here compiled, looked at from outside.
const perlScript = `
	: >ready # grep may look before the program has begun
	/guest/perl -e '$| = 1; $x = "a" x 30e6; @y = map { "$_" x 20 } 1..100000;
		print "ready\n"; sleep 90' >ready &
	i=0
	while ! grep -q ready ready && [ $i -lt 300 ]; do i=$((i + 1)); usleep 100000; done
	LD_PRELOAD= /guest/tierallocctl stats --nodes $! --json \
		--library /guest/libtieralloc.so >heapnodes
	cat /proc/$!/maps >maps && cat /proc/$!/numa_maps >numa_maps && kill $!`

func judgePerl(t *testing.T, r *results) {
	var ours []area
	stray := int64(0)
	for _, a := range r.areas(t) {
		if a.policy == "prefer(many)=balancing:2" {
			ours = append(ours, a)
		} else if slices.ContainsFunc(a.words,
			func(w string) bool { return strings.HasPrefix(w, "anon=") }) {
			stray += a.bytes[0] + a.bytes[1] + a.bytes[2]
		}
	}
	onlyOn(t, ours, 2)
	if got := sum(ours)[2]; got < 40*mib || stray > 3*mib {
		t.Errorf("%s on node 2, %s elsewhere:\n%s", kib(got), kib(stray), r.read(t, "numa_maps"))
	}
	var told struct {
		Rows map[string]map[int]int64 `json:"bytes_per_node"`
	}
	if err := json.Unmarshal([]byte(r.read(t, "heapnodes")), &told); err != nil {
		t.Fatalf("stats --nodes: %v: %s", err, r.stdout)
	}
	if got := told.Rows["slow"]; len(got) != 1 || got[2] != sum(ours)[2] {
		t.Errorf("stats --nodes: %v, not %d bytes on node 2", told.Rows, sum(ours)[2])
	}
}

// judgeReport compares bytes_per_node with numa_maps: of each tier, where its policy
// tells whose a mapping is, and of all tiers together.
func judgeReport(t *testing.T, r *results) {
	s := r.stats(t, "report.json")
	if s.Sampled || !slices.Equal(s.Nodes, []int{0, 1, 2}) {
		t.Errorf("sampled: %v, nodes %v", s.Sampled, s.Nodes)
	}
	byPolicy := map[string]map[int]int64{}
	kernel := map[int]int64{}
	for _, a := range r.areas(t) {
		if a.policy == "default" {
			continue
		}
		if byPolicy[a.policy] == nil {
			byPolicy[a.policy] = map[int]int64{}
		}
		for node, n := range a.bytes {
			byPolicy[a.policy][node] += n
			kernel[node] += n
		}
	}
	for _, tier := range s.Tiers {
		total := int64(0)
		for _, n := range tier.PerNode {
			total += n
		}
		if total > tier.Current || total < tier.Current/2 {
			t.Errorf("%s on the nodes %v of %s charged", kib(total), tier.Nodes, kib(tier.Current))
		}
	}
	report := s.perNode()
	for node := range 3 {
		if report[node] != kernel[node] {
			t.Errorf("node %d: %s by the report, %s by numa_maps", node, kib(report[node]),
				kib(kernel[node]))
		}
	}
	slow := s.Tiers["slow"].PerNode
	for node := range 3 {
		if got := byPolicy["prefer(many)=balancing:2"][node]; got != slow[node] {
			t.Errorf("slow tier, node %d: %s by the report, %s by numa_maps", node, kib(slow[node]),
				kib(got))
		}
	}
	judgeSample(t, r.stats(t, "sample.json"), kernel)
}

// judgeSample: a report made from a sample of the pages says so, and gives each node its part of
// them within five points in a hundred.
func judgeSample(t *testing.T, s *stats, kernel map[int]int64) {
	t.Helper()
	if !s.Sampled || !slices.Equal(s.Nodes, []int{0, 1, 2}) {
		t.Errorf("sampled: %v, nodes %v", s.Sampled, s.Nodes)
	}
	all := kernel[0] + kernel[1] + kernel[2]
	report := s.perNode()
	for node := range 3 {
		if off := 100 * (report[node] - kernel[node]) / all; off > 5 || off < -5 {
			t.Errorf("node %d: %s by a sample, %s of %s by numa_maps", node, kib(report[node]),
				kib(kernel[node]), kib(all))
		}
		t.Logf("node %d: %s by a sample, %s of %s by numa_maps", node, kib(report[node]),
			kib(kernel[node]), kib(all))
	}
}
