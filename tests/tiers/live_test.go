package tiers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
	"tieralloc/stats/live"
)

// background starts a command with the library preloaded and a script on its
// standard input, and sees to its end.
func background(t *testing.T, env []string, script string, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(args[0], args[1:]...)
	c.Env = append(append(append(os.Environ(), quiet...), env...), "LD_PRELOAD="+testlib.Lib(t))
	c.Stdin = strings.NewReader(script)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Kill()
		c.Wait()
	})
	return c
}

// snapshot reads a live page, which must be whole and valid.
func snapshot(t *testing.T, path string) (live.Snapshot, report) {
	t.Helper()
	p, err := live.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.JSON()
	if err != nil {
		t.Fatal(err)
	}
	return *s, valid(t, text)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// finished reports whether the process has made its page.
func finished(path string) bool {
	p, err := live.Open(path)
	if err != nil {
		return false
	}
	p.Close()
	return true
}

// TestLivePage: the page is there while the process runs, shows what it does, is gone
// when it ends by itself, and stays, with its last figures, when it is killed.
func TestLivePage(t *testing.T) {
	driver := compile(t, "driver.c")
	const script = "new a 7 hot 6M\nnew b 5 cold 300K\nsleep 150\ntick 2 1\nsleep 60000"
	start := func(script string) (*exec.Cmd, string) {
		c := background(t, []string{"TA_STATS_LIVE=1"}, script, driver)
		found := ""
		testlib.Wait(t, "a page in /dev/shm", c.Process, func() bool {
			names, _ := filepath.Glob(fmt.Sprintf("/dev/shm/tieralloc.%d*", c.Process.Pid))
			if len(names) == 1 {
				found = names[0]
			}
			return found != "" || c.ProcessState != nil
		})
		t.Cleanup(func() { os.Remove(found) })
		return c, found
	}
	c, path := start(script)
	if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("the page: %v %v", info.Mode(), err)
	}
	testlib.Wait(t, "figures of the blocks", c.Process, func() bool {
		if !finished(path) {
			return false
		}
		s, r := snapshot(t, path)
		if s.State != live.Running || int(r.Pid) != c.Process.Pid || r.Program != "driver" {
			t.Fatalf("state %v, pid %d, program %s", s.State, r.Pid, r.Program)
		}
		return r.Tiers.Fast.AllocCalls == 7 && r.Tiers.Slow.live() > 5*300*kib &&
			r.Tiers.Fast.Current == 42*mib
	})
	c.Process.Kill()
	c.Wait()
	if s, r := snapshot(t, path); s.State != live.Killed || r.Tiers.Fast.AllocCalls != 7 {
		t.Errorf("killed: state %v, fast %+v", s.State, r.Tiers.Fast)
	}

	c, path = start("new a 7 hot 6M\nsleep 300")
	if err := testlib.End(c); err != nil {
		t.Error(err)
	}
	if exists(path) {
		t.Error("the page of a process that has ended is still there")
	}
}

// TestLiveInBackground: with TA_BACKGROUND=1 the page is fresh though the process
// makes no further call.
func TestLiveInBackground(t *testing.T) {
	dir := t.TempDir()
	c := background(t, []string{"TA_STATS_LIVE=" + dir + "/%p", "TA_BACKGROUND=1"},
		"new a 7 hot 6M\nsleep 60000", compile(t, "driver.c"))
	path := filepath.Join(dir, fmt.Sprint(c.Process.Pid))
	testlib.Wait(t, "figures of the blocks", c.Process, func() bool {
		if !finished(path) {
			return false
		}
		_, r := snapshot(t, path)
		return r.Tiers.Fast.AllocCalls == 7
	})
}

// TestLiveTemplate: a page with a name of the user's stays, with the final figures,
// and each process has its own.
func TestLiveTemplate(t *testing.T) {
	dir := t.TempDir()
	p := play(t, []string{"TA_STATS_LIVE=" + dir + "/%e-%p"}, `
		new a 3 hot 6M => fast*3
		fork
		new b 2 cold 9000 => slow*2
		end
		free a
	`)
	names, _ := filepath.Glob(dir + "/driver-*")
	if len(names) != 2 {
		t.Fatalf("pages: %q", names)
	}
	for _, name := range names {
		s, r := snapshot(t, name)
		if s.State != live.Exited || !strings.HasSuffix(name, fmt.Sprint("-", r.Pid)) {
			t.Errorf("%s: state %v, pid %d", name, s.State, r.Pid)
		}
		fast, slow, frees := int64(3), int64(0), int64(3)
		if r.Pid != p.exit.Pid {
			fast, slow, frees = 0, 2, 0
		}
		if r.Tiers.Fast.AllocCalls != fast || r.Tiers.Fast.FreeCalls != frees ||
			r.Tiers.Slow.AllocCalls != slow {
			t.Errorf("%s: fast %+v, slow %+v", name, r.Tiers.Fast, r.Tiers.Slow)
		}
	}
}

