package tool

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/testlib"
	"tieralloc/stats"
)

// asked is a process whose profile is asked for.
type asked struct {
	*exec.Cmd
	pid, page, file string
}

// startAsked starts asked.c. The environment env is added to that with a page and a profile.
func startAsked(t *testing.T, mode string, env ...string) *asked {
	t.Helper()
	dir := t.TempDir()
	cmd := start(t, preloaded(t, append([]string{"TA_STATS_LIVE=" + dir + "/%p.page",
		"TA_PROFILE=" + dir + "/heap.%p.pb", "TA_PROFILE_RATE=64K"}, env...)...),
		testlib.CC(t, "asked.c", "-O1", "-rdynamic"), mode)
	pid := strconv.Itoa(cmd.Process.Pid)
	return &asked{cmd, pid, filepath.Join(dir, pid+".page"), filepath.Join(dir, "heap."+pid+".pb")}
}

// refused checks that profile fails with a message that has all the words.
func refused(t *testing.T, args []string, words ...string) {
	t.Helper()
	r := ctl(t, nil, append([]string{"profile"}, args...)...)
	if r.Status != 1 || r.Stdout != "" || strings.Count(r.Stderr, "\n") != 1 {
		t.Errorf("%q: %+v", args, r)
	}
	says(t, r.Stderr, words...)
}

// TestAdviseRunning: advise asks a running process, too; this one measures no heat.
func TestAdviseRunning(t *testing.T) {
	p := startAsked(t, "busy")
	r := ctl(t, nil, "advise", p.pid)
	if r.Status != 1 || r.Stdout != "" {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, p.file+": the profile has no heat: TA_PROFILE_HEAT=1 measures it")
}

// profiled runs the command. However busy the machine is, the process has time to answer.
func profiled(t *testing.T, args ...string) testlib.Result {
	t.Helper()
	return ctl(t, nil, append([]string{"profile", "--wait", "60s"}, args...)...)
}

// TestProfileRunning asks a process three times while it allocates, with differences between.
func TestProfileRunning(t *testing.T) {
	p := startAsked(t, "busy")
	dir := t.TempDir()
	old := filepath.Join(dir, "0.pb")
	if r := profiled(t, "-o", old, p.pid); r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	for i := 1; i < 3; i++ {
		time.Sleep(300 * time.Millisecond)
		says(t, profiled(t, "--type", "alloc_space", "--diff", old, p.pid).Stdout,
			"asked (process "+p.pid+")", "alloc_space +", " keeper")
		old = filepath.Join(dir, strconv.Itoa(i)+".pb")
		if r := profiled(t, "-o", old, p.pid); r.Status != 0 || r.Stderr != "" {
			t.Fatalf("%+v", r)
		}
	}
	says(t, profiled(t, "--flame", "-", p.pid).Stdout, "<svg", "keeper")
	if r := profiled(t, "--leaks", p.pid); r.Status != 0 || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	testlib.OnlyFiles(t, filepath.Dir(p.page), filepath.Base(p.page), filepath.Base(p.file))
}

// TestProfileIdle: an idle process answers if the library has a thread. Without one the tool says
// what to do, and goes on as soon as the process does.
func TestProfileIdle(t *testing.T) {
	p := startAsked(t, "idle", "TA_BACKGROUND=1")
	says(t, profiled(t, p.pid).Stdout, "asked (process "+p.pid+")", " keeper")
	p = startAsked(t, "idle")
	refused(t, []string{"--wait", "300ms", p.pid}, "process "+p.pid+" has not written",
		"in 300ms", "TA_BACKGROUND=1", "--wait")
}

// TestProfileForked: a forked child answers for itself.
func TestProfileForked(t *testing.T) {
	p := startAsked(t, "forks")
	var pages []string
	testlib.Wait(t, "the child's page", p.Process, func() bool {
		pages, _ = filepath.Glob(filepath.Join(filepath.Dir(p.page), "*.page"))
		return len(pages) == 2
	})
	for _, page := range pages {
		pid := strings.TrimSuffix(filepath.Base(page), ".page")
		time.Sleep(500 * time.Millisecond)
		r := profiled(t, "--type", "alloc_space", "--lines", "0", pid)
		says(t, r.Stdout, "asked (process "+pid+")", " keeper")
		if strings.Contains(r.Stdout, "child_keeper") != (pid != p.pid) {
			t.Errorf("process %s: %+v", pid, r)
		}
	}
}

