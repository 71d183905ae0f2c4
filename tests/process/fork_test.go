package process

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

func TestFork(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "fork.c")
	cases(t, prog, nil, "unprepared", "vfork")
	t.Run("threads", func(t *testing.T) {
		dir := t.TempDir()
		clean(t, preloaded(t, []string{"TA_STATS_FILE=" + filepath.Join(dir, "%p")}, prog, "threads"))
		files := statsFiles(t, dir)
		if len(files) < 61 {
			t.Errorf("%d files of 60 children, their children and the parent", len(files))
		}
		for _, f := range files {
			validReport(t, filepath.Join(dir, f))
		}
	})
}

// TestForkInHandler: the program may wait for itself for ever, so it has a time
// limit of its own, after which its whole group is ended.
func TestForkInHandler(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "handler.c")
	for _, name := range []string{"small", "medium", "large", "huge", "no wait"} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			cmd := exec.Command(prog, name)
			cmd.Env = append(append(cmd.Environ(), quiet...), "LD_PRELOAD="+testlib.Lib(t))
			cmd.Stdout, cmd.Stderr = &out, &out
			cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			hung := time.AfterFunc(40*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
			err := cmd.Wait()
			if !hung.Stop() {
				t.Errorf("hung; it said: %s", clip(out.String()))
			} else if err != nil || out.Len() != 0 {
				t.Errorf("%v: %s", err, clip(out.String()))
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
