package cuda

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// pictured checks the pickle that the tool makes of a snapshot, of a file or a process, against a
// report of the same moment.
func pictured(t *testing.T, env []string, of, report string, events ...string) {
	t.Helper()
	python := "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testlib.Lacks(t, python)
	}
	pickle := filepath.Join(t.TempDir(), "pickle")
	r := testlib.Run(t, testlib.Cmd{Env: env,
		Args: []string{testlib.Tool(t), "gpu", "snapshot", "-o", pickle, of}})
	if r.Status != 0 || r.Stderr != "" || !strings.Contains(r.Stdout, "device 0: ") {
		t.Fatalf("%+v", r)
	}
	r = testlib.Run(t, testlib.Cmd{Args: append([]string{python, "testdata/snapshot.py", pickle,
		report}, events...)})
	if r.Status != 0 || r.Stdout != "ok\n" {
		t.Errorf("%+v", r)
	}
}

// TestSnapshotRefused: a program that is refused memory leaves a snapshot. The second refusal
// replaces the first one's.
func TestSnapshotRefused(t *testing.T) {
	program := cc(t, "snapshot.c")
	for _, c := range []struct{ mode, expandable string }{{"", "1"}, {"", "0"}, {"again", "1"}} {
		dir := t.TempDir()
		r := testlib.Run(t, command(true, []string{"TA_CUDA_SNAPSHOT=" + dir + "/%e",
			"TA_CUDA_HARD=64M", "TA_STATS_FILE=" + dir + "/report",
			"TA_CUDA_EXPANDABLE=" + c.expandable}, program, c.mode))
		clean(t, r)
		testlib.OnlyFiles(t, dir, "report", "snapshot")
		text, err := os.ReadFile(filepath.Join(dir, "snapshot"))
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), " refused "); n != strings.Count(r.Stdout, " = 2\n") {
			t.Errorf("%d refusals in the snapshot; the program: %s", n, r.Stdout)
		}
		events := []string{"segment_alloc", "alloc", "free_requested", "free_completed", "oom"}
		if c.expandable == "1" {
			events = append(events, "segment_map")
		}
		pictured(t, nil, filepath.Join(dir, "snapshot"), filepath.Join(dir, "report"), events...)
	}
}

// TestSnapshotAsked: a running process writes a snapshot beside that of its last refusal.
func TestSnapshotAsked(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report")
	env := []string{"TA_CUDA_SNAPSHOT=" + dir + "/%p.snapshot",
		"TA_STATS_LIVE=" + dir + "/%p.page", "TA_BACKGROUND=1"}
	pid := waiting(t, env)
	own := env[1:2]
	// The answer comes with an update of the page.
	r := testlib.Run(t, testlib.Cmd{Env: own,
		Args: []string{testlib.Tool(t), "gpu", "snapshot", "-o", filepath.Join(dir, "a"), pid}})
	if r.Status != 0 || os.Remove(filepath.Join(dir, "a")) != nil {
		t.Fatalf("%+v", r)
	}
	r = testlib.Run(t, testlib.Cmd{Env: own,
		Args: []string{testlib.Tool(t), "stats", "--json", pid}})
	if r.Status != 0 || os.WriteFile(report, []byte(r.Stdout), 0o600) != nil {
		t.Fatalf("%+v", r)
	}
	pictured(t, own, pid, report, "alloc", "free_completed")
	testlib.OnlyFiles(t, dir, pid+".page", pid+".snapshot.asked", "report")

	pid = waiting(t, env[1:])
	refusedSnapshot(t, own, pid, "process "+pid+" takes no snapshot", "TA_CUDA_SNAPSHOT=FILE")
	refusedSnapshot(t, own, "4194305", "there is no process 4194305")
}

// TestSnapshotPython: events have the stacks of the Python program, whether it holds the
// interpreter's lock or not.
func TestSnapshotPython(t *testing.T) {
	script, err := filepath.Abs("testdata/stacks.py")
	if err != nil {
		t.Fatal(err)
	}
	for _, python := range testlib.Pythons(t) {
		dir := t.TempDir()
		clean(t, testlib.Run(t, command(true, []string{"TA_CUDA_SNAPSHOT=" + dir + "/s"}, python,
			script)))
		r := testlib.Run(t, testlib.Cmd{Args: []string{testlib.Tool(t), "gpu", "snapshot", "-o",
			dir + "/pickle", dir + "/s"}})
		if r.Status != 0 || r.Stderr != "" {
			t.Fatalf("%s: %+v", python, r)
		}
		r = testlib.Run(t, testlib.Cmd{Args: []string{python, script, dir + "/pickle"}})
		if r.Status != 0 || r.Stdout != "ok\n" {
			t.Errorf("%s: %+v", python, r)
		}
	}
}

// TestSnapshotWithoutCUDA: a program without a device writes none.
func TestSnapshotWithoutCUDA(t *testing.T) {
	dir := t.TempDir()
	clean(t, testlib.Run(t, command(true, []string{"TA_CUDA_SNAPSHOT=" + dir + "/s"}, "/bin/true")))
	testlib.OnlyFiles(t, dir)
	r := testlib.Run(t, command(true, []string{"TA_CUDA_SNAPSHOT=/no/such/folder/s", "TA_STRICT="},
		"/bin/true"))
	if r.Status != 0 || strings.Count(r.Stderr, "\n") != 1 ||
		!strings.Contains(r.Stderr, "TA_CUDA_SNAPSHOT /no/such/folder/s") {
		t.Errorf("%+v", r)
	}
}

// waiting starts the program that waits, and returns its number.
func waiting(t *testing.T, env []string) string {
	t.Helper()
	c := command(true, env)
	cmd := exec.Command(cc(t, "snapshot.c"), "wait")
	cmd.Env = append(append(os.Environ(), c.Env...), "LD_PRELOAD="+testlib.Lib(t))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	return strconv.Itoa(cmd.Process.Pid)
}

// refusedSnapshot checks that the tool fails with one line that has all the words.
func refusedSnapshot(t *testing.T, env []string, of string, words ...string) {
	t.Helper()
	r := testlib.Run(t, testlib.Cmd{Env: env,
		Args: []string{testlib.Tool(t), "gpu", "snapshot", "-o", "-", of}})
	if r.Status != 1 || r.Stdout != "" || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("%s: %+v", of, r)
	}
	for _, w := range words {
		if !strings.Contains(r.Stderr, w) {
			t.Errorf("%q is missing in %q", w, r.Stderr)
		}
	}
}
