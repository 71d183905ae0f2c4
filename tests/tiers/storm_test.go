package tiers_test

import (
	"fmt"
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
		{"TA_ON_HARDCAP=fail", "TA_PURGE_DELAY=0"},
		{"TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=20M", "TA_NORMAL_SOFT=24M", "TA_MIGRATE_BW=0"},
		{"TA_ON_SOFTCAP=reroute", "TA_FAST_SOFT=20M", "TA_RULES=size=100-900:prefer_fast;thread=none:hot", "TA_HUGEPAGES=thp"},
	} {
		t.Run(strings.Join(env, ","), func(t *testing.T) {
			for _, name := range tierNames {
				env = append(env, fmt.Sprintf("TA_%s_HARD=%dM", strings.ToUpper(name), hard))
			}
			r := preloaded(t, env, prog, "2500", fmt.Sprint(i+1), fmt.Sprint(hard), fmt.Sprint(hard), fmt.Sprint(hard))
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
				if name := tierNames[i]; name != "normal" && x.live() != 0 || x.Current > 2*mib || x.Violations == 0 {
					t.Errorf("%s, when all is freed: %d bytes live, %d charged, %d violations before", name, x.live(), x.Current, x.Violations)
				}
			}
		})
	}
}