// TestProfileRefused: processes that write no profile.
func TestProfileRefused(t *testing.T) {
	p := startAsked(t, "busy", "TA_PROFILE=")
	refused(t, []string{p.pid}, "process "+p.pid+" takes no profile", "TA_PROFILE=FILE")

	p = startAsked(t, "busy", "TA_STATS_LIVE=0")
	refused(t, []string{p.pid}, "process "+p.pid+" has no live page", "TA_STATS_LIVE=1")

	dir := filepath.Join(t.TempDir(), "folder")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p = startAsked(t, "busy", "TA_PROFILE="+dir+"/heap.pb")
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{p.pid}, "process "+p.pid+" cannot write its profile to "+dir+"/heap.pb",
		"no such file")

	refused(t, []string{"4194305"}, "there is no process 4194305")
	p = startAsked(t, "idle")
	change(t, p.page, 8, 9) // the version
	refused(t, []string{p.pid}, "format 0x9", "built with the library")
	if r := profiled(t, "--wait", "-1s", p.pid); r.Status != 2 {
		t.Errorf("%+v", r)
	}
}

// change stores a word of a file.
func change(t *testing.T, path string, at int64, word uint64) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteAt(binary.NativeEndian.AppendUint64(nil, word), at); err != nil {
		t.Fatal(err)
	}
}

// TestProfileGone: the process ends, or its page is cut short, while the tool waits.
func TestProfileGone(t *testing.T) {
	p := startAsked(t, "idle")
	go p.onceAsked(t, func() { _ = p.Process.Kill() })
	refused(t, []string{"--wait", "1m", p.pid}, "process "+p.pid+" ended before", "TA_PROFILE")

	p = startAsked(t, "idle")
	go p.onceAsked(t, func() { _ = os.Truncate(p.page, 4096) })
	refused(t, []string{"--wait", "1m", p.pid}, "process "+p.pid, "cut short")
}

// onceAsked calls f when the tool has asked the process.
func (p *asked) onceAsked(t *testing.T, f func()) {
	file, err := os.Open(p.page)
	if err != nil {
		t.Error(err)
		return
	}
	defer file.Close()
	const at = unsafe.Offsetof(stats.LivePage{}.Asks) + unsafe.Offsetof(stats.LiveAsk{}.Asked)
	word := make([]byte, 8)
	for binary.NativeEndian.Uint64(word) == 0 {
		if _, err := file.ReadAt(word, int64(at)); err != nil || t.Context().Err() != nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	f()
}

// TestProfileStranger: another program of the user writes anything to the request meanwhile.
func TestProfileStranger(t *testing.T) {
	p := startAsked(t, "busy")
	const at = unsafe.Offsetof(stats.LivePage{}.Asks)
	stop, done := make(chan bool), make(chan bool)
	file, err := os.OpenFile(p.page, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				word := binary.NativeEndian.AppendUint64(nil, rand.Uint64())
				_, _ = file.WriteAt(word, int64(at+unsafe.Offsetof(stats.LiveAsk{}.Asked)))
			}
		}
	}()
	for range 5 {
		r := profiled(t, p.pid)
		says(t, r.Stdout, "asked (process "+p.pid+")", " keeper")
	}
	close(stop)
	<-done
	// What the tool reads is not trusted either. Nobody answers: it finds the request answered.
	p = startAsked(t, "idle")
	change(t, p.page, int64(at+unsafe.Offsetof(stats.LiveAsk{}.Asked)), 1<<63)
	refused(t, []string{"--wait=1s", p.pid}, "has not written its profile")
	change(t, p.page, int64(at+unsafe.Offsetof(stats.LiveAsk{}.Asked)), 0)
	change(t, p.page, int64(at+unsafe.Offsetof(stats.LiveAsk{}.Done)), 1<<62)
	change(t, p.page, int64(at+unsafe.Offsetof(stats.LiveAsk{}.PathLen)), 1<<40)
	refused(t, []string{p.pid}, "damaged live page: no path is so long")
	change(t, p.page, int64(at+unsafe.Offsetof(stats.LiveAsk{}.PathLen)), 5)
	refused(t, []string{p.pid}, "damaged live page", "not an absolute path")
}

// TestProfileOtherUser: a user cannot ask another's process.
func TestProfileOtherUser(t *testing.T) {
	r := inNamespace(t, `
		TA_STATS_LIVE=1 TA_PROFILE=/mnt/heap.pb LD_PRELOAD=/mnt/lib.so ./asked busy >started &
		kept grep -q ready started
		as 12345 ./ctl profile $! && echo shown
		TA_STATS_LIVE=1 ./ctl profile $! >shown || cat shown
		kill -9 $!`, testlib.CC(t, "asked.c", "-O1", "-rdynamic"))
	if strings.Contains(r.Stdout, "shown") {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "permission denied", "as root")
}

// TestProfileFileByNumber: a file whose name is a number is a file.
func TestProfileFileByNumber(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := testlib.Run(t, testlib.Cmd{Args: []string{tool(t), "profile", "1"}, Dir: dir,
		Env: quiet()})
	says(t, r.Stderr, "1: not a profile: the file is empty")
}
