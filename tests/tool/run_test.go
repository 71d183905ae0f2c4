package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/testlib"
)

func TestRunStatus(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, []byte("no program"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x7fELFnot"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		word   string
	}{
		{[]string{"true"}, 0, "FAST"},
		{[]string{"sh", "-c", "exit 3"}, 3, "FAST"},
		{[]string{"sh", "-c", "exit 255"}, 255, "FAST"},
		{[]string{"sh", "-c", "kill -TERM $$"}, 128 + 15, "SIGTERM"},
		{[]string{"sh", "-c", "kill -KILL $$"}, 128 + 9, "SIGKILL"},
		{[]string{"sh", "-c", "kill -SEGV $$"}, 128 + 11, "SIGSEGV"},
		{[]string{"no-such-program"}, 127, "no-such-program: command not found"},
		{[]string{"/no/such/program"}, 127, "command not found"},
		{[]string{plain}, 126, "permission denied"},
		{[]string{dir}, 126, "is a directory"},
		{[]string{garbage}, 126, "exec format error"},
		{[]string{}, 2, "no command"},
		{[]string{"--fast-sotf", "1M", "true"}, 2, "--fast-sotf"},
		{[]string{"--fast-soft"}, 2, "needs an argument"},
		{[]string{"--json", "/no/such/folder/x", "true"}, 125, "/no/such/folder/x"},
		{[]string{"--json", dir, "true"}, 125, dir},
		{[]string{"--library", "/no/such/lib.so", "true"}, 125, "/no/such/lib.so"},
		{[]string{"--library", plain, "true"}, 125, "not a shared library"},
		{[]string{"--library", garbage, "true"}, 125, garbage},
	} {
		r := run(t, nil, c.args...)
		if r.Status != c.status || r.Stdout != "" {
			t.Errorf("%q: status %d, not %d; %q", c.args, r.Status, c.status, r.Stdout)
		}
		says(t, r.Stderr, c.word)
	}
}

// TestRunLibraryBeside: without --library it is the one in the tool's own folder, and
// through a link to the tool as well.
func TestRunLibraryBeside(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"tierallocctl": tool(t),
		"libtieralloc.so": testlib.Lib(t)} {
		text, err := os.ReadFile(target)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(t.TempDir(), "ctl")
	if err := os.Symlink(filepath.Join(dir, "tierallocctl"), link); err != nil {
		t.Fatal(err)
	}
	script := []string{link, "run", "-q", "sh", "-c", `echo "$LD_PRELOAD"`}
	r := testlib.Run(t, testlib.Cmd{Args: script, Env: quiet()})
	if r.Status != 0 || r.Stdout != filepath.Join(dir, "libtieralloc.so")+"\n" || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	os.Remove(filepath.Join(dir, "libtieralloc.so"))
	r = testlib.Run(t, testlib.Cmd{Args: script, Env: quiet()})
	if r.Status != 125 || r.Stdout != "" {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "--library", dir)
}

// TestRunLeavesAlone: the command's input, output, arguments and environment.
func TestRunLeavesAlone(t *testing.T) {
	r := testlib.Run(t, testlib.Cmd{
		Args: []string{tool(t), "run", "--library", testlib.Lib(t), "--quiet", "--slow-soft=3M",
			"--live", "--rules", "size>1:hot", "--",
			"sh", "-c", `cat; echo ` +
				`"$0|$1|$TA_SLOW_SOFT|$TA_STATS_LIVE|$TA_RULES|$TA_FAST_SOFT|$OTHER" ` +
				`>&2`, "--json", "a b"},
		Env: append(quiet(), "TA_SLOW_SOFT=1M", "TA_FAST_SOFT=7M", "OTHER=x",
			"TA_DEFAULT_HINT=hot"),
		Stdin: "input\n",
	})
	if r.Status != 0 || r.Stdout != "input\n" || r.Stderr != "--json|a b|3M|1|size>1:hot|7M|x\n" {
		t.Errorf("%+v", r)
	}
	r = run(t, []string{"LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6"}, "-q", "sh", "-c",
		`echo "$LD_PRELOAD"`)
	if want := testlib.Lib(t) + ":/lib/x86_64-linux-gnu/libm.so.6\n"; r.Stdout != want {
		t.Errorf("LD_PRELOAD is %q, not %q", r.Stdout, want)
	}
}

func TestRunSummary(t *testing.T) {
	r := run(t, nil, "--fast-hard", "64M", "--default-hint", "hot", "--", "sh", "-c",
		"echo out; (true); exit 4")
	if r.Status != 4 || r.Stdout != "out\n" {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "heap peak", "tier", "current", "peak", "FAST", "64 MiB", "NORMAL", "SLOW",
		"--stats-file",
		"allocs and frees count blocks, violations and rerouted requests, moved and failed "+
			"memory pages; wait is the time")
	r = run(t, nil, "--quiet", "true")
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("--quiet: %+v", r)
	}
}

