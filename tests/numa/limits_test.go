package numa

import (
	"fmt"
	"slices"
	"testing"
)

// inCpuset runs a command where only some nodes are open.
func inCpuset(nodes, command string) string {
	return fmt.Sprintf(`
		cd /sys/fs/cgroup && echo +cpuset >cgroup.subtree_control && mkdir -p some &&
			echo %s >some/cpuset.mems || exit 99
		echo $$ >some/cgroup.procs && cd - >/dev/null || exit 99
		%s
		status=$?; echo $$ >/sys/fs/cgroup/cgroup.procs; exit $status`, nodes, command)
}

const (
	mayUse = `": expected nodes with memory that this process may use (`
	line   = "tieralloc: TA_NODE_"
)

// inMemoryGroup runs a command in a control group of version 2 that may have so many MiB, once as it
// is and once with unused memory that no time gives back.
func inMemoryGroup(mib int, command string) string {
	return fmt.Sprintf(`
		cd /sys/fs/cgroup && echo +memory >cgroup.subtree_control && mkdir small || exit 99
		echo %d >small/memory.max && cd - >/dev/null || exit 99
		for delay in '' 3600s; do
			TA_PURGE_DELAY=$delay sh -c \
				'echo $$ >/sys/fs/cgroup/small/cgroup.procs && exec "$0"' %s || exit
		done`, mib<<20, command)
}

// limitChecks: nodes that are not there, or closed to the process, and tiers that are
// only simulated.
func limitChecks() []check {
	simulated := func(file string) func(*testing.T, *results) {
		return func(t *testing.T, r *results) {
			t.Helper()
			if s := r.stats(t, file); s.Backend != "simulated" {
				t.Errorf("backend %q", s.Backend)
			}
		}
	}
	return []check{
		{name: "no such node", env: "TA_NODE_SLOW=1,7 TA_DEFAULT_HINT=cold",
			script: "/guest/plain " + blocks,
			stderr: line + `SLOW="1,7` + mayUse + "0-2), node 7 does not exist; using 1-2\n",
			judge:  on(blockSizes, 1, 2)},
		{name: "no such node, strictly", env: "TA_NODE_SLOW=7 TA_STRICT=1",
			script: "/guest/plain " + blocks, status: 78,
			stderr: line + `SLOW="7` + mayUse + "0-2), node 7 does not exist; using 1-2\n"},
		{name: "nodes and no libnuma", env: "TA_NODE_FAST=2 TA_USE_LIBNUMA=0",
			script: "/guest/plain 64x10",
			stderr: line +
				`FAST="2": expected no nodes beside TA_USE_LIBNUMA=0; using simulated tiers` + "\n",
			judge: simulated("plain.json")},
		{name: "closed node", env: "TA_NODE_SLOW=2 TA_DEFAULT_HINT=cold",
			script: inCpuset("0-1", "/guest/plain "+blocks),
			stderr: line + `SLOW="2` + mayUse +
				"0-1), node 2 is not in this process's cpuset; using 1\n",
			judge: on(blockSizes, 1)},
		{name: "closed node, strictly", env: "TA_NODE_SLOW=2 TA_STRICT=1",
			script: inCpuset("0-1", "/guest/plain "+blocks), status: 78,
			stderr: line + `SLOW="2` + mayUse +
				"0-1), node 2 is not in this process's cpuset; using 1\n"},
		{name: "two nodes open", script: inCpuset("1-2", "/guest/known hints"),
			judge: func(t *testing.T, r *results) {
				numaBackend(t, r, "known.json", []int{1}, []int{1}, []int{2})
				for _, pages := range append(r.numbers(t, "pin_fast fast"),
					r.numbers(t, "warm normal")...) {
					if pages[0]+pages[2]+pages[3] != 0 || pages[1] == 0 {
						t.Errorf("pages %v", pages)
					}
				}
			}},
		{name: "one node open", env: "TA_DEFAULT_HINT=cold",
			script: inCpuset("1", "/guest/plain "+blocks),
			judge:  both(simulated("plain.json"), on(blockSizes, 1))},
		{name: "phases of 40 MiB in a control group of 60 MiB",
			script: inMemoryGroup(60, "/guest/phases")},
		{name: "mbind not allowed", env: "TA_NODE_SLOW=2",
			script: "/guest/refuse /guest/plain 64x10",
			stderr: line +
				`SLOW="2": expected a system that lets this process bind memory (mbind failed with errno 1); using simulated tiers` + "\n",
			judge: simulated("plain.json")},
		{name: "mbind not allowed, nobody asked", script: "/guest/refuse /guest/plain 64x10",
			judge: simulated("plain.json")},
	}
}

