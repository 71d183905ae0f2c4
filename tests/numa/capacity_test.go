package numa

import (
	"fmt"
	"strings"
	"testing"
)

// capacityChecks: soft and hard caps, where memory really goes.
func capacityChecks() []check {
	const cap = 16 * mib
	within := func(what string, got, low, high int64) error {
		if got < low || got > high {
			return fmt.Errorf("%s: %s, not %s to %s", what, kib(got), kib(low), kib(high))
		}
		return nil
	}
	// tiers judges the census of known.c: bytes in the tiers, and how many of them.
	tiers := func(line int, low, high [3]int64) func(*testing.T, *results) {
		return func(t *testing.T, r *results) {
			t.Helper()
			got := r.numbers(t, "bytes")[line]
			for i, name := range []string{"fast", "normal", "slow"} {
				if err := within(name, got[i], low[i], high[i]); err != nil {
					t.Error(err)
				}
			}
		}
	}
	capped := func(t *testing.T, r *results) {
		t.Helper()
		s := r.stats(t, "plain.json").Tiers["fast"]
		node := sum(r.blockAreas(t, 0))[0]
		if s.Peak > cap || s.Peak < cap/2 || node > cap || node < cap/2 {
			t.Errorf("peak %s, on the node %s, the cap is %s", kib(s.Peak), kib(node), kib(cap))
		}
		onlyOn(t, r.blockAreas(t, 0), 0, 1)
	}
	const lots = "1000x3000 30000x100 300000x20 2000000x20"
	const demote = "TA_FAST_SOFT=16M TA_ON_SOFTCAP=demote TA_DEFAULT_HINT="
	// 40 blocks of 1000 KiB: at most 16 MiB stay, and at least what fits beside the 7 MiB that
	// go on being used meanwhile. Of the 20 that are kept in the end, those go back that fit into
	// seven eighths of the cap.
	moved := func(t *testing.T, r *results) {
		t.Helper()
		const block = 1000 << 10
		const all, kept, least = 40 * block, 20 * block, (cap/8*7 - 7<<20) / block * block
		tiers(0, [3]int64{least, all - cap, 0}, [3]int64{cap, all - least, 0})(t, r)
		tiers(1, [3]int64{least, 0, 0}, [3]int64{cap, kept - least, 0})(t, r)
		m := r.stats(t, "known.json").Tiers["fast"].Migrations
		if m.Attempted == 0 || m.Moved*4096 < all-cap || m.Failed != 0 {
			t.Errorf("migrations %+v", m)
		}
	}
	fewMoved := tiers(0, [3]int64{cap / 4, 4000*10240 - cap, 0},
		[3]int64{cap, 4000*10240 - cap/4, 0})
	full := [3]int64{cap, cap, cap}
	most := [3]int64{cap * 7 / 8, cap * 7 / 8, cap * 7 / 8}
	return []check{
		{name: "soft reroutes", env: "TA_FAST_SOFT=16M TA_DEFAULT_HINT=prefer_fast",
			script: "/guest/plain " + lots,
			judge: both(capped, func(t *testing.T, r *results) {
				if s := r.stats(t, "plain.json").Tiers["fast"]; s.Rerouted == 0 ||
					s.Violations != 0 {
					t.Errorf("%+v", s)
				}
			})},
		{name: "soft warns", env: "TA_FAST_SOFT=1M TA_ON_SOFTCAP=warn TA_DEFAULT_HINT=hot",
			script: "/guest/plain " + lots,
			judge: func(t *testing.T, r *results) {
				onlyOn(t, r.blockAreas(t, 0), 0)
				if s := r.stats(t, "plain.json").Tiers["fast"]; s.Exceeded == 0 || s.Rerouted != 0 {
					t.Errorf("%+v", s)
				}
			}},
		{name: "hard routes", env: "TA_FAST_HARD=16M TA_DEFAULT_HINT=hot",
			script: "/guest/plain " + lots,
			judge: both(capped, func(t *testing.T, r *results) {
				if s := r.stats(t, "plain.json").Tiers["fast"]; s.RoutedSlow == 0 ||
					s.Violations == 0 || s.Refused != 0 {
					t.Errorf("%+v", s)
				}
			})},
		{name: "hard fails", env: "TA_FAST_HARD=16M TA_ON_HARDCAP=fail TA_DEFAULT_HINT=hot",
			script: "/guest/plain " + lots, status: 12},
		{name: "hard fails in one tier",
			env:    "TA_FAST_HARD=16M TA_ON_HARDCAP=fail TA_DEFAULT_HINT=hot",
			script: "/guest/known full 500",
			judge:  tiers(0, [3]int64{most[0]}, [3]int64{cap})},
		{name: "hard in all tiers",
			env:    "TA_FAST_HARD=16M TA_NORMAL_HARD=16M TA_SLOW_HARD=16M TA_DEFAULT_HINT=hot",
			script: "/guest/known full 500", judge: tiers(0, most, full)},
		{name: "hard from the middle", env: "TA_NORMAL_HARD=16M TA_SLOW_HARD=16M",
			script: "/guest/known full 500",
			judge:  tiers(0, [3]int64{0, most[1], most[2]}, [3]int64{0, cap, cap})},
		{name: "demote hot", env: demote + "hot", script: "/guest/known demote 40 1000",
			judge: moved},
		{name: "demote prefer_fast", env: demote + "prefer_fast",
			script: "/guest/known demote 40 1000", judge: moved},
		{name: "demote small blocks", env: demote + "prefer_fast",
			script: "/guest/known demote 4000 10", judge: fewMoved},
		{name: "demote in the background", env: demote + "hot TA_BACKGROUND=1",
			script: "/guest/known demote 40 1000 idle", judge: moved},
		{name: "move", script: "/guest/known move", judge: says("moved")},
		{name: "move home", env: "TA_NORMAL_SOFT=8M TA_ON_SOFTCAP=demote",
			script: "/guest/known home", judge: says("at home")},
		{name: "move without mappings", judge: says("as far as it goes"),
			script: "echo 600 >/proc/sys/vm/max_map_count; /guest/known mappings; s=$?; echo " +
				"65530 >/proc/sys/vm/max_map_count; (exit $s)"},
		{name: "move one of many",
			script: "/guest/known neighbours 300 && /guest/known neighbours 5000",
			judge:  says("in their places")},
		// The fast node has 256 MiB, of which the kernel and the files of this machine have some.
		// Memory with files that were read before is not free.
		{name: "pin large blocks", judge: pinned(20000), script: sayFree + "/guest/known pin 20000"},
		{name: "pin blocks", judge: pinned(1000), script: sayFree + "/guest/known pin 1000"},
		{name: "pin under a cap", env: "TA_FAST_HARD=16M",
			script: "/guest/known pin 500 && /guest/known pin 40",
			judge: func(t *testing.T, r *results) {
				rounds := r.numbers(t, "pinned")
				if len(rounds) != 4 {
					t.Errorf("%d rounds", len(rounds))
				}
				for _, pages := range rounds {
					if err := within("pinned", pages[0]*4096, cap/2, cap); err != nil ||
						pages[1]+pages[2]+pages[3] != 0 {
						t.Error(err, pages)
					}
				}
			}},
		{name: "nobody was killed", plain: true,
			script: "! dmesg | grep -iE 'out of memory|killed process'"},
		{name: "facts", plain: true, script: "/guest/facts", judge: says("as ever")},
	}
}

