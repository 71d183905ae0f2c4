package tool

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

// someReport is a statistics file of a short program.
func someReport(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.json")
	if r := run(t, nil, "-q", "--json", path, "--slow-hard", "77M", "sh", "-c",
		"true"); r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	return path
}

func TestStatsFile(t *testing.T) {
	path := someReport(t)
	r := ctl(t, nil, "stats", path)
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	says(t, squeeze(r.Stdout), "sh (process ", "hard cap - - 77 MiB", "malloc ",
		"policy: default hint warm, 0 rules")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if r := ctl(t, nil, "stats", path, "--json"); r.Status != 0 || r.Stdout != string(text) {
		t.Errorf("--json is not the file as it is: %+v", r)
	}
}

// TestStatsRefuses: what is no statistics of ours is said to be none.
func TestStatsRefuses(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(someReport(t))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	const magic = "tierlive"
	for _, c := range []struct{ arg, word string }{
		{filepath.Join(dir, "none"), "no such file"},
		{dir, "not a regular file"},
		{fifo, "not a regular file"},
		{"/dev/zero", "not a regular file"},
		{file("empty", ""), "empty"},
		{file("text", "hello\n"), "not statistics of tieralloc"},
		{file("other", `{"schema": "other/1"}`), `"other/1"`},
		{file("cut", string(text[:len(text)/2])), "cut short"},
		{file("binary", "\x00\x01\xff"), "not statistics of tieralloc"},
		{file("short", magic), "not statistics of tieralloc"},
		{file("old", magic+strings.Repeat("\x09", 5000)), "live page"},
		{file("damaged", magic+"\x01\x00\x00\x00\x00\x00\x00\x00"+strings.Repeat("\x00", 5000)),
			"live page"},
		{"4194304", "no process 4194304"},
		{"0", "no such file"},
		{"-5x", "unknown shorthand flag"},
	} {
		r := ctl(t, nil, "stats", c.arg)
		if r.Status == 0 || r.Stdout != "" || strings.Contains(r.Stderr, "panic") {
			t.Errorf("%s: %+v", c.arg, r)
		}
		says(t, r.Stderr, c.word)
	}
}

// TestStatsNoPage: what to do about it is said.
func TestStatsNoPage(t *testing.T) {
	with := start(t, preloaded(t), "sh", "-c", "echo ready; sleep 100; :")
	r := ctl(t, nil, "stats", strconv.Itoa(with.Process.Pid))
	if r.Status != 1 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "has no live page", "TA_STATS_LIVE=1")
	without := start(t, nil, "sh", "-c", "echo ready; sleep 100; :")
	r = ctl(t, nil, "stats", strconv.Itoa(without.Process.Pid))
	if r.Status != 1 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "without libtieralloc.so", "tierallocctl run -- COMMAND")
}

// TestNoPages: one line says how to come by one.
func TestNoPages(t *testing.T) {
	r := inNamespace(t, "./ctl stats; ./ctl top --once --interval 100ms")
	const line = "No live pages. For a process to have one, start it by tierallocctl run -- " +
		"COMMAND, or with TA_STATS_LIVE=1.\n"
	if r.Status != 0 || strings.Count(r.Stdout, line) != 2 || strings.Count(r.Stdout, "\n") != 3 {
		t.Errorf("%+v", r)
	}
}

