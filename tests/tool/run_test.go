package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
		{[]string{"--library", plain, "true"}, 125, "no shared library"},
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
	for name, target := range map[string]string{"tierallocctl": tool(t), "libtieralloc.so": testlib.Lib(t)} {
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
		Args: []string{tool(t), "run", "--library", testlib.Lib(t), "--quiet", "--slow-soft=3M", "--live", "--rules", "size>1:hot", "--",
			"sh", "-c", `cat; echo "$0|$1|$TA_SLOW_SOFT|$TA_STATS_LIVE|$TA_RULES|$TA_FAST_SOFT|$OTHER" >&2`, "--json", "a b"},
		Env:   append(quiet(), "TA_SLOW_SOFT=1M", "TA_FAST_SOFT=7M", "OTHER=x", "TA_DEFAULT_HINT=hot"),
		Stdin: "input\n",
	})
	if r.Status != 0 || r.Stdout != "input\n" || r.Stderr != "--json|a b|3M|1|size>1:hot|7M|x\n" {
		t.Errorf("%+v", r)
	}
	r = run(t, []string{"LD_PRELOAD=/lib/x86_64-linux-gnu/libm.so.6"}, "-q", "sh", "-c", `echo "$LD_PRELOAD"`)
	if want := testlib.Lib(t) + ":/lib/x86_64-linux-gnu/libm.so.6\n"; r.Stdout != want {
		t.Errorf("LD_PRELOAD is %q, not %q", r.Stdout, want)
	}
}

func TestRunSummary(t *testing.T) {
	r := run(t, nil, "--fast-hard", "64M", "--default-hint", "hot", "--", "sh", "-c", "echo out; (true); exit 4")
	if r.Status != 4 || r.Stdout != "out\n" {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "heap peak", "tier", "current", "peak", "FAST", "64 MiB", "NORMAL", "SLOW", "--stats-file")
	r = run(t, nil, "--quiet", "true")
	if r.Status != 0 || r.Stderr != "" {
		t.Errorf("--quiet: %+v", r)
	}
}

// TestRunJSON: the report that is kept is the command's, and the settings were in force.
func TestRunJSON(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kept.json")
	r := run(t, nil, "-q", "--json", path, "--normal-soft", "96M", "--default-hint", "cold", "sh", "-c", "echo $$; ls / >/dev/null; true")
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("%+v", r)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := valid(t, text)
	if strings.TrimSpace(r.Stdout) != fmt.Sprint(got.Pid) || got.Program == "ls" {
		t.Errorf("the report is of process %d, %s; the shell was %s", got.Pid, got.Program, r.Stdout)
	}
	if got.Tiers["normal"].CapacitySoft != 96<<20 || got.Policy.DefaultHint != "cold" || got.Tiers["slow"].AllocCalls == 0 {
		t.Errorf("%+v", got)
	}
}

// TestRunStatsFile: reports stay where the user wants them, by flag or by variable.
func TestRunStatsFile(t *testing.T) {
	for _, how := range []string{"flag", "variable", "relative"} {
		dir := t.TempDir()
		pattern := dir + "/r.%p.%e"
		c := testlib.Cmd{Dir: dir, Env: quiet(), Args: []string{tool(t), "run", "--library", testlib.Lib(t)}}
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

// TestRunWithoutStatistics: it says why there are none.
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
	}{
		{[]string{static}, 0, "statically linked"},
		{[]string{script}, 0, "statically linked"},
		{[]string{"sh", "-c", "exec " + static}, 0, "exec"},
		{[]string{"sh", "-c", "unset LD_PRELOAD; exec true"}, 0, "LD_PRELOAD"},
		{[]string{"--disable", "true"}, 0, "TA_DISABLE"},
		{[]string{"sh", "-c", "kill -9 $$"}, 137, "SIGKILL"},
	} {
		path := filepath.Join(t.TempDir(), "x.json")
		r := run(t, nil, append([]string{"--json", path}, c.args...)...)
		if r.Status != c.status {
			t.Errorf("%q: %+v", c.args, r)
		}
		says(t, r.Stderr, "no statistics", c.word)
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%q: a file was made", c.args)
		}
	}
}

// TestRunLivePage: of a command that was killed the last live figures are shown.
func TestRunLivePage(t *testing.T) {
	testlib.Need(t, "perl")
	dir := t.TempDir()
	path := filepath.Join(dir, "x.json")
	r := run(t, nil, "--live="+dir+"/%p", "--json", path, "perl", "-e",
		`for my $i (1..60) { push @a, map {"x" x 1000} 1..200; select undef, undef, undef, 0.01 } kill 9, $$`)
	if r.Status != 137 {
		t.Errorf("%+v", r)
	}
	says(t, r.Stderr, "SIGKILL", "live page", "NORMAL")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := valid(t, text); got.Program != "perl" || got.Tiers["normal"].AllocCalls == 0 {
		t.Errorf("%+v", got)
	}
}
