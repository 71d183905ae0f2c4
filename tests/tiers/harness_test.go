package tiers_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"tieralloc/internal/config"
	"tieralloc/internal/testlib"
)

// quiet is an environment that no caller's settings reach: every variable of the
// library is empty, which is the same as unset. On a machine with several nodes the
// tiers are simulated all the same.
var quiet = func() []string {
	env := []string{"LC_ALL=C", "LD_BIND_NOW=", "GLIBC_TUNABLES="}
	for i := uintptr(0); ; i++ {
		name, _, _, ok := config.Describe(i)
		if !ok {
			break
		}
		env = append(env, name+"=")
	}
	if severalNodes() {
		env = append(env, "TA_USE_LIBNUMA=0")
	}
	return env
}()

func severalNodes() bool {
	nodes, _ := filepath.Glob("/sys/devices/system/node/node[0-9]*")
	return len(nodes) > 1
}

// built are the programs compiled so far, in a folder for all tests.
var built struct {
	sync.Mutex
	dir  string
	path map[string]string
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "tiers")
	if err != nil {
		panic(err)
	}
	built.dir, built.path = dir, map[string]string{}
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// shared makes testlib put a program where the tests that follow find it, too.
type shared struct{ testing.TB }

func (shared) TempDir() string { return built.dir }

// compile returns the path of a program of testdata. The same name always comes with
// the same flags.
func compile(t *testing.T, name string, flags ...string) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.path[name] == "" {
		built.path[name] = testlib.CC(shared{t}, name, append(flags, "-ldl")...)
	}
	return built.path[name]
}

// cmd is a command with the library preloaded; env adds to the quiet one.
func cmd(env []string, args ...string) testlib.Cmd {
	return testlib.Cmd{Args: args, Env: append(slices.Clone(quiet), env...), Preload: true,
		Timeout: 2 * time.Minute}
}

// preloaded runs a command with the library.
func preloaded(t *testing.T, env []string, args ...string) testlib.Result {
	t.Helper()
	return testlib.Run(t, cmd(env, args...))
}

// clean fails the test unless the program ended with status 0 and without a word on
// standard error.
func clean(t *testing.T, r testlib.Result) {
	t.Helper()
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d\nstdout: %s\nstderr: %s", r.Status, clip(r.Stdout), clip(r.Stderr))
	}
}

// numbers are the fields of a program's output.
func numbers(t *testing.T, text string) []int64 {
	t.Helper()
	var list []int64
	for _, f := range strings.Fields(text) {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatalf("%v in %q", err, clip(text))
		}
		list = append(list, n)
	}
	return list
}

// played is what a script has left behind.
type played struct {
	answers []string
	to      map[string][]string // the answers by command
	json    []report            // of the script's json commands
	exit    report
}

// play runs a script in the driver. In each line, what stands behind => must be the
// answer; without it any will do. Reports are checked: those of json commands, and the
// one of each process at its end.
func play(t *testing.T, env []string, script string) played {
	t.Helper()
	return playIn(t, compile(t, "driver.c"), env, script)
}

func playIn(t *testing.T, driver string, env []string, script string) played {
	t.Helper()
	var commands, wants []string
	for line := range strings.Lines(script) {
		command, want, asked := strings.Cut(strings.TrimSpace(line), "=>")
		if command = strings.TrimSpace(command); command == "" {
			continue
		}
		commands = append(commands, command)
		switch {
		case command == "end":
		case command == "fork":
			wants = append(wants, "child")
		case asked:
			wants = append(wants, strings.TrimSpace(want))
		default:
			wants = append(wants, "")
		}
	}
	dir := t.TempDir()
	c := cmd(append(slices.Clone(env), "TA_STATS_FILE="+filepath.Join(dir, "%p")), driver)
	c.Stdin = strings.Join(commands, "\n")
	r := testlib.Run(t, c)
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d\nanswers: %s\nstderr: %s", r.Status, clip(r.Stdout), clip(r.Stderr))
	}
	p := played{answers: strings.Split(strings.TrimSuffix(r.Stdout, "\n"), "\n")}
	p.compare(t, commands, wants)
	read := checked
	if slices.Contains(env, "TA_BACKGROUND=1") { // its thread is in the middle of something
		read = valid
	}
	for _, a := range p.answers {
		if strings.HasPrefix(a, "{") {
			p.json = append(p.json, read(t, []byte(a)))
		}
	}
	p.onlyRises(t)
	p.readExit(t, dir)
	return p
}

// onlyRises fails the test where what has entered a tier or left it is less in a later report.
func (p *played) onlyRises(t *testing.T) {
	t.Helper()
	last := map[int64]*report{}
	for i := range p.json {
		now := &p.json[i]
		if was := last[now.Pid]; was != nil {
			for k, x := range now.tiers() {
				y := was.tiers()[k]
				if x.BlocksIn < y.BlocksIn || x.BlocksOut < y.BlocksOut || x.BytesIn < y.BytesIn ||
					x.BytesOut < y.BytesOut {
					t.Errorf("report %d, tier %d: %d blocks and %d bytes entered, %d and %d "+
						"left, after %d, %d, %d and %d", i, k,
						x.BlocksIn, x.BytesIn, x.BlocksOut, x.BytesOut, y.BlocksIn, y.BytesIn,
						y.BlocksOut, y.BytesOut)
				}
			}
		}
		last[now.Pid] = now
	}
}

// compare holds the answers to what is wanted. A forked child answers "child" first;
// the parent's answer to fork comes when the child has ended.
func (p *played) compare(t *testing.T, commands, wants []string) {
	t.Helper()
	p.to = map[string][]string{}
	at := 0
	next := func() string {
		if at == len(p.answers) {
			return "nothing"
		}
		at++
		return p.answers[at-1]
	}
	for _, command := range commands {
		if command == "end" {
			if got := next(); got != "status 0" {
				t.Errorf("the child ends with %q", got)
			}
			continue
		}
		got, want := next(), wants[0]
		wants = wants[1:]
		p.to[command] = append(p.to[command], got)
		if want != "" && got != want {
			t.Errorf("%s: %s, want %s", command, clip(got), want)
		}
	}
	if at != len(p.answers) {
		t.Errorf("%d answers too many", len(p.answers)-at)
	}
}

// readExit checks the statistics files. The first process is the one that has run
// longest: its children count from the fork.
func (p *played) readExit(t *testing.T, dir string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no statistics file: %v", err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		r := checked(t, text)
		if p.exit.Pid == 0 || r.Uptime > p.exit.Uptime {
			p.exit = r
		}
	}
}

func clip(s string) string {
	const most = 2500
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
