package numa

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// kind is a machine of docs/tiers.md: where the memory of the processors is, and what is faster
// and slower than it.
type kind struct {
	nodes              string // vm.sh's -n
	fast, normal, slow []int  // nodes
	told               string // by what, in topology
}

// The machines that people have.
var kinds = map[string]kind{
	"DRAM and CXL": {"512/2/100/51200 512/0/300/12800", []int{0}, []int{0}, []int{1},
		"the kernel's memory tiers"},
	"two sockets and CXL": {"384/1/100/51200 384/1/100/51200 512/0/300/12800", []int{0, 1},
		[]int{0, 1}, []int{2}, "the kernel's memory tiers"},
	"DRAM and HBM": {"512/2/100/51200 512/0/130/204800", []int{1}, []int{0}, []int{0},
		"the kernel's memory tiers"},
	"DRAM and CXL, unlabeled": {"512/2 512/0", []int{0}, []int{0}, []int{1}, "distance"},
	"one node":                {"768/2", []int{0}, []int{0}, []int{0}, ""},
}

// TestKinds: on each machine memory is where docs/tiers.md says.
func TestKinds(t *testing.T) {
	t.Parallel()
	files := []string{
		testlib.Lib(t) + "=/guest/libtieralloc.so", program(t, "plain"),
		program(t, "churn", "-pthread"), program(t, "known"),
		testlib.Tool(t),
	}
	for name, k := range kinds {
		t.Run(name, func(t *testing.T) {
			g := guest{nodes: k.nodes, files: files, checks: k.checks()}
			if name == "DRAM and CXL" {
				g.checks = append(g.checks, nameChecks()...)
			}
			g.run(t)
		})
	}
}

func (k *kind) checks() []check {
	const limit = 32 * mib
	return []check{
		{name: "topology", plain: true, script: "/guest/tierallocctl topology",
			judge: func(t *testing.T, r *results) {
				if k.told != "" && !strings.Contains(r.stdout, "told apart by "+k.told) {
					t.Errorf("not by %s:\n%s", k.told, r.stdout)
				}
			}},
		// Memory has no policy at all: it is where it would be without the library.
		{name: "plain", script: "/guest/plain " + blocks,
			judge: both(on(blockSizes, k.normal...), func(t *testing.T, r *results) {
				k.backend(t, r)
				for _, a := range r.areas(t) {
					if a.policy != "default" {
						t.Errorf("%x has the policy %s", a.start, a.policy)
					}
				}
			})},
		{name: "fast cap", env: "TA_DEFAULT_HINT=prefer_fast TA_FAST_HARD=32M",
			script: "/guest/plain 1048576x96",
			judge:  func(t *testing.T, r *results) { k.capped(t, r, limit) }},
		{name: "fast cap on plain memory", env: "TA_FAST_HARD=32M",
			script: "/guest/plain 1048576x96", judge: func(t *testing.T, r *results) {
				k.backend(t, r)
				fast, all := k.held(t, r)
				switch {
				case slices.Equal(k.fast, k.normal) && !slices.Equal(k.normal, k.slow): // the same memory
					if fast > limit || fast < limit*3/4 {
						t.Errorf("%s on nodes %v", kib(fast), k.fast)
					}
				case slices.Equal(k.fast, k.slow): // one node: warm memory is not under the cap
				case fast != 0:
					t.Errorf("%s on nodes %v", kib(fast), k.fast)
				}
				if all < 96*mib {
					t.Errorf("%s in all", kib(all))
				}
			}},
		{name: "fast soft cap", env: "TA_DEFAULT_HINT=prefer_fast TA_FAST_SOFT=32M",
			script: "/guest/plain 1048576x96",
			judge:  func(t *testing.T, r *results) { k.capped(t, r, limit) }},
		{name: "slow rule", env: "TA_RULES=size>=1M:cold",
			script: "/guest/plain 3000x500 1048576x32", judge: func(t *testing.T, r *results) {
				on([]int64{3000}, k.normal...)(t, r)
				on([]int64{1048576}, k.slow...)(t, r)
				k.backend(t, r)
			}},
		{name: "pin_fast", env: "TA_DEFAULT_HINT=pin_fast", script: "/guest/plain " + blocks,
			judge: on(blockSizes, k.fast...)},
		{name: "pin_fast under a cap", env: "TA_DEFAULT_HINT=pin_fast TA_FAST_HARD=32M",
			script: "/guest/plain 1048576x96", status: 12},
		{name: "churn", env: "TA_DEFAULT_HINT=prefer_fast TA_FAST_HARD=32M",
			script: fmt.Sprintf("/guest/churn %d %d 75", k.fast[0], len(k.fast)),
			judge:  func(t *testing.T, r *results) { k.churned(t, r, limit) }},
		{name: "check", plain: true, script: "export TA_FAST_HARD=32M; /guest/tierallocctl check",
			judge: func(t *testing.T, r *results) {
				const said = "; TA_FAST_HARD=32M holds for both"
				if want := slices.Equal(k.fast, k.normal) &&
					!slices.Equal(k.normal, k.slow); strings.Contains(r.stdout, said) != want ||
					want && !strings.Contains(r.stdout,
						"FAST and NORMAL are the same memory (node ") {
					t.Errorf("%s", r.stdout)
				}
			}},
	}
}

