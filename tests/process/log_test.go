package process

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// logLine is what each line of a log has.
type logLine struct {
	Level, Message string
	Pid            int
	Time           time.Time
}

// readLog reads a log: lines of JSON, the first the configuration, the last the
// summary, and neither a second time.
func readLog(t *testing.T, text string) (lines []logLine) {
	t.Helper()
	if text == "" || !strings.HasSuffix(text, "\n") {
		t.Fatalf("a log without an end: %q", clip(text))
	}
	ends := 0
	for line := range strings.Lines(text) {
		var l logLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatalf("%v: %q", err, line)
		}
		if l.Level == "" || l.Message == "" || l.Pid == 0 || time.Since(l.Time).Abs() > time.Hour {
			t.Errorf("no level, message, pid or time: %s", line)
		}
		if l.Message == "configuration" || l.Message == "summary" {
			ends++
		}
		lines = append(lines, l)
	}
	if ends != 2 || lines[0].Message != "configuration" ||
		lines[len(lines)-1].Message != "summary" {
		t.Errorf("%d of configuration and summary in\n%s", ends, text)
	}
	return lines
}

// logTo names the log files of a test that runs with and without one.
func logTo(t *testing.T) map[string][]string {
	return map[string][]string{"file": {"TA_LOG=debug",
		"TA_LOG_FILE=" + filepath.Join(t.TempDir(), "log")}, "stderr": {"TA_LOG=debug"}}
}

// TestLog: what happened is in the log, of the process that was asked for one; its
// forked children work and write nothing.
func TestLog(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "log.c")
	for to, env := range logTo(t) {
		t.Run(to, func(t *testing.T) {
			r := preloaded(t, append([]string{"TA_PURGE_DELAY=1ms"}, env...), prog, "work")
			text := r.Stderr
			if to == "file" {
				if r.Stderr != "" {
					t.Errorf("stderr: %s", clip(r.Stderr))
				}
				b, err := os.ReadFile(strings.TrimPrefix(env[1], "TA_LOG_FILE="))
				if err != nil {
					t.Fatal(err)
				}
				text = string(b)
			}
			if r.Status != 0 {
				t.Errorf("status %d, stdout %s", r.Status, r.Stdout)
			}
			lines := readLog(t, text)
			for _, want := range []string{"fork", "thread has a heap", "thread ended",
				"segment mapped", "purged"} {
				if !slices.ContainsFunc(lines,
					func(l logLine) bool { return strings.Contains(l.Message, want) }) {
					t.Errorf("no event %q in\n%s", want, clip(text))
				}
			}
			for _, l := range lines {
				if strconv.Itoa(l.Pid) != pids(r.Stdout)["parent"] {
					t.Errorf("a line of %d: %+v\n%s", l.Pid, l, r.Stdout)
				}
			}
		})
	}
}

// TestLogLevels: info has no debug lines, error nothing but what went wrong.
func TestLogLevels(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "log.c")
	for _, l := range readLog(t, preloaded(t, []string{"TA_LOG=info"}, prog, "work").Stderr) {
		if l.Level == "debug" {
			t.Errorf("under TA_LOG=info: %+v", l)
		}
	}
	clean(t, preloaded(t, []string{"TA_LOG=error"}, prog, "small"))
	clean(t, preloaded(t, []string{"TA_LOG=off", "TA_LOG_FILE=/no/such/file"}, prog, "small"))
}