// TestWatch: figures are shown again and again, until the process has ended.
func TestWatch(t *testing.T) {
	testlib.Need(t, "perl")
	hogging := start(t, preloaded(t, "TA_STATS_LIVE="+t.TempDir()+"/%p"), "perl", "-e", hog)
	seen := filepath.Join(t.TempDir(), "seen")
	out, err := os.Create(seen)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd := exec.Command(tool(t), "stats", "--watch", "--interval", "100ms",
		strconv.Itoa(hogging.Process.Pid))
	cmd.Env = append(os.Environ(), quiet()...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Process.Kill()
	pictures := func() []string {
		text, _ := os.ReadFile(seen)
		return strings.Split("\n"+string(text), "\nrunning; figures from ")
	}
	testlib.Wait(t, "two pictures", cmd.Process, func() bool { return len(pictures()) > 3 })
	hogging.Process.Kill()
	hogging.Wait()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	last := pictures()[len(pictures())-1]
	if !strings.Contains(last, "\nended: ") || strings.ContainsRune(last, '\x1b') {
		t.Errorf("%s", last)
	}
}

// TestWatchList: on a terminal each list takes the place of the last.
func TestWatchList(t *testing.T) {
	term := onTerminal(t, nil, tool(t), "stats", "--watch", "--interval", "100ms")
	testlib.Wait(t, "three lists", term.cmd.Process,
		func() bool { return strings.Count(term.text(), "\x1b[H\x1b[2J") > 2 })
	term.press("\x03")
	if err := testlib.End(term.cmd); err == nil || err.Error() != "signal: interrupt" {
		t.Errorf("ended with %v", err)
	}
}

// hog is a program that allocates all the time and says so.
const hog = `$| = 1; for (;;) { push @a, map {"x" x 500} 1..100; @a = () if @a > 20000; print ` +
	`"ready\n" unless $n++; select undef, undef, undef, 0.005 }`

// entry is one element of what stats --json says without an argument.
type entry struct {
	Path, Program, State string
	Pid                  int
	AgeNs                int64 `json:"age_ns"`
}

func listed(t *testing.T, env []string) map[int]entry {
	t.Helper()
	r := ctl(t, env, "stats", "--json")
	if r.Status != 0 {
		t.Fatalf("%+v", r)
	}
	var list []entry
	if err := json.Unmarshal([]byte(r.Stdout), &list); err != nil {
		t.Fatalf("%v in %s", err, r.Stdout)
	}
	byPid := map[int]entry{}
	for _, e := range list {
		byPid[e.Pid] = e
	}
	return byPid
}

// TestStatsElsewhere: a page in a place of its own is found while the process runs, by
// its number, and afterwards by TA_STATS_LIVE or its name.
func TestStatsElsewhere(t *testing.T) {
	testlib.Need(t, "perl")
	place := "TA_STATS_LIVE=" + t.TempDir() + "/%e.%p"
	cmd := start(t, preloaded(t, place), "perl", "-e", hog)
	pid := cmd.Process.Pid
	var path string
	testlib.Wait(t, "the page", cmd.Process, func() bool {
		path = listed(t, nil)[pid].Path
		return path != "" && ctl(t, nil, "stats", strconv.Itoa(pid)).Status == 0
	})
	if filepath.Base(path) != "perl."+strconv.Itoa(pid) {
		t.Errorf("the page is %s", path)
	}
	cmd.Process.Kill()
	cmd.Wait()
	if r := ctl(t, nil, "stats", strconv.Itoa(pid)); r.Status != 1 ||
		!strings.Contains(r.Stderr, "no process") {
		t.Errorf("%+v", r)
	}
	if r := ctl(t, nil, "stats", path); r.Status != 0 || !strings.HasPrefix(r.Stdout, "killed") {
		t.Errorf("%+v", r)
	}
	if r := ctl(t, []string{place}, "stats", strconv.Itoa(pid)); r.Status != 0 ||
		!strings.HasPrefix(r.Stdout, "killed") {
		t.Errorf("%+v", r)
	}
	if e := listed(t, []string{place})[pid]; e.State != "killed" || e.Program != "perl" ||
		e.AgeNs <= 0 {
		t.Errorf("%+v", e)
	}
}

// TestStatsOwnProgramName: programs overwrite their environment; the page is found by
// the file that they have mapped.
func TestStatsOverwrittenEnvironment(t *testing.T) {
	prog := testlib.CC(t, "overwrite.c")
	cmd := start(t, preloaded(t, "TA_STATS_LIVE="+t.TempDir()+"/page-%p"), prog)
	pid := strconv.Itoa(cmd.Process.Pid)
	environ, err := os.ReadFile("/proc/" + pid + "/environ")
	if err != nil || strings.Contains(string(environ), "TA_STATS_LIVE") {
		t.Fatalf("the environment is still there: %v", err)
	}
	if r := ctl(t, nil, "stats", pid); r.Status != 0 ||
		!strings.Contains(r.Stdout, "overwrite (process "+pid+")") {
		t.Errorf("%+v", r)
	}
}

// TestPrune runs in namespaces with a /dev/shm and a /proc of its own: the pages of
// other tests' processes would be listed, too. That another version has written one of them is
// no reason to fail.
func TestPrune(t *testing.T) {
	testlib.Need(t, "perl", "unshare")
	script := `mount -t tmpfs none /dev/shm || exit 99
		export TA_STATS_LIVE=1 LD_PRELOAD="$2"
		perl -e 'kill 9, $$'
		other=(/dev/shm/tieralloc.*)
		printf '\x7f' |
			LD_PRELOAD= dd of="${other[0]}" bs=1 seek=8 conv=notrunc status=none # another version's
		perl -e 'kill 9, $$'
		perl -e '` + hog + `' >/dev/null & running=$!
		sleep 0.5
		export LD_PRELOAD=
		"$1" stats --json; echo ==; "$1" top --once --interval 100ms >&2 && echo seen
		"$1" stats --prune; echo "$?"; ls /dev/shm
		kill -9 $running`
	r := testlib.Run(t, testlib.Cmd{Args: []string{"unshare", "-m", "-p", "-f", "--mount-proc",
		"bash", "-c", script, "x", tool(t), testlib.Lib(t)}, Env: quiet()})
	if r.Status == 99 || strings.Contains(r.Stderr, "unshare") {
		testlib.Lacks(t, "mount namespace to be had: "+r.Stderr)
	}
	list, rest, _ := strings.Cut(r.Stdout, "==\n")
	if strings.Count(list, `"state": "killed"`) != 2 ||
		strings.Count(list, `"state": "running"`) != 1 {
		t.Errorf("%+v", r)
	}
	if !strings.HasPrefix(rest, "seen\n") || strings.Count(rest,
		"removed /dev/shm/tieralloc.") != 2 || strings.Count(rest, "\ntieralloc.") != 1 {
		t.Errorf("%+v", r)
	}
}
