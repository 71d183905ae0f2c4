package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// strace is the command that runs a program with lib preloaded under strace; inject
// is an expression of its own, or "". Its --seccomp-bpf would be a filter in force at start, under
// which the library makes other calls.
func strace(lib, trace, inject, out string, prog ...string) []string {
	args := []string{"strace", "-f", "-o", out, "-e", "signal=none", "-e",
		"trace=" + trace,
		"-E", "LD_PRELOAD=" + lib}
	if inject != "" {
		args = append(args, "-e", "inject="+inject)
	}
	return append(args, prog...)
}

// needStrace skips the test where strace cannot work; on a build server that fails.
func needStrace(t *testing.T) {
	t.Helper()
	msg, err := exec.Command("strace", "-f", "-o", os.DevNull, "true").CombinedOutput()
	if err == nil {
		return
	}
	testlib.Lacks(t, "strace that works: "+err.Error()+": "+string(msg))
}

// mainCalls counts the main thread's calls of name before the library's boot, which looks for the
// file of settings, and all.
func mainCalls(t *testing.T, prog, name string) (loader, all int) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	r := testlib.Run(t, testlib.Cmd{Args: strace(testlib.Lib(t), name+",openat", "", out, prog,
		"work"), Env: quiet})
	clean(t, r)
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), " ")
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, first+" ") {
			continue
		}
		if strings.Contains(line, " "+name+"(") {
			all++
		}
		if loader == 0 && strings.Contains(line, "tieralloc.conf") {
			loader = all
		}
	}
	return loader, all
}

// survives runs the workload with a refusal injected; it must end by itself, with
// one of the statuses, and leave no broken report. Or it ends as it does without the
// library: a refusal can hit the loader.
func survives(t *testing.T, prog, inject string, statuses ...int) {
	t.Helper()
	dir := t.TempDir()
	file, log := filepath.Join(dir, "stats"), filepath.Join(dir, "log")
	trace, _, _ := strings.Cut(inject, ":")
	run := func(lib string) testlib.Result {
		return testlib.Run(t, testlib.Cmd{Args: strace(lib, trace, inject, log, prog, "work"),
			Env: append(append([]string{}, quiet...), "TA_STATS_FILE="+file, "TA_PURGE_DELAY=0")})
	}
	r := run(testlib.Lib(t))
	if text, err := os.ReadFile(log); err != nil || !bytes.Contains(text, []byte("(INJECTED)")) {
		t.Errorf("%s: nothing was refused: %v", inject, err)
	}
	if !slices.Contains(statuses, r.Status) && run("").Status != r.Status {
		t.Errorf("%s: status %d\nstdout: %s\nstderr: %s", inject, r.Status, clip(r.Stdout),
			clip(r.Stderr))
	}
	if _, err := os.Stat(file); err == nil {
		validReport(t, file)
	}
}

// TestRefusedOnce: each mmap of the library, one at a time, is refused, and then it
// and all that follow. A thread's calls are counted from its own beginning, so low
// numbers hit threads, too; the loader ends with 127.
func TestRefusedOnce(t *testing.T) {
	t.Parallel()
	needStrace(t)
	prog := testlib.CC(t, "refused.c")
	loader, all := mainCalls(t, prog, "mmap")
	t.Logf("the loader maps %d times, all in all it is %d", loader, all)
	if loader < 5 || all < loader+10 || all > 150 {
		t.Fatalf("%d calls of mmap, %d of them the loader's", all, loader)
	}
	for n := 1; n <= all; n++ {
		if n > loader+12 && n%3 != 0 {
			continue
		}
		survives(t, prog, fmt.Sprintf("mmap:error=ENOMEM:when=%d", n), 0, 3, 127)
		if n > loader && n%2 == 0 {
			survives(t, prog, fmt.Sprintf("mmap:error=ENOMEM:when=%d+", n), 0, 3, 127)
		}
	}
}

// TestRefusedAlways: without mremap, munmap or madvise everything still goes its
// way, if slower. Memory there is, so no call may fail.
func TestRefusedAlways(t *testing.T) {
	t.Parallel()
	needStrace(t)
	prog := testlib.CC(t, "refused.c")
	for _, inject := range []string{"mremap:error=ENOMEM:when=1+", "mremap:error=ENOMEM:when=2+",
		"mremap:error=ENOMEM:when=3+",
		"mremap:error=ENOMEM:when=1+2", "mremap:error=ENOMEM:when=2+2",
		"mremap:error=EFAULT:when=1+",
		"mremap:error=EINVAL:when=1+", "mremap:error=ENOSYS:when=1+", "munmap:error=ENOMEM:when=1+",
		"madvise:error=ENOMEM:when=1+", "madvise:error=EINVAL:when=1+"} {
		survives(t, prog, inject, 0)
	}
}

// TestSplitMappings: a block of which a page is protected is several mappings to the
// kernel, and not to be moved as one. Nothing of the attempt stays behind.
func TestSplitMappings(t *testing.T) {
	t.Parallel()
	cases(t, testlib.CC(t, "refused.c"), nil, "huge once", "huge on", "large once")
}
