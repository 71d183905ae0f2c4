package numa

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// check is a script for the guest, and the judge of what it leaves.
type check struct {
	name   string
	env    string // NAME=value words; a value with blanks in it belongs in the script
	plain  bool   // without the library
	script string // for busybox's sh, in a folder of its own
	status int    // what it must end with
	stderr string // what it must write to standard error, all of it
	judge  func(t *testing.T, r *results)
}

// results are what a check left behind.
type results struct {
	dir    string // its folder in the guest, as it was at the end
	stdout string
}

// read is a file that the check left.
func (r *results) read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatalf("%v\nstdout: %s", err, r.stdout)
	}
	return string(text)
}

// numbers are the lines of the output that begin with the words, each followed by
// numbers.
func (r *results) numbers(t *testing.T, words string) [][]int64 {
	t.Helper()
	var all [][]int64
	for line := range strings.Lines(r.stdout) {
		rest, ok := strings.CutPrefix(line, words+" ")
		if !ok {
			continue
		}
		var row []int64
		for _, field := range strings.Fields(rest) {
			n, err := strconv.ParseInt(field, 10, 64)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			row = append(row, n)
		}
		all = append(all, row)
	}
	if all == nil {
		t.Fatalf("no line begins with %q:\n%s", words, r.stdout)
	}
	return all
}

// guest is a machine and what runs on it.
type guest struct {
	nodes  string // vm.sh's -n
	words  string // and its -p
	files  []string
	checks []check
}

// run boots the guest once, and judges every check as a subtest.
func (g *guest) run(t *testing.T) {
	t.Helper()
	out := t.TempDir()
	// The guest ends with the test, also where go test's time is up.
	testlib.Need(t, "setpriv")
	r := testlib.Run(t, testlib.Cmd{Args: append([]string{"setpriv", "--pdeathsig", "TERM",
		"./vm.sh", "-n", g.nodes, "-p", g.words, "-o", out}, g.files...),
		Stdin: g.script(), Timeout: 10 * time.Minute})
	const missing = 123
	switch {
	case r.Status == missing && os.Getenv("CI") != "true":
		t.Skip(r.Stderr)
	case r.Status != 0:
		t.Fatalf("%+v", r)
	}
	t.Logf("seconds since the boot:\n%s", r.Stdout)
	for _, c := range g.checks {
		t.Run(c.name, func(t *testing.T) { c.finish(t, filepath.Join(out, c.folder())) })
	}
}

func (c *check) folder() string { return strings.ReplaceAll(c.name, " ", "-") }

// hung is when a check has no more to hope for, in seconds. The guest's clock goes on while busy
// neighbours keep the guest waiting: beside twenty of them one check took more than 1,000.
const hung = 2 * 3600

// script runs all checks, one after the other. One that hangs or dies does not keep the
// others from running.
func (g *guest) script() string {
	var b strings.Builder
	for _, c := range g.checks {
		fmt.Fprintf(&b, "echo $(cut -d ' ' -f 1 /proc/uptime) %s\nmkdir /out/%s && cd /out/%s || "+
			"exit 1\n", c.name, c.folder(), c.folder())
		b.WriteString("cat >script <<'END OF THE CHECK'\n")
		for _, word := range strings.Fields(c.env) {
			name, value, _ := strings.Cut(word, "=")
			fmt.Fprintf(&b, "export %s='%s'\n", name, value)
		}
		if !c.plain {
			b.WriteString("export TA_STATS_FILE=/out/" + c.folder() +
				"/%e.json LD_PRELOAD=/guest/libtieralloc.so\n")
		}
		b.WriteString(c.script)
		b.WriteString("\nEND OF THE CHECK\n")
		fmt.Fprintf(&b, "timeout -s KILL %d sh script >stdout 2>stderr\necho $? >status\n", hung)
	}
	return b.String()
}

// finish looks at what every check must have.
func (c *check) finish(t *testing.T, dir string) {
	t.Helper()
	r := &results{dir: dir}
	r.stdout = r.read(t, "stdout")
	stderr, status := r.read(t, "stderr"), strings.TrimSpace(r.read(t, "status"))
	if status != strconv.Itoa(c.status) || stderr != c.stderr {
		t.Fatalf("status %s, not %d\nstdout: %s\nstderr: %s\nwant stderr: %s", status, c.status,
			r.stdout, stderr, c.stderr)
	}
	if c.judge != nil {
		c.judge(t, r)
	}
}

// program compiles testdata/NAME.c and returns its path.
func program(t *testing.T, name string, flags ...string) string {
	t.Helper()
	return testlib.CC(t, name+".c", append([]string{"-I" +
		filepath.Join(testlib.Root(), "interpose")}, flags...)...)
}

// goBuild runs `go ARGS`, the first of which is a verb that takes -o, and returns the
// path of what it made.
func goBuild(t *testing.T, out string, args ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), out)
	cmd := exec.Command("go", append([]string{args[0], "-o", path}, args[1:]...)...)
	cmd.Dir = testlib.Root()
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %q: %v\n%s", args, err, text)
	}
	return path
}
