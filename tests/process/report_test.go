package process

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// nodeReport is what a report says of where memory is.
type nodeReport struct {
	Nodes   []int
	Sampled bool `json:"bytes_per_node_sampled"`
	Tiers   map[string]struct {
		PerNode map[int]int64 `json:"bytes_per_node"`
	}
}

// sum is what all tiers have on all nodes.
func (r *nodeReport) sum() (n int64) {
	for _, tier := range r.Tiers {
		for _, bytes := range tier.PerNode {
			n += bytes
		}
	}
	return n
}

func readNodes(t *testing.T, text []byte) (r nodeReport) {
	t.Helper()
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v: %s", err, clip(string(text)))
	}
	return r
}

// pagesAsked runs a case of report.c and returns its output, and how many pages each process has
// asked the kernel of, by the process's number.
func pagesAsked(t *testing.T, prog, name, file string) (out string, asked map[string]int) {
	t.Helper()
	trace := filepath.Join(t.TempDir(), "trace")
	r := testlib.Run(t, testlib.Cmd{Args: strace(testlib.Lib(t), "move_pages", "", trace, prog,
		name),
		Env: append(append([]string{}, quiet...), "TA_STATS_FILE="+file)})
	clean(t, r)
	text, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	asked = map[string]int{}
	for _, m := range regexp.MustCompile(`(?m)^(\d+) +move_pages\(\d+, (\d+)`).FindAllStringSubmatch(string(text), -1) {
		n, _ := strconv.Atoi(m[2])
		asked[m[1]] += n
	}
	return r.Stdout, asked
}

func total(asked map[string]int) (n int) {
	for _, pages := range asked {
		n += pages
	}
	return n
}

// TestReportAsks: of how many pages a report asks the kernel does not depend on how many there are,
// and what it scales is right. ta_get_stats and forked children ask of none; who wants to know of
// each page can.
func TestReportAsks(t *testing.T) {
	t.Parallel()
	needStrace(t)
	prog := testlib.CC(t, "report.c")
	const touched, few, all = 4 * 36 << 20, 3 * 2048, 4 * 48 << 20 / 4096
	t.Run("json", func(t *testing.T) {
		out, asked := pagesAsked(t, prog, "json", "")
		r := readNodes(t, []byte(out))
		if n := total(asked); n == 0 || n > few || !r.Sampled || len(r.Nodes) == 0 {
			t.Errorf("%d pages asked of, sampled %v, nodes %v", n, r.Sampled, r.Nodes)
		}
		if got := r.sum(); got < touched*90/100 || got > touched*110/100 {
			t.Errorf("%d bytes, not %d", got, touched)
		}
	})
	t.Run("exact", func(t *testing.T) {
		out, asked := pagesAsked(t, prog, "exact", "")
		r := readNodes(t, []byte(out))
		if n := total(asked); n < all || r.Sampled || r.sum() < touched || r.sum() > touched+4<<20 {
			t.Errorf("%d pages asked of, sampled %v, %d bytes", n, r.Sampled, r.sum())
		}
	})
	t.Run("ta_get_stats", func(t *testing.T) {
		if _, asked := pagesAsked(t, prog, "stats", ""); len(asked) != 0 {
			t.Errorf("pages asked of: %v", asked)
		}
	})
	t.Run("forked", func(t *testing.T) {
		dir := t.TempDir()
		out, asked := pagesAsked(t, prog, "child", filepath.Join(dir, "%p"))
		pid := strings.TrimSpace(out)
		if asked[pid] != 0 || len(asked) != 1 || total(asked) > few {
			t.Errorf("pages asked of: %v; the child is %s", asked, pid)
		}
		text, err := os.ReadFile(filepath.Join(dir, pid))
		if err != nil {
			t.Fatal(err)
		}
		if r := readNodes(t, text); len(r.Nodes) != 0 || r.Sampled {
			t.Errorf("the child's report has %+v", r)
		}
		validReport(t, filepath.Join(dir, pid))
	})
}

// TestReportReads: of a large heap whose pages are full, a report reads hardly more than of a small
// one, and nor does a forked child, to which reading memory is dear: it is new to it.
func TestReportReads(t *testing.T) {
	prog := testlib.CC(t, "report.c")
	read := func(name string) (kib [2]int) {
		r := preloaded(t, nil, prog, name)
		clean(t, r)
		if n, _ := fmt.Sscan(r.Stdout, &kib[0], &kib[1]); n != 2 {
			t.Fatalf("%s: %s", name, r.Stdout)
		}
		return kib
	}
	little, much := read("reads-little"), read("reads-much")
	const most = 600 // KiB more; the descriptors of its pages are 1.5 MiB
	for i, what := range []string{"ta_get_stats", "a forked child"} {
		if much[i] > little[i]+most {
			t.Errorf("%s reads %d KiB with 512 MiB of blocks, %d KiB with 1 MiB", what, much[i],
				little[i])
		}
	}
}
