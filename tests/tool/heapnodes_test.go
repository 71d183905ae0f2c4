package tool

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// nodeSums are the rows of stats --nodes --json, all nodes together.
func nodeSums(t *testing.T, text string) map[string]int64 {
	t.Helper()
	var r struct {
		Rows map[string]map[string]int64 `json:"bytes_per_node"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	sums := map[string]int64{}
	for row, nodes := range r.Rows {
		for _, n := range nodes {
			sums[row] += n
		}
	}
	return sums
}

// TestHeapNodes: what the heap has resident is told to the byte, by tiers, and nothing of what the
// program has mapped.
func TestHeapNodes(t *testing.T) {
	const mib = 1 << 20
	cmd := start(t, preloaded(t, "TA_DEFAULT_HINT=cold"), testlib.CC(t, "hold.c"))
	pid := strconv.Itoa(cmd.Process.Pid)
	r := ctl(t, nil, "stats", "--nodes", pid, "--json", "--library", testlib.Lib(t))
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	sums := nodeSums(t, r.Stdout)
	if n := sums["slow"]; n < 44*mib || n > 46*mib {
		t.Errorf("%d KiB in the slow tier, not a bit more than 44 MiB", n>>10)
	}
	if n := sums["own"]; n == 0 || n > 2*mib {
		t.Errorf("%d KiB of the library's own", n>>10)
	}
	if len(sums) != 2 {
		t.Errorf("rows %v", sums)
	}
	r = ctl(t, nil, "stats", "--nodes", pid, "--library", testlib.Lib(t))
	says(t, squeeze(r.Stdout), "memory node 0", "slow 4", "own ")
}

// TestHeapNodesOfSplitBlock: the first part of a block over two tiers is in the one, the rest in
// the other.
func TestHeapNodesOfSplitBlock(t *testing.T) {
	const mib = 1 << 20
	cmd := start(t, preloaded(t, "TA_DEFAULT_HINT=prefer_fast", "TA_FAST_HARD=40M"),
		testlib.CC(t, "hold.c"))
	r := ctl(t, nil, "stats", "--nodes", strconv.Itoa(cmd.Process.Pid), "--json", "--library",
		testlib.Lib(t))
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	sums := nodeSums(t, r.Stdout)
	fast, normal := sums["fast"], sums["normal"]
	if fast < 36*mib || fast > 40*mib || normal < 4*mib || fast+normal < 44*mib ||
		fast+normal > 46*mib || sums["slow"] != 0 || sums["mixed"] != 0 {
		t.Errorf("of 44 MiB, 40 of them in the fast tier at most: %v", sums)
	}
}

// TestHeapNodesWithoutFirstThread: a process whose first thread has ended is examined all the
// same.
func TestHeapNodesWithoutFirstThread(t *testing.T) {
	cmd := start(t, preloaded(t), testlib.CC(t, "leaderless.c"))
	pid := strconv.Itoa(cmd.Process.Pid)
	status := filepath.Join("/proc", pid, "status")
	testlib.Wait(t, "the first thread's end", cmd.Process, func() bool {
		text, err := os.ReadFile(status)
		return err != nil || strings.Contains(string(text), "State:\tZ")
	})
	r := ctl(t, nil, "stats", "--nodes", pid, "--json", "--library", testlib.Lib(t))
	if r.Status != 0 || r.Stderr != "" || nodeSums(t, r.Stdout)["normal"] < 1<<20 {
		t.Errorf("%+v", r)
	}
}

// TestHeapNodesRefuses: a process that cannot be examined gives an error of one line.
func TestHeapNodesRefuses(t *testing.T) {
	text, err := os.ReadFile(testlib.Lib(t))
	other := filepath.Join(t.TempDir(), "libtieralloc.so")
	if err == nil {
		err = os.WriteFile(other, text, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	const wait = "echo ready; exec sleep 1000"
	with, without := start(t, preloaded(t), "sh", "-c", wait), start(t, nil, "sh", "-c", wait)
	for _, c := range []struct {
		args  []string
		words string
	}{
		{[]string{strconv.Itoa(with.Process.Pid), "--library", other},
			"another build of the library"},
		{[]string{strconv.Itoa(without.Process.Pid), "--library", other},
			"runs without libtieralloc.so"},
		{[]string{"4194304"}, "there is no process 4194304"},
		{[]string{"2"}, "process 2 "},
		{[]string{"x"}, `not "x"`},
		{nil, "the number of a process"},
		{[]string{"1", "--watch"}, "does not repeat"},
	} {
		if c.words == "process 2 " && !kernelThread("2") {
			continue // another process has the number, or none, in a namespace of process numbers
		}
		r := ctl(t, nil, append([]string{"stats", "--nodes"}, c.args...)...)
		if r.Status == 0 || r.Stdout != "" || len(squeeze(r.Stderr)) > 300 {
			t.Errorf("%q: %+v", c.args, r)
		}
		says(t, r.Stderr, c.words)
	}
	if os.Getuid() == 0 {
		pid := strconv.Itoa(with.Process.Pid)
		r := testlib.Run(t, testlib.Cmd{Args: []string{"setpriv", "--reuid=65534", "--clear-groups",
			reachableTool(t), "stats", "--nodes", pid}, Env: quiet()})
		says(t, r.Stderr, "cannot be examined")
	}
}

// kernelThread reports whether a process is a thread of the kernel, which runs no file.
func kernelThread(pid string) bool {
	_, err := os.Lstat(filepath.Join("/proc", pid))
	_, exeErr := os.Readlink(filepath.Join("/proc", pid, "exe"))
	return err == nil && errors.Is(exeErr, os.ErrNotExist)
}
