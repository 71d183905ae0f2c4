package tiers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHardCapUnderThreads: whatever 16 threads do at once, no sample of what a tier is
// charged with is above its hard cap, and, as all three have one, what is resident is
// not above their sum.
func TestHardCapUnderThreads(t *testing.T) {
	prog := compile(t, "capstorm.c")
	const hard = 32 // MiB, of each tier
	// Resident beside the blocks: the threads' stacks, and what the library keeps of
	// heaps, pages and addresses.
	const aside = 10 << 10 // KiB
	for i, env := range [][]string{
		{"TA_ON_HARDCAP=route_slow"},
		{"TA_ON_HARDCAP=route_slow", "TA_PURGE_DELAY=1ms"}, // with blocks larger than the caps
		{"TA_ON_HARDCAP=fail", "TA_PURGE_DELAY=0"},
		{"TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=20M", "TA_NORMAL_SOFT=24M", "TA_MIGRATE_BW=0"},
		{"TA_ON_SOFTCAP=reroute", "TA_FAST_SOFT=20M",
			"TA_RULES=size=100-900:prefer_fast;thread=none:hot"},
	} {
		t.Run(strings.Join(env, ","), func(t *testing.T) {
			for _, name := range tierNames {
				env = append(env, fmt.Sprintf("TA_%s_HARD=%dM", strings.ToUpper(name), hard))
			}
			largest := 12
			if i == 1 {
				largest = 5 * hard / 2
			}
			r := preloaded(t, env, prog, "700", fmt.Sprint(i+1), fmt.Sprint(hard),
				fmt.Sprint(hard), fmt.Sprint(hard), fmt.Sprint(largest))
			clean(t, r)
			first, json, _ := strings.Cut(r.Stdout, "\n")
			n := numbers(t, first)
			t.Logf("samples, most of each tier, most resident in KiB, refused: %v", n)
			for _, most := range n[1:4] {
				if most < hard*mib*3/4 {
					t.Errorf("a tier never had more than %d bytes: the caps were not reached", most)
				}
			}
			if n[0] < 5 || n[5] == 0 {
				t.Errorf("%d samples, %d requests refused", n[0], n[5])
			}
			if n[4] > 3*hard<<10+aside || n[4] < hard<<10 {
				t.Errorf("up to %d KiB are resident", n[4])
			}
			quiet := checked(t, []byte(json))
			for i, x := range quiet.tiers() {
				if x.live() > 64*kib || x.Current > 2*mib || x.Violations == 0 {
					t.Errorf("%s, when all is freed: %d bytes live, %d charged, %d violations "+
						"before", tierNames[i], x.live(), x.Current, x.Violations)
				}
			}
		})
	}
}

// TestChildrenOfStorm: a child that is forked while its parent's threads allocate is
// charged with what it has, not with what they were about to get or to give back.
func TestChildrenOfStorm(t *testing.T) {
	r := preloaded(t, []string{"TA_FAST_HARD=32M", "TA_NORMAL_HARD=32M", "TA_SLOW_HARD=32M",
		"TA_ON_HARDCAP=fail", "TA_PURGE_DELAY=0"},
		compile(t, "forkcaps.c"), "40")
	clean(t, r)
	if n := numbers(t, r.Stdout); n[0] != 0 {
		t.Errorf("%d of 40 children are charged with other than what their heap has, one with %d "+
			"bytes more", n[0], n[1])
	}
}

// TestThreadsComeAndGo: a thread that ends leaves its heaps to the next, whatever it
// did with them, and nothing in them.
func TestThreadsComeAndGo(t *testing.T) {
	for _, what := range []string{"hints", "nothing", "frees", "resizes"} {
		t.Run(what, func(t *testing.T) {
			r := preloaded(t, nil, compile(t, "comego.c"), "300", what)
			clean(t, r)
			if n := numbers(t, r.Stdout); n[0] > 1 || n[0]+n[1] > 2 || n[2] > mib {
				t.Errorf("%d heaps of running threads, %d of none, %d bytes", n[0], n[1], n[2])
			}
		})
	}
}

// TestBackgroundAmidThreads: the control plane purges and moves while threads start and
// end, and nobody waits for it for ever.
func TestBackgroundAmidThreads(t *testing.T) {
	prog := compile(t, "servant.c")
	log := filepath.Join(t.TempDir(), "log")
	env := []string{"TA_BACKGROUND=1", "TA_PURGE_DELAY=1ms", "TA_LOG=debug", "TA_LOG_FILE=" + log,
		"TA_NORMAL_SOFT=16M", "TA_ON_SOFTCAP=demote", "TA_MIGRATE_BW=0", "GOGC=1"}
	r := preloaded(t, env, prog, "1500")
	clean(t, r)
	if n := numbers(t, r.Stdout); n[0] < 100 {
		t.Errorf("%d threads came and went", n[0])
	}
	lines, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(lines), `"memory purged"`) ||
		!strings.Contains(string(lines), `"span moved"`) {
		t.Errorf("the control plane did nothing: %v", err)
	}
}