// TestRunJSON: the report that is kept is the command's, and the settings were in force.
func TestRunJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.json")
	r := run(t, nil, "-q", "--json", path, "--normal-soft", "96M", "--default-hint", "cold", "sh",
		"-c", "echo $$; ls / >/dev/null; true")
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := valid(t, text)
	if strings.TrimSpace(r.Stdout) != fmt.Sprint(got.Pid) || got.Program == "ls" {
		t.Errorf("the report is of process %d, %s; the shell was %s", got.Pid, got.Program,
			r.Stdout)
	}
	if got.Tiers["normal"].CapacitySoft != 96<<20 || got.Policy.DefaultHint != "cold" ||
		got.Tiers["slow"].AllocCalls == 0 {
		t.Errorf("%+v", got)
	}
}

// TestRunStatsFile: reports stay where the user wants them, by flag or by variable.
func TestRunStatsFile(t *testing.T) {
	for _, how := range []string{"flag", "variable", "relative"} {
		dir := t.TempDir()
		pattern := dir + "/r.%p.%e"
		c := testlib.Cmd{Dir: dir, Env: quiet(),
			Args: []string{tool(t), "run", "--library", testlib.Lib(t)}}
		switch how {
		case "flag":
			c.Args = append(c.Args, "--stats-file", pattern)
		case "variable":
			c.Env = append(c.Env, "TA_STATS_FILE="+pattern)
		case "relative":
			c.Args = append(c.Args, "--stats-file", "r.%p.%e")
		}
		c.Args = append(c.Args, "sh", "-c", "cd /; cat </dev/null; exit 0")
		r := testlib.Run(t, c)
		files, _ := filepath.Glob(dir + "/r.*")
		if r.Status != 0 || len(files) != 2 {
			t.Errorf("%s: %+v, files %q", how, r, files)
		}
		says(t, r.Stderr, "FAST")
	}
}

// TestRunLeavesNothing: the folder for the statistics is gone.
func TestRunLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	for _, script := range []string{"true", "kill -9 $$"} {
		run(t, []string{"TMPDIR=" + dir}, "sh", "-c", script)
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s: %v is left", script, left)
		}
	}
}

// TestRunWithoutStatistics: it says why there are none. What the live page still says is of
// the program before exec.
func TestRunWithoutStatistics(t *testing.T) {
	static := testlib.CC(t, "nothing.c", "-static")
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!"+static+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		word   string
		page   bool
	}{
		{[]string{static}, 0, "statically linked", false},
		{[]string{script}, 0, "statically linked", false},
		{[]string{"sh", "-c", "exec " + static}, 0, "exec", true},
		{[]string{"--no-live", "sh", "-c", "exec " + static}, 0, "exec", false},
		{[]string{"sh", "-c", "unset LD_PRELOAD; exec true"}, 0, "LD_PRELOAD", true},
		{[]string{"--disable", "true"}, 0, "TA_DISABLE", false},
		{[]string{"--no-live", "sh", "-c", "kill -9 $$"}, 137, "SIGKILL", false},
		{[]string{"--no-live", "sh", "-c", "kill -9 $$"}, 137,
			"with a live page its last figures remain", false},
	} {
		path := filepath.Join(t.TempDir(), "x.json")
		r := run(t, nil, append([]string{"--json", path}, c.args...)...)
		if r.Status != c.status {
			t.Errorf("%q: %+v", c.args, r)
		}
		says(t, r.Stderr, "no statistics", c.word)
		if _, err := os.Stat(path); (err == nil) != c.page {
			t.Errorf("%q: the figures in the file: %v", c.args, err)
		}
	}
}

// TestRunLivePage: of a command that a signal ends the last live figures are shown and kept,
// though nobody asked for a page. None is left behind.
func TestRunLivePage(t *testing.T) {
	testlib.Need(t, "perl")
	for _, s := range []struct {
		name   string
		number int
	}{{"SIGPIPE", 13}, {"SIGTERM", 15}, {"SIGKILL", 9}} {
		path := filepath.Join(t.TempDir(), "x.json")
		r := run(t, nil, "--json", path, "perl", "-e",
			fmt.Sprintf(`print $$; for my $i (1..60) { push @a, map {"x" x 1000} 1..200; select `+
				`undef, undef, undef, 0.01 } close STDOUT; kill %d, $$`, s.number))
		if r.Status != 128+s.number {
			t.Errorf("%+v", r)
		}
		says(t, r.Stderr, s.name, "live page", "NORMAL")
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := valid(t, text)
		if got.Program != "perl" || got.Tiers["normal"].AllocCalls == 0 ||
			fmt.Sprint(got.Pid) != r.Stdout {
			t.Errorf("%+v", got)
		}
		if _, err := os.Stat("/dev/shm/tieralloc." + r.Stdout); !os.IsNotExist(err) {
			t.Errorf("the page is left: %v", err)
		}
	}
}

