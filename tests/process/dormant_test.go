package process

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestDormant: to the kernel a preloaded process is what it is without us.
func TestDormant(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "dormant.c", "-ldl")
	want := plain(t, prog, "show")
	clean(t, want)
	for _, env := range []string{"TA_STATS_FILE=",
		"TA_STATS_FILE=" + filepath.Join(t.TempDir(), "s"), "TA_DISABLE=1", "TA_INTERPOSE=0"} {
		r := preloaded(t, []string{env}, prog, "show")
		clean(t, r)
		if r.Stdout != want.Stdout {
			t.Errorf("%s: plain\n%s\npreloaded\n%s", env, want.Stdout, r.Stdout)
		}
	}
}

// TestLater: the Go runtime starts with the process where there is a full log, and otherwise only if
// the process lives for a while. It leaves the limit on descriptors alone.
func TestLater(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "later.c")
	clean(t, preloaded(t, []string{"TA_BACKGROUND=1"}, prog))
	clean(t, preloaded(t, []string{"TA_LOG=warn", "TA_BACKGROUND=1"}, prog))
	clean(t, preloaded(t, []string{"TA_LOG=info", "TA_LOG_FILE=/dev/null"}, prog, "at once"))
}

// TestDaemon: a child that is forked before the Go runtime has started gets one of its own.
func TestDaemon(t *testing.T) {
	t.Parallel()
	clean(t, preloaded(t, []string{"TA_BACKGROUND=1"}, testlib.CC(t, "daemon.c")))
}

// TestGuest loads the library with dlopen into a program that has a malloc.
func TestGuest(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "dormant.c", "-ldl")
	lib := "LIB=" + testlib.Lib(t)
	guest := func(name string, env ...string) testlib.Result {
		return testlib.Run(t, testlib.Cmd{Args: []string{prog, name},
			Env: append(append([]string{lib}, quiet...), env...)})
	}
	for _, env := range []string{"A=", "GLOBAL=1", "CLOSE=1"} {
		t.Run(env, func(t *testing.T) { clean(t, guest("guest", env)) })
	}
	t.Run("statistics", func(t *testing.T) {
		dir := t.TempDir()
		clean(t, guest("guest", "TA_STATS_FILE="+filepath.Join(dir, "%e")))
		r := readReport(t, filepath.Join(dir, "dormant"))
		if r.Calls["ta_alloc"] != 3 || r.Calls["malloc"] != 0 || r.Calls["free"] != 0 ||
			len(statsFiles(t, dir)) != 2 {
			t.Errorf("calls %v, files %v", r.Calls, statsFiles(t, dir))
		}
	})
	t.Run("misuse", func(t *testing.T) {
		r := guest("guest misuse")
		if r.Status != 134 || !oneLine(r.Stderr, "ta_free("+strings.TrimSpace(r.Stdout)+")") {
			t.Errorf("%+v", r)
		}
	})
}

// TestCgoProgram preloads the library into a program with a Go runtime of its own.
func TestCgoProgram(t *testing.T) {
	t.Parallel()
	prog := filepath.Join(t.TempDir(), "cgoprog")
	cmd := exec.Command("go", "build", "-o", prog, "main.go")
	cmd.Dir = filepath.Join("testdata", "cgoprog")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	for _, env := range []string{"GOGC=100", "GODEBUG=cgocheck=1"} {
		file := filepath.Join(t.TempDir(), "stats")
		r := preloaded(t, []string{env, "TA_STATS_FILE=" + file}, prog)
		clean(t, r)
		if want := "bad 0, fault caught true, \"child\\n\", <nil>\n"; r.Stdout != want {
			t.Errorf("%q, want %q", r.Stdout, want)
		}
	}
}
