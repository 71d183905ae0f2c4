package programs

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// program is one command which must behave the same plain and preloaded.
type program struct {
	name   string
	needs  []string // further programs that the command calls
	args   []string // "@name" stands for the absolute path of testdata/name
	stdin  string
	env    []string
	status int // what both runs must end with
	limit  time.Duration
	// ordinary runs the command as a user other than root.
	ordinary bool
	// unseen says why a preloaded run cannot leave a statistics file.
	unseen string
	// prepare fills the empty folder that the command runs in.
	prepare func(t *testing.T, dir string)
}

// script is a program that bash runs with pipefail set, so that a failure in
// the middle of a pipe is seen.
func script(name, text string, needs ...string) program {
	return program{name: name, needs: needs, args: []string{"bash", "-o", "pipefail", "-c", text}}
}

// fixedEnv takes out of the surroundings what would change a program's output.
var fixedEnv = []string{
	"LC_ALL=C", "TZ=UTC", "TERM=dumb", "COLUMNS=80", "DEBUGINFOD_URLS=",
	"PYTHONHASHSEED=0", "PYTHONDONTWRITEBYTECODE=1", "PYTHONWARNINGS=ignore::DeprecationWarning", "NO_COLOR=1", "NODE_NO_WARNINGS=1",
}

// runAll runs every program of a table as a subtest. They run one after the
// other: many of them use both processors of a small machine on their own.
func runAll(t *testing.T, table []program) {
	t.Helper()
	for _, p := range table {
		t.Run(p.name, func(t *testing.T) { runBoth(t, p) })
	}
}

// withEnv returns the table again with variables added to each program.
func withEnv(table []program, env ...string) []program {
	var out []program
	for _, p := range table {
		p.name += "/" + strings.Join(env, ",")
		p.env = append(append([]string{}, p.env...), env...)
		out = append(out, p)
	}
	return out
}

func runBoth(t *testing.T, p program) {
	t.Helper()
	testlib.Need(t, append([]string{p.args[0]}, p.needs...)...)
	// One path serves both runs, because programs print and store their folder.
	dir := filepath.Join(openFolder(t), "work")
	plain := runOnce(t, p, dir, nil)
	if plain.Status != p.status {
		t.Fatalf("without the library: status %d, want %d\nstdout: %s\nstderr: %s",
			plain.Status, p.status, clip(plain.Stdout), clip(plain.Stderr))
	}
	pre := newPreload(t, openFolder(t))
	compare(t, plain, runOnce(t, p, dir, pre))
	if p.unseen == "" {
		checkStats(t, pre.stats)
	}
}

// runOnce runs the program in an empty dir, preloaded unless pre is nil.
func runOnce(t *testing.T, p program, dir string, pre *preload) testlib.Result {
	t.Helper()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if p.prepare != nil {
		p.prepare(t, dir)
	}
	var args []string
	for _, a := range p.args {
		if name, ok := strings.CutPrefix(a, "@"); ok {
			a = testdata(name)
		}
		args = append(args, a)
	}
	c := testlib.Cmd{Args: args, Dir: dir, Stdin: p.stdin, Timeout: p.limit}
	c.Env = append(append(c.Env, fixedEnv...), p.env...)
	folders := []string{dir}
	if pre != nil {
		c.Env = append(c.Env, pre.env...)
		folders = append(folders, pre.stats)
	}
	if p.ordinary {
		c.Args = append(become(t, folders...), args...)
	}
	return testlib.Run(t, c)
}

// compare reports how a preloaded run differs from the plain one.
func compare(t *testing.T, plain, preloaded testlib.Result) {
	t.Helper()
	if plain.Status != preloaded.Status {
		t.Errorf("status: plain %d, preloaded %d", plain.Status, preloaded.Status)
	}
	compareText(t, "stdout", plain.Stdout, preloaded.Stdout)
	compareText(t, "stderr", plain.Stderr, preloaded.Stderr)
}

// compareText shows both texts from a little before their first difference.
func compareText(t *testing.T, what, plain, preloaded string) {
	t.Helper()
	if plain == preloaded {
		return
	}
	at := 0
	for at < len(plain) && at < len(preloaded) && plain[at] == preloaded[at] {
		at++
	}
	from := max(0, at-200)
	t.Errorf("%s differs from byte %d on\n--- plain\n%s\n--- preloaded\n%s",
		what, at, clip(plain[from:]), clip(preloaded[from:]))
}

func clip(s string) string {
	const most = 1500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// ours tells this project's library from another allocator that TA_TEST_LIB
// names, which writes no statistics.
func ours(t *testing.T) bool {
	return strings.HasPrefix(filepath.Base(testlib.Lib(t)), "libtieralloc")
}

// checkStats proves that the library was in the preloaded run: at least one
// process has left a report, each of the named programs has left one, and every
// report is one JSON object that names its process.
func checkStats(t *testing.T, dir string, programs ...string) {
	t.Helper()
	if !ours(t) {
		return
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Error("no process left a statistics file: was the library loaded?")
	}
	for _, name := range programs {
		if found, _ := filepath.Glob(filepath.Join(dir, "*."+name+".json")); len(found) == 0 {
			t.Errorf("%s left no statistics file", name)
		}
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var report struct {
			PID     int
			Program string
			Calls   map[string]json.RawMessage
			Heap    map[string]json.RawMessage
		}
		if err := json.Unmarshal(text, &report); err != nil {
			t.Errorf("%s: %v\n%s", filepath.Base(f), err, clip(string(text)))
		} else if report.PID == 0 || report.Program == "" || report.Calls["malloc"] == nil ||
			report.Heap["bytes_live"] == nil {
			t.Errorf("%s lacks pid, program, calls.malloc or heap.bytes_live: %s", filepath.Base(f),
				clip(string(text)))
		}
	}
}

func testdata(name string) string {
	return filepath.Join(testlib.Root(), "tests", "programs", "testdata", name)
}

// write stores a file in dir.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