// nameChecks: two tiers are node 0. Whatever name a block there has, it needs no room twice, and it
// comes back from node 1.
func nameChecks() []check {
	return []check{
		{name: "names", script: "/guest/known names",
			judge: both(says("under every name"), func(t *testing.T, r *results) {
				for _, a := range r.areas(t) {
					if a.policy != "default" {
						t.Errorf("%x has the policy %s", a.start, a.policy)
					}
				}
			})},
		{name: "names under a cap", env: "TA_NORMAL_HARD=30M", script: "/guest/known names",
			judge: says("under every name")},
		{name: "caps that contradict",
			env:    "TA_FAST_HARD=64M TA_NORMAL_HARD=32M TA_DEFAULT_HINT=hot",
			script: "/guest/plain 1048576x96",
			stderr: `tieralloc: TA_FAST_HARD="64M": expected at most TA_NORMAL_HARD="32M", for ` +
				`both tiers are the same memory; using 32M` + "\n",
			judge: func(t *testing.T, r *results) {
				s := r.stats(t, "plain.json")
				if n := sum(r.blockAreas(t, 0))[0]; n > 32*mib || n < 24*mib ||
					!slices.Equal(s.Tiers["fast"].SameMemory, []string{"normal"}) {
					t.Errorf("%s on node 0; %+v", kib(n), s.Tiers["fast"])
				}
			}},
		{name: "run", plain: true,
			script: "/guest/tierallocctl run --library /guest/libtieralloc.so --fast-hard 32M -- " +
				"/guest/plain 1048576x96 2>&1",
			judge: func(t *testing.T, r *results) {
				const line = "\nFAST and NORMAL are the same memory (node 0); the hard cap of 32 " +
					"MiB holds for both\n"
				if !strings.Contains(r.stdout, line) {
					t.Errorf("no %q in\n%s", line, r.stdout)
				}
			}},
	}
}

// backend judges what a report says of the tiers.
func (k *kind) backend(t *testing.T, r *results) {
	t.Helper()
	if slices.Equal(k.fast, k.slow) {
		if s := r.stats(t, "plain.json"); s.Backend != "simulated" {
			t.Errorf("backend %s", s.Backend)
		}
		return
	}
	numaBackend(t, r, "plain.json", k.fast, k.normal, k.slow)
}

// held is what the blocks have on the fast nodes and on all.
func (k *kind) held(t *testing.T, r *results) (fast, all int64) {
	t.Helper()
	for node, n := range sum(r.blockAreas(t, 0)) {
		all += n
		if slices.Contains(k.fast, node) {
			fast += n
		}
	}
	return fast, all
}

// capped: of 96 MiB the cap's are on the fast nodes and the rest on those of the next tier with
// others.
func (k *kind) capped(t *testing.T, r *results, limit int64) {
	t.Helper()
	if slices.Equal(k.fast, k.slow) {
		if s := r.stats(t, "plain.json"); s.Tiers["fast"].Peak > limit ||
			s.Tiers["normal"].Peak < 60*mib {
			t.Errorf("simulated: %+v %+v", s.Tiers["fast"], s.Tiers["normal"])
		}
		return
	}
	next := k.slow
	if !slices.Equal(k.fast, k.normal) {
		next = k.normal
	}
	onlyOn(t, r.blockAreas(t, 0), append(slices.Clone(k.fast), next...)...)
	if fast, all := k.held(t, r); fast > limit || fast < limit*3/4 || all < 96*mib {
		t.Errorf("%s of %s on nodes %v", kib(fast), kib(all), k.fast)
	}
}

// churned: in none of the samples was there more than the cap on the nodes.
func (k *kind) churned(t *testing.T, r *results, limit int64) {
	t.Helper()
	if peak := r.stats(t, "churn.json").Tiers["fast"].Peak; peak > limit {
		t.Errorf("%s charged", kib(peak))
	}
	if slices.Equal(k.fast, k.slow) {
		return // the memory of the other tiers is on the node, too
	}
	var most, last int64
	if _, err := fmt.Sscanf(r.stdout, "most %d last %d\n", &most, &last); err != nil ||
		most > limit || most < limit/2 {
		t.Errorf("at most %s on nodes %v, %v:\n%s", kib(most), k.fast, err, r.stdout)
	}
}