// TestRunPageStays: a page in a place that the user chose is theirs.
func TestRunPageStays(t *testing.T) {
	dir := t.TempDir()
	r := run(t, nil, "--live="+dir+"/%p", "sh", "-c", "kill -9 $$")
	says(t, r.Stderr, "SIGKILL", "live page", "NORMAL")
	if files, _ := os.ReadDir(dir); r.Status != 137 || len(files) != 1 {
		t.Errorf("%+v, %v", r, files)
	}
}

// TestRunPageRefused: that another file is in the page's place is said, and it stays.
func TestRunPageRefused(t *testing.T) {
	dir := t.TempDir()
	r := run(t, nil, "--live="+dir+"/%p", "sh", "-c",
		"rm "+dir+"/$$; echo precious >"+dir+"/$$; echo $$; exec true")
	says(t, r.Stderr, "tieralloc: cannot make TA_STATS_LIVE "+dir,
		": error 17 (another file is there)\n", "FAST")
	if text, err := os.ReadFile(filepath.Join(dir,
		strings.TrimSpace(r.Stdout))); string(text) != "precious\n" || r.Status != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestRunIsSeen: stats sees what run has started, unless it shall not.
func TestRunIsSeen(t *testing.T) {
	testlib.Need(t, "perl")
	for flag, want := range map[string]bool{"--": true, "--no-live": false, "--live=0": false} {
		cmd := start(t, nil, tool(t), "run", "-q", "--library", testlib.Lib(t), flag, "perl", "-e",
			hog)
		var children []string
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", cmd.Process.Pid))
		for _, name := range files { // whichever thread has started it
			text, _ := os.ReadFile(name)
			children = append(children, strings.Fields(string(text))...)
		}
		if len(children) != 1 {
			t.Fatalf("children %q", children)
		}
		r := ctl(t, nil, "stats", children[0])
		if (r.Status == 0) != want {
			t.Errorf("%s: %+v", flag, r)
		}
		cmd.Process.Signal(syscall.SIGTERM) // it passes that on, and removes the page
		cmd.Wait()
	}
}

// TestRunForgedPage: a page that another user has put in the place of the command's is not
// taken for it, and stays.
func TestRunForgedPage(t *testing.T) {
	r := inNamespace(t, `
		TA_STATS_LIVE=/mnt/dead.%p LD_PRELOAD=/mnt/lib.so perl -e 'kill 9, $$'
		./ctl run --library /mnt/lib.so -- perl -e '
			open F, "<", (glob "/mnt/dead.*")[0]; binmode F; local $/; $page = <F>;
			substr($page, 24, 8) = pack "Q", $$; substr($page, 32, 8) = pack "Q", 2e18;
			$name = "/dev/shm/tieralloc.$$"; unlink $name; open G, ">", $name; binmode G;
				print G $page; close G;
			chown 12345, 12345, $name; kill 9, $$'
		ls /dev/shm | wc -l`)
	if !strings.HasSuffix(r.Stdout, "1\n") || !strings.Contains(r.Stderr, "no statistics of perl") {
		t.Errorf("%+v", r)
	}
}

// TestRunIdle: run names settings without effect, such as a cap on a tier that nothing is sent to,
// and what to add, before the program starts. --quiet leaves them out.
func TestRunIdle(t *testing.T) {
	const line = "tierallocctl: --fast-hard has no effect: no rule and no default hint sends " +
		"anything to FAST, but --default-hint prefer_fast (TA_DEFAULT_HINT) would"
	simulated := []string{"TA_USE_LIBNUMA=0", "TA_CUDA_LEAKS=1"}
	for _, c := range []struct {
		flags string
		named bool
	}{
		{"--fast-hard 64M", true},
		{"--fast-hard 64M --default-hint prefer_fast", false},
		{"--fast-hard 64M --rules size>=1M:hot", false},
		{"--normal-hard 64M", false},
		{"--quiet --fast-hard 64M", false},
	} {
		r := run(t, simulated, append(strings.Fields(c.flags), "--", "sh", "-c", "echo begun >&2")...)
		before, _, _ := strings.Cut(r.Stderr, "begun\n")
		if r.Status != 0 || strings.HasPrefix(before, line) != c.named || !c.named && before != "" {
			t.Errorf("%s: %+v", c.flags, r)
		}
	}
	r := run(t, append(simulated, "TA_FAST_SOFT=1M"), "true")
	says(t, r.Stderr, "tierallocctl: TA_FAST_SOFT has no effect: ")
}