// hugeChecks: the machine has some huge pages of 2 MiB, shared out over its nodes.
func hugeChecks() []check {
	// huge are the areas of the blocks, split by whether they are of huge pages.
	huge := func(t *testing.T, r *results) (large, small []area) {
		t.Helper()
		for _, a := range r.blockAreas(t, 0) {
			if slices.Contains(a.words, "kernelpagesize_kB=2048") {
				large = append(large, a)
			} else {
				small = append(small, a)
			}
		}
		return large, small
	}
	return []check{
		{name: "huge pages", env: "TA_HUGEPAGES=2M TA_DEFAULT_HINT=cold",
			script: "/guest/plain 4000000x2", judge: func(t *testing.T, r *results) {
				large, small := huge(t, r)
				onlyOn(t, large, 2)
				if sum(large)[2] < 8*mib || len(small) != 0 {
					t.Errorf("%v of huge pages, others %v", sum(large), sum(small))
				}
				if s := r.stats(t, "plain.json").Tiers["slow"]; s.HugePages != "2M" ||
					s.Fallbacks != 0 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "huge pages of one tier",
			env:    "TA_HUGEPAGES=fast:2M,slow:off TA_RULES=size>=6M:hot;size>=4M:cold",
			script: "/guest/plain 7000000x1 5000000x1", judge: func(t *testing.T, r *results) {
				for _, a := range r.blockAreas(t, 7000000) {
					if !slices.Contains(a.words, "kernelpagesize_kB=2048") || a.bytes[0] == 0 {
						t.Errorf("fast: %v %v", a.words, a.bytes)
					}
				}
				for _, a := range r.blockAreas(t, 5000000) {
					if !slices.Contains(a.words, "kernelpagesize_kB=4") || a.bytes[2] == 0 {
						t.Errorf("slow: %v %v", a.words, a.bytes)
					}
				}
			}},
		{name: "on to huge pages", env: "TA_HUGEPAGES=slow:2M TA_NORMAL_SOFT=1M TA_SLOW_HARD=8M",
			script: "/guest/plain 60000x200 3000000x1",
			judge: func(t *testing.T, r *results) {
				large, _ := huge(t, r)
				onlyOn(t, large, 2)
				s := r.stats(t, "plain.json").Tiers["slow"]
				if s.Peak > 8*mib || sum(large)[2] == 0 || sum(large)[2] > s.Peak {
					t.Errorf("%v of huge pages, at most %d bytes charged", sum(large), s.Peak)
				}
			}},
		{name: "on from huge pages",
			env:    "TA_HUGEPAGES=fast:2M,normal:off TA_FAST_HARD=8M TA_DEFAULT_HINT=hot",
			script: "/guest/plain 20000000x1",
			judge: func(t *testing.T, r *results) {
				_, small := huge(t, r)
				onlyOn(t, small, 1)
				if sum(small)[1] < 20000000 {
					t.Errorf("%v of ordinary pages", sum(small))
				}
			}},
		{name: "pin beside huge pages", env: "TA_HUGEPAGES=fast:2M TA_FAST_HARD=32M",
			script: "/guest/known pin 60", judge: func(t *testing.T, r *results) {
				for _, pages := range r.numbers(t, "pinned") {
					if pages[0]*4096 < 28*mib || pages[1]+pages[2]+pages[3] != 0 {
						t.Errorf("pinned pages: %v", pages)
					}
				}
			}},
		{name: "not enough huge pages", env: "TA_HUGEPAGES=2M", script: "/guest/plain 30000000x6",
			judge: func(t *testing.T, r *results) {
				_, small := huge(t, r)
				if s := r.stats(t, "plain.json").Tiers["normal"]; s.Fallbacks == 0 ||
					len(small) == 0 {
					t.Errorf("%d fallbacks, %v of ordinary pages", s.Fallbacks, sum(small))
				}
				onlyOn(t, small, 1)
			}},
		{name: "transparent huge pages", env: "TA_HUGEPAGES=thp", script: "/guest/plain 20000000x3",
			judge: func(t *testing.T, r *results) {
				on([]int64{20000000}, 1)(t, r)
				if huge := r.hugeBytes(t); huge < 40*mib {
					t.Errorf("%d bytes of huge pages", huge)
				}
			}},
	}
}
