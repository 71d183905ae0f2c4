package process

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

func TestFork(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "fork.c")
	cases(t, prog, nil, "unprepared", "vfork")
	t.Run("threads", func(t *testing.T) {
		dir := t.TempDir()
		clean(t, preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "%p")}, prog,
			"threads"))
		files := statsFiles(t, dir)
		if len(files) < 61 {
			t.Errorf("%d files of 60 children, their children and the parent", len(files))
		}
		for _, f := range files {
			validReport(t, filepath.Join(dir, f))
		}
	})
}

// TestForkCounts: a child counts from the fork where its parent has made a report or is to make
// one. Another goes on with its parent's counts, which cost it nothing.
func TestForkCounts(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "forkcounts.c")
	for _, c := range []struct{ setting, want string }{
		{"TA_STATS_FILE=", "all\nown\n"},
		{"TA_STATS_FILE=" + filepath.Join(t.TempDir(), "%p"), "own\nown\n"},
	} {
		r := preloaded(t, []string{c.setting}, prog)
		if r.Stdout != c.want || r.Stderr != "" {
			t.Errorf("%s: %+v, not %q", c.setting, r, c.want)
		}
	}
}

// TestForkInHandler: a fork in a signal handler, wherever the handler came between.
func TestForkInHandler(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "handler.c")
	for _, name := range []string{"small", "medium", "large", "huge", "no wait"} {
		t.Run(name, func(t *testing.T) {
			if r := testlib.Run(t, testlib.Cmd{Args: []string{prog, name}, Env: quiet,
				Preload: true}); r != (testlib.Result{}) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestForkAndStdio: glibc's fork waits for stdio's list of files, and who holds that may
// allocate.
func TestForkAndStdio(t *testing.T) {
	t.Parallel()
	cases(t, testlib.CC(t, "forkio.c"), nil, "held elsewhere", "alone", "held here")
}

// TestForkHandlers: other libraries' fork handlers allocate, whether they were
// registered before ours or after.
func TestForkHandlers(t *testing.T) {
	t.Parallel()
	cases(t, testlib.CC(t, "atfork.c"), nil, "registered after")
	lib := testlib.CC(t, "atfork.c", "-DLIBRARY", "-shared", "-fPIC")
	cases(t, testlib.CC(t, "atfork.c", "-Wl,--no-as-needed", lib), nil, "registered before")
}
