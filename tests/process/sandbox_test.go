package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// refusals are system calls that a sandbox may refuse together.
var refusals = []string{
	"madvise", "mremap", "munmap", "mbind,get_mempolicy,set_mempolicy,move_pages", "prlimit64",
	"sysinfo,getcpu,sched_getaffinity,sched_yield,membarrier", "clock_gettime",
	"clock_nanosleep,nanosleep", "getrandom", "prctl", "faccessat,getcwd", "renameat,unlinkat",
	"writing", "write,pwrite64", "fcntl", "getpid,gettid", "fstat", "newfstatat",
	"epoll_create1,eventfd2", "rt_sigpending", "set_robust_list",
}

// TestSandbox: whatever a filter of system calls refuses, programs work in it, and those that are
// not asked for reports or a log say nothing.
func TestSandbox(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "sandbox.c")
	started := 0
	for _, calls := range refusals {
		for _, errno := range []string{"1", "38"} { // EPERM, ENOSYS
			// without some of them the loader, by its version, starts no program at all
			plain := testlib.Run(t, testlib.Cmd{Args: []string{prog, errno, calls, prog}})
			starts := plain.Status == 0
			if starts {
				started++
			}
			for _, env := range []string{"TA_SECURE=0", "TA_SECURE=1", "TA_LOG=debug"} {
				t.Run(strings.Join([]string{calls, errno, env}, "/"), func(t *testing.T) {
					t.Parallel()
					sandboxed(t, env, prog, errno, calls, "here")
					if starts {
						sandboxed(t, env, prog, errno, calls, prog)
					}
				})
			}
		}
	}
	if started < 2*len(refusals)-6 {
		t.Errorf("without the library programs start after %d of %d refusals", started,
			2*len(refusals))
	}
}

// sandboxed runs a program whose sandbox refuses calls.
func sandboxed(t *testing.T, env string, args ...string) {
	t.Helper()
	vars, complains := []string{env}, env == "TA_LOG=debug"
	if complains {
		vars = append(vars, toDir(t.TempDir())...)
		vars = append(vars, "TA_BACKGROUND=1", "TA_ON_SOFTCAP=demote", "TA_FAST_SOFT=1M")
	}
	r := preloaded(t, vars, args...)
	if r.Status != 0 || r.Stdout != "" || r.Stderr != "" && !complains {
		t.Errorf("%q: status %d\nstdout %s\nstderr %s", args, r.Status, r.Stdout, clip(r.Stderr))
	}
	processes := 1
	if args[len(args)-1] != "here" { // it may stop the control plane just before it execs, too
		processes = 2
	}
	said := map[string]int{}
	for line := range strings.Lines(r.Stderr) {
		what := regexp.MustCompile("[0-9]+").ReplaceAllString(line, "")
		if said[what]++; !strings.HasPrefix(line, "tieralloc: ") ||
			said[what] > processes && !strings.Contains(line, "TA_STATS_FILE") {
			// the report of a forked child is a file of its own
			t.Errorf("%q: stderr %s", args, clip(r.Stderr))
			break
		}
	}
}

// toDir has log, report and live page go to files in a directory.
func toDir(dir string) []string {
	return []string{"TA_LOG_FILE=" + filepath.Join(dir, "log"),
		"TA_STATS_FILE=" + filepath.Join(dir, "%p.%e"),
		"TA_STATS_LIVE=" + filepath.Join(dir, "%p.live")}
}

// TestSandboxWrites: where no file can be written, nothing is said of those that are not; where
// only the named ones cannot, it is.
func TestSandboxWrites(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "sandbox.c")
	for _, errno := range []string{"1", "13", "38"} {
		for _, program := range []string{"here", prog} {
			dir := t.TempDir()
			r := preloaded(t, append(toDir(dir), "TA_LOG=info"), prog, errno, "writing", program)
			clean(t, r)
		}
	}
	said := untilSaid(t, append(toDir("/no/such/folder"), "TA_LOG=error"), "TA_LOG_FILE")
	for _, name := range []string{"TA_STATS_FILE", "TA_STATS_LIVE", "TA_LOG_FILE"} {
		if strings.Count(said, "cannot write "+name)+strings.Count(said,
			"cannot make "+name) != 1 {
			t.Errorf("stderr %s does not name %s once", said, name)
		}
	}
}

// TestFilterFromStart: where a filter that was set before the program was started ends it at a call
// that a service manager's lists lack, the program works, and its report tells the nodes.
func TestFilterFromStart(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "sandbox.c")
	for _, program := range [][]string{{prog}, {prog, "large"}} {
		for _, env := range []string{"TA_SECURE=0", "TA_SECURE=1", "TA_HUGEPAGES=off"} {
			file := filepath.Join(t.TempDir(), "report")
			args := append([]string{prog, "0", "mincore,move_pages"}, program...)
			clean(t, preloaded(t, []string{env, "TA_STATS_FILE=" + file}, args...))
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), `"bytes_per_node"`) {
				t.Errorf("%q %s: no nodes in the report:\n%s", program, env, clip(string(text)))
			}
		}
	}
}

// untilSaid runs a program that ends after it has said the word on standard error, and returns all
// that it has said there. On a busy machine the log may come later than a program waits for at its
// end.
func untilSaid(t *testing.T, env []string, word string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "stderr")
	out, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command("cat")
	cmd.Env = append(append(append(os.Environ(), quiet...), env...), "LD_PRELOAD="+testlib.Lib(t))
	cmd.Stderr = out
	in, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	said := func() string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		return string(text)
	}
	defer cmd.Process.Kill()
	testlib.Wait(t, word+" on standard error", cmd.Process, func() bool {
		return strings.Contains(said(), word)
	})
	in.Close()
	if err := testlib.End(cmd); err != nil {
		t.Error(err)
	}
	return said()
}

// callNames are the names of the system calls that a program makes with the library, or without
// one.
func callNames(t *testing.T, lib string, args ...string) []string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "trace")
	clean(t, testlib.Run(t, testlib.Cmd{Args: strace(lib, "!getppid", "", out, args...),
		Env: quiet}))
	text, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^\d+ +([a-z_0-9]+)\(`).FindAllStringSubmatch(string(text), -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// TestSilentCalls: a process that is asked for nothing makes hardly other system calls than it
// makes without the library, for a filter may end it for one that it does not know. Beyond those
// with which glibc's malloc gets and gives back memory, its start asks for the time and the nodes.
func TestSilentCalls(t *testing.T) {
	t.Parallel()
	needStrace(t)
	prog := testlib.CC(t, "sandbox.c")
	plain, with := callNames(t, "", prog), callNames(t, testlib.Lib(t), prog)
	allowed := append(plain, "mmap", "munmap", "mremap", "mprotect", "madvise", "clock_gettime",
		"get_mempolicy", "futex")
	for _, name := range with {
		if !slices.Contains(allowed, name) {
			t.Errorf("a preloaded process calls %s", name)
		}
	}
	if !slices.Contains(with, "get_mempolicy") {
		t.Error(fmt.Sprint("the library was not there: ", with))
	}
}