// says judges the last line of the output.
func says(line string) func(*testing.T, *results) {
	return func(t *testing.T, r *results) {
		t.Helper()
		if r.stdout != line+"\n" && !strings.HasSuffix(r.stdout, "\n"+line+"\n") {
			t.Errorf("no %q at the end:\n%s", line, r.stdout)
		}
	}
}

// sayFree prints how many KiB of the fast node are free. What checks before have written lies in
// memory, too.
const sayFree = "echo 3 >/proc/sys/vm/drop_caches && " +
	"sed -n 's/.*MemFree: *\\([0-9]*\\) kB/free \\1/p' /sys/devices/system/node/node0/meminfo && "

// pinned: all that was free of the node but less than a block of so many KiB, and what the kernel
// keeps; twice, and nothing elsewhere.
func pinned(block int64) func(*testing.T, *results) {
	const kept = 20 << 10
	return func(t *testing.T, r *results) {
		t.Helper()
		rounds, free := r.numbers(t, "pinned"), r.numbers(t, "free")[0][0]
		if len(rounds) != 2 {
			t.Fatalf("%d rounds", len(rounds))
		}
		for _, pages := range rounds {
			if pages[0]*4 < free-block-kept || pages[1]+pages[2]+pages[3] != 0 {
				t.Errorf("pages %v, with %d KiB free before", pages, free)
			}
		}
	}
}
