package process

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// memoryGroup makes a control group that is limited to so many MiB, of whichever version has the
// memory here.
func memoryGroup(t *testing.T, mib int) (dir string) {
	t.Helper()
	const root = "/sys/fs/cgroup"
	name := fmt.Sprintf("tieralloc-test-%d-%d", os.Getpid(), mib)
	dir, file := filepath.Join(root, "memory", name), "memory.limit_in_bytes"
	if text, err := os.ReadFile(filepath.Join(root, "cgroup.controllers")); err == nil &&
		strings.Contains(string(text), "memory") {
		dir, file = filepath.Join(root, name), "memory.max"
		// Where that is refused, the next file does not exist.
		_ = os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte("+memory"), 0)
	}
	err := os.Mkdir(dir, 0o755)
	if err == nil {
		t.Cleanup(func() { os.Remove(dir) })
		err = os.WriteFile(filepath.Join(dir, file), []byte(fmt.Sprint(mib<<20)), 0)
	}
	if err != nil {
		testlib.Lacks(t, "control group for memory: "+err.Error())
	}
	return dir
}

// inGroup are the arguments of a command that runs in the group.
func inGroup(dir, lib string, args ...string) []string {
	return append([]string{"sh", "-c",
		`echo $$ >"$0/cgroup.procs" && LD_PRELOAD=$1 && export LD_PRELOAD && shift && exec "$@"`,
		dir, lib}, args...)
}

// TestSmallGroup: what a program has freed does not have it killed in a control group in which its
// blocks have room.
func TestSmallGroup(t *testing.T) {
	dir := memoryGroup(t, 64)
	prog := testlib.CC(t, "phases.c")
	for _, env := range [][]string{nil, {"TA_PURGE_DELAY=3600s"}} {
		r := testlib.Run(t, testlib.Cmd{Args: inGroup(dir, testlib.Lib(t), prog),
			Env: append(append([]string{}, quiet...), env...)})
		if clean(t, r); r.Status != 0 {
			t.Errorf("%v: killed", env)
		}
	}
}

// TestGroupLooks: a small process never looks at its control group, a large one a few times, and
// one that has little room as often as it may make a difference.
func TestGroupLooks(t *testing.T) {
	needStrace(t)
	dir := memoryGroup(t, 256)
	large := []string{testlib.CC(t, "report.c"), "stats"}
	for _, c := range []struct {
		name        string
		args        []string
		grouped     bool
		least, most int
	}{
		{"small", []string{"sort", "/dev/null"}, false, 0, 0},
		{"large", large, false, 1, 4},
		{"limited", large, true, 2, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			trace := filepath.Join(t.TempDir(), "trace")
			args := strace(testlib.Lib(t), "openat", "", trace, c.args...)
			if c.grouped {
				args = inGroup(dir, "", args...)
			}
			clean(t, testlib.Run(t, testlib.Cmd{Args: args, Env: quiet}))
			text, err := os.ReadFile(trace)
			if err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(string(text), `"/proc/self/cgroup"`); n < c.least || n > c.most {
				t.Errorf("it has looked %d times, not %d to %d times:\n%s", n, c.least, c.most,
					clip(string(text)))
			}
		})
	}
}

// TestToolNamesLimit: the tool tells of the limit, and of a cap above it.
func TestToolNamesLimit(t *testing.T) {
	dir := memoryGroup(t, 96)
	tool := filepath.Join(testlib.Root(), "build", "tierallocctl")
	for verb, want := range map[string][]string{
		"topology": {"the control group's limit is 96 MiB"},
		"check":    {"the control group's limit is 96 MiB", "TA_SLOW_HARD is 1.0 GiB"},
	} {
		r := testlib.Run(t, testlib.Cmd{Args: inGroup(dir, "", tool, verb),
			Env: append(append([]string{}, quiet...), "TA_SLOW_HARD=1G")})
		for _, words := range want {
			if r.Status != 0 || !strings.Contains(r.Stdout, words) {
				t.Errorf("%s: status %d, %q is missing in\n%s%s", verb, r.Status, words, r.Stdout,
					r.Stderr)
			}
		}
	}
}

// TestCapsOfGroup: a cap in percent is of the control group's limit where that is less than what
// the nodes have.
func TestCapsOfGroup(t *testing.T) {
	dir, file := memoryGroup(t, 100), filepath.Join(t.TempDir(), "stats")
	clean(t, testlib.Run(t, testlib.Cmd{Args: inGroup(dir, testlib.Lib(t), "true"),
		Env: append(append([]string{}, quiet...), "TA_FAST_HARD=80%", "TA_SLOW_SOFT=1%",
			"TA_STATS_FILE="+file)}))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{fmt.Sprintf(`"capacity_hard": %d,`, 80<<20),
		fmt.Sprintf(`"capacity_soft": %d,`, 1<<20)} {
		if strings.Count(string(text), words) != 1 {
			t.Errorf("the report has no %s:\n%s", words, clip(string(text)))
		}
	}
}