// TestLiveRefused: a page that cannot be made is one line, and nothing that is there is
// lost.
func TestLiveRefused(t *testing.T) {
	dir := t.TempDir()
	run := func(template string) testlib.Result {
		return preloaded(t, []string{"TA_STATS_LIVE=" + template}, "/bin/echo", "done")
	}
	if r := run(dir + "/none/%p"); r.Stdout != "done\n" || r.Status != 0 ||
		strings.Count(r.Stderr, "\n") != 1 ||
		!strings.Contains(r.Stderr, "TA_STATS_LIVE") || !strings.Contains(r.Stderr, dir+"/none/") {
		t.Errorf("no such folder: %+v", r)
	}
	// bash keeps its number when it turns into echo: the name is known beforehand.
	other := filepath.Join(dir, "other")
	r := preloaded(t, nil, "bash", "-c",
		fmt.Sprintf(`echo data >%s; ln -s %[1]s %[2]s/$$.echo; TA_STATS_LIVE=%[2]s/%%p.%%e exec `+
			`/bin/echo done`, other, dir))
	if r.Stdout != "done\n" || r.Status != 0 || strings.Count(r.Stderr, "\n") != 1 ||
		!strings.Contains(r.Stderr, "TA_STATS_LIVE") {
		t.Errorf("a link in the way: %+v", r)
	}
	if text, err := os.ReadFile(other); string(text) != "data\n" {
		t.Errorf("the file in the way holds %q, %v", text, err)
	}
}

// TestLiveLeavesNothing: a shell that ran programs has left no page, neither of its
// own nor of the children that turned into them. It is tried in a mount namespace of
// its own, with nobody else's pages.
func TestLiveLeavesNothing(t *testing.T) {
	testlib.NeedMounts(t)
	r := testlib.Run(t, testlib.Cmd{Args: []string{"unshare", "-m", "bash", "-c", `
		mount -t tmpfs none /dev/shm || exit 99
		LD_PRELOAD=` + testlib.Lib(t) + ` TA_STATS_LIVE=1 bash -c 'ls / >/dev/null; /bin/true; (true); /bin/echo $(date) | cat >/dev/null; exec ls /dev/shm' | wc -l
		ls /dev/shm
	`}, Env: quiet})
	if r.Status == 99 {
		testlib.Lacks(t, "mount to be had: "+r.Stderr)
	}
	clean(t, r)
	// The page of the program that looked was there.
	if r.Stdout != "1\n" {
		t.Errorf("pages while it ran, and what is left in /dev/shm:\n%s", r.Stdout)
	}
}

// TestLiveUnderStorm reads the page of a process whose threads are at it: every reading
// is whole, and no tier is ever above its hard cap.
func TestLiveUnderStorm(t *testing.T) {
	dir := t.TempDir()
	env := []string{"TA_STATS_LIVE=" + dir + "/%p", "TA_FAST_HARD=24M", "TA_NORMAL_HARD=24M",
		"TA_SLOW_HARD=24M"}
	c := background(t, env, "", compile(t, "capstorm.c"), "1000", "9", "24", "24", "24", "12")
	path := filepath.Join(dir, fmt.Sprint(c.Process.Pid))
	testlib.Wait(t, "a page", c.Process, func() bool { return finished(path) })
	ended := make(chan error)
	go func() { ended <- testlib.End(c) }()
	readings := map[uint64]bool{}
	for running := true; running; {
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			running = false
		case <-time.After(3 * time.Millisecond):
		}
		s, r := snapshot(t, path)
		readings[s.Updates] = true
		if hard := []int64{r.Tiers.Fast.Hard, r.Tiers.Normal.Hard,
			r.Tiers.Slow.Hard}; s.Updates > 0 &&
			!slices.Equal(hard, []int64{24 * mib, 24 * mib, 24 * mib}) {
			t.Fatalf("hard caps %v", hard)
		}
	}
	if s, _ := snapshot(t, path); s.State != live.Exited || len(readings) < 2 {
		t.Errorf("%d different readings, the state at the end is %v", len(readings), s.State)
	}
}