// TestLogDescriptors: a host that closes all descriptors, as daemons do, and opens
// its own; one whose standard error is a pipe that takes nothing.
func TestLogDescriptors(t *testing.T) {
	t.Parallel()
	prog, launch := testlib.CC(t, "log.c"), testlib.CC(t, "launch.c")
	for to, env := range logTo(t) {
		t.Run("closefrom/"+to, func(t *testing.T) {
			dir := t.TempDir()
			r := testlib.Run(t, testlib.Cmd{Args: []string{prog, "daemon"}, Dir: dir, Preload: true,
				Env: append(append([]string{"TA_BACKGROUND=1"}, quiet...), env...)})
			if r.Status != 0 || !strings.HasSuffix(r.Stdout, "end\n") {
				t.Errorf("status %d, stdout %s\nstderr %s", r.Status, clip(r.Stdout),
					clip(r.Stderr))
			}
			for _, name := range statsFiles(t, dir) {
				if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil ||
					string(text) != "mine" {
					t.Errorf("the host's %s holds %q, %v", name, clip(string(text)), err)
				}
			}
		})
	}
	for _, kind := range []string{"nonblock", "full", "broken"} {
		t.Run("stderr/"+kind, func(t *testing.T) {
			r := testlib.Run(t, testlib.Cmd{Args: []string{launch, kind, prog, "work"},
				Env: append(append([]string{"LIB=" + testlib.Lib(t)}, quiet...),
					"TA_LOG=debug")})
			if r.Status != 0 || !strings.Contains(r.Stdout, "parent") {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestRuntimeOpensNothing: the threads of the Go runtime open no file of their own. A host of one
// thread may close a descriptor and rely on getting the same one.
func TestRuntimeOpensNothing(t *testing.T) {
	t.Parallel()
	needStrace(t)
	prog := testlib.CC(t, "log.c")
	for _, env := range []string{"TA_LOG=info", "TA_LOG=debug"} {
		out := filepath.Join(t.TempDir(), "trace")
		r := testlib.Run(t, testlib.Cmd{Args: strace(testlib.Lib(t), "execve,open,openat",
			"", out, prog, "small"), Env: append(slices.Clip(quiet), env, "TA_BACKGROUND=1")})
		text, err := os.ReadFile(out)
		if err != nil || r.Status != 0 || !strings.Contains(r.Stderr, `"configuration"`) {
			t.Fatalf("%v, %+v", err, r)
		}
		main, _, _ := strings.Cut(string(text), " ")
		for line := range strings.Lines(string(text)) {
			if pid, call, _ := strings.Cut(line, " "); pid != main && strings.Contains(call, "open") {
				t.Errorf("%s: %s", env, line)
			}
		}
	}
}

// TestLogFatal: where the Go runtime would end the process, as it does when it finds itself broken,
// only the log ends. A debugger sends the log's goroutine to where that happens.
func TestLogFatal(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("gdb"); err != nil {
		testlib.Lacks(t, "gdb")
	}
	prog := testlib.CC(t, "log.c")
	args := []string{"gdb", "-nx", "-batch"}
	for _, c := range []string{"set breakpoint pending on", "set startup-with-shell off",
		"set environment LD_PRELOAD=" + testlib.Lib(t),
		"set environment TA_LOG=debug", "set environment TA_LOG_FILE=/dev/null",
		"break tieralloc/stats.Rest", "run", "delete",
		"set language asm", "jump *'runtime.throw'"} {
		args = append(args, "-ex", c)
	}
	r := testlib.Run(t, testlib.Cmd{Args: append(args, "--args", prog, "work"), Env: quiet,
		Timeout: time.Minute})
	if !strings.Contains(r.Stdout, "exited normally") || !strings.Contains(r.Stdout, "\nparent ") ||
		strings.Count(r.Stderr, "tieralloc: TA_LOG or TA_BACKGROUND failed; they end here\n") != 1 {
		t.Errorf("%+v", r)
	}
}

// TestLogSignals: signals are the host's, whatever threads the log has, and setuid
// reaches these as well.
func TestLogSignals(t *testing.T) {
	t.Parallel()
	prog, handlers := testlib.CC(t, "log.c"), testlib.CC(t, "handlers.c")
	clean(t, plain(t, handlers))
	for to, env := range map[string][]string{"file": {"TA_LOG=debug", "TA_LOG_FILE=/dev/null"},
		"stderr": {"TA_LOG=info"}, "later": {"TA_BACKGROUND=1"}} {
		for name, args := range map[string][]string{"blocked": {prog, "blocked"},
			"ids": {prog, "ids"}, "handlers": {handlers}} {
			t.Run(name+"/"+to, func(t *testing.T) {
				r := preloaded(t, env, args...)
				if r.Status != 0 || r.Stdout != "" {
					t.Errorf("status %d, stdout %s\nstderr %s", r.Status, r.Stdout, clip(r.Stderr))
				}
			})
		}
		t.Run("yes/"+to, func(t *testing.T) {
			r := preloaded(t, env, "bash", "-c", `yes | head -1; echo "${PIPESTATUS[@]}"`)
			if r.Status != 0 || r.Stdout != "y\n141 0\n" {
				t.Errorf("status %d, stdout %s\nstderr %s", r.Status, r.Stdout, clip(r.Stderr))
			}
		})
	}
}

// logLimits are limits under which a Go runtime can hardly live.
func logLimits() map[string][]string {
	limits := map[string][]string{
		"data 20 MB": {"prlimit", "--data=20000000"}, "data 60 MB": {"prlimit", "--data=60000000"},
		"data 300 MB": {"prlimit", "--data=300000000"}, "as 300 MB": {"prlimit", "--as=307200000"},
		"stack 64 KiB": {"prlimit", "--stack=65536"}, "nofile 10": {"prlimit", "--nofile=10"},
		"nproc 1": {"prlimit", "--nproc=1"}, // root has none
	}
	for n := 1; n <= 6 && os.Getuid() == 0; n++ {
		id := strconv.Itoa(54320 + n)
		limits[fmt.Sprintf("nproc %d", n)] = []string{"setpriv", "--reuid=" + id, "--regid=" + id,
			"--clear-groups",
			"prlimit", fmt.Sprintf("--nproc=%d", n)}
	}
	return limits
}

// TestLogLimits: where the log cannot be had the host goes on without it, and does
// not wait long.
func TestLogLimits(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tieralloc") // t.TempDir is closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	lib, prog := filepath.Join(dir, "lib.so"), filepath.Join(dir, "prog")
	for to, from := range map[string]string{lib: testlib.Lib(t), prog: testlib.CC(t, "log.c")} {
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(to, text, 0o755)
		}
		if err == nil {
			err = os.Chmod(dir, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, limit := range logLimits() {
		t.Run(name, func(t *testing.T) {
			args := append(slices.Clone(limit), "env", "LD_PRELOAD="+lib, "TA_LOG=debug", prog,
				"small")
			w := newWatch()
			r := testlib.Run(t, testlib.Cmd{Args: args, Env: quiet})
			if took := w.unhindered(); r.Status != 0 || r.Stdout != "" || took > 4*time.Second {
				t.Errorf("status %d after %v\nstdout %s\nstderr %s", r.Status, took, r.Stdout,
					clip(r.Stderr))
			}
		})
	}
}

// TestLogLimitLowered: a limit of addresses that comes later leaves the host nearly all that it
// would have without a log, and whatever the limit, the host goes on: if need be without the log.
func TestLogLimitLowered(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "limit.c")
	for range 8 {
		r := preloaded(t, []string{"TA_LOG=debug", "TA_LOG_FILE=/dev/null", "TA_BACKGROUND=1"},
			prog, "lowered")
		if r.Status != 0 || r.Stdout != "" ||
			r.Stderr != "" && !oneLine(r.Stderr, "tieralloc: no ",
				"TA_LOG or TA_BACKGROUND; they end here") {
			t.Fatalf("status %d\nstdout %s\nstderr %s", r.Status, r.Stdout, clip(r.Stderr))
		}
	}
}

// TestLogHardCap: a hard cap that refuses whatever is beyond it may end the log, never the host.
func TestLogHardCap(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "full.c")
	for _, hardCap := range []string{"4K", "64K", "128K", "192K", "256K", "512K", "1M", "4M"} {
		r := preloaded(t, []string{"TA_LOG=error", "TA_LOG_FILE=/dev/null", "TA_BACKGROUND=1",
			"TA_ON_HARDCAP=fail", "TA_NORMAL_HARD=" + hardCap}, prog)
		if r.Status != 0 || r.Stdout != "" ||
			r.Stderr != "" && !oneLine(r.Stderr, "tieralloc: no ",
				"TA_LOG or TA_BACKGROUND; they end here") {
			t.Errorf("%s: status %d\nstdout %s\nstderr %s", hardCap, r.Status, r.Stdout,
				clip(r.Stderr))
		}
	}
}

// TestLogNofile: the Go runtime raises the soft limit of open files. That is not for
// the host to find, nor for its children.
func TestLogNofile(t *testing.T) {
	t.Parallel()
	const script = `ulimit -Sn; sleep 0.05; ulimit -Sn; env -u TA_LOG -u LD_PRELOAD sh -c ` +
		`"ulimit -Sn; ulimit -Hn"`
	r := preloaded(t, []string{"TA_LOG=info", "TA_LOG_FILE=/dev/null"}, "prlimit",
		"--nofile=300:900", "sh", "-c", script)
	clean(t, r)
	if r.Stdout != "300\n300\n300\n900\n" {
		t.Errorf("limits %q", r.Stdout)
	}
}

// TestLogStarts: the start waits for the log's thread, the end for the last line;
// neither may wait in vain, which takes two seconds.
func TestLogStarts(t *testing.T) {
	t.Parallel()
	const most = 1500 * time.Millisecond
	for i := range 40 {
		w := newWatch()
		r := preloaded(t, []string{"TA_LOG=info"}, "true")
		if took := w.unhindered(); r.Status != 0 || took > most {
			t.Fatalf("start %d: status %d after %v", i, r.Status, took)
		}
		if time.Since(w.begun) < most { // later the process may rightly have given up on the log
			readLog(t, r.Stderr)
		}
	}
}

// watch measures the time in which the machine did not hinder a program: no process waited for a
// processor. Where the kernel does not count that, all of it.
type watch struct {
	begun   time.Time
	stalled time.Duration
}

func newWatch() watch { return watch{time.Now(), stalled()} }

func (w watch) unhindered() time.Duration {
	took := time.Since(w.begun)
	return took - min(took, stalled()-w.stalled)
}

// stalled is how long any process has waited for a processor, since the machine began.
func stalled() time.Duration {
	text, err := os.ReadFile("/proc/pressure/cpu")
	if err != nil {
		return 0
	}
	some, _, _ := strings.Cut(string(text), "\n")
	_, total, _ := strings.Cut(some, "total=")
	us, _ := strconv.ParseInt(total, 10, 64)
	return time.Duration(us) * time.Microsecond
}
