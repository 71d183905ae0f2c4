package numa

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fullNodeChecks: the slow node is full while the others have a cap. Two sockets, nodes 0 and 1,
// are FAST and NORMAL, and node 2 is SLOW.
func fullNodeChecks() []check {
	const cap = 32 * mib
	inDRAM := func(t *testing.T, r *results) int64 {
		t.Helper()
		pages := r.numbers(t, "kept")[0]
		return (pages[0] + pages[1]) * 4096
	}
	const run = "/guest/tierallocctl run --library /guest/libtieralloc.so --fast-hard 32M "
	return []check{
		{name: "full slow node, named", plain: true,
			script: "TA_FAST_HARD=32M /guest/tierallocctl check >check\n" + run +
				"/guest/known keep 300 1000 2>summary",
			judge: func(t *testing.T, r *results) {
				if inDRAM(t, r) <= cap {
					t.Errorf("%s in DRAM: node 2 was not full", kib(inDRAM(t, r)))
				}
				finds := func(file, pattern string) {
					text, err := os.ReadFile(filepath.Join(r.dir, file))
					if err != nil || !regexp.MustCompile(pattern).Match(text) {
						t.Errorf("no %q in %s (%v):\n%s", pattern, file, err, text)
					}
				}
				finds("check", `SLOW: no hard cap, and node 2 has \d+ MiB free: .*FAST and NORMAL`)
				finds("summary", `(?m)^~\d+(\.\d+)? MiB of SLOW on node 0-1, where the cap of FAST `+
					`and NORMAL does not count: node 2 was full`)
			}},
		// The cap of SLOW is what check recommends: below what node 2 has free.
		{name: "full slow node, capped", plain: true,
			script: "taskset 1 " + run +
				"--slow-hard 128M /guest/known full 1000 sockets 2>summary\ncat summary",
			judge: func(t *testing.T, r *results) {
				got := r.numbers(t, "bytes")[0]
				if got[0]+got[1] > cap || got[2] > 128*mib {
					t.Errorf("bytes %v", got)
				}
				// census of known.c has found each block on its tier's node.
				if strings.Contains(r.stdout, "was full") {
					t.Error(r.stdout)
				}
			}},
	}
}
