package tool

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/testlib"
)

// tool is the built tierallocctl.
func tool(t *testing.T) string {
	t.Helper()
	return testlib.Tool(t)
}

// quiet is an environment that no caller's settings reach.
func quiet() []string {
	env := []string{"LC_ALL=C", "LD_PRELOAD="}
	for _, entry := range os.Environ() {
		if name, _, _ := strings.Cut(entry, "="); strings.HasPrefix(name, "TA_") &&
			!strings.HasPrefix(name, "TA_TEST_") {
			env = append(env, name+"=")
		}
	}
	return env
}

// ctl runs the tool.
func ctl(t *testing.T, env []string, args ...string) testlib.Result {
	t.Helper()
	return testlib.Run(t, testlib.Cmd{Args: append([]string{tool(t)}, args...),
		Env: append(quiet(), env...)})
}

// reachableTool copies the tool and its library to a folder that every user may enter; the tree may
// lie in a private one.
func reachableTool(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "reachable")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := exec.Command("cp", tool(t), testlib.Lib(t), dir).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.Base(tool(t)))
}

// ctlAlone runs the tool as ctl does, with a /dev/shm and processes of its own where the machine
// allows it: the tool names pages of others that are damaged, or of another version.
func ctlAlone(t *testing.T, env []string, args ...string) testlib.Result {
	t.Helper()
	const mount = "mount -t tmpfs none /dev/shm"
	alone := []string{"unshare", "-m", "-p", "-f", "--mount-proc", "sh", "-c"}
	if exec.Command(alone[0], append(alone[1:], mount)...).Run() != nil {
		return ctl(t, env, args...)
	}
	return testlib.Run(t, testlib.Cmd{Args: append(append(alone, mount+` && exec "$0" "$@"`,
		tool(t)), args...), Env: append(quiet(), env...)})
}

// run runs a command by the tool. args are the flags and the command.
func run(t *testing.T, env []string, args ...string) testlib.Result {
	t.Helper()
	return ctl(t, env, append([]string{"run", "--library", testlib.Lib(t)}, args...)...)
}

// says fails the test unless text has all the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is missing in\n%s", w, text)
		}
	}
}

// squeeze makes each run of blanks one.
func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

// report is what the tests look at in a statistics file.
type report struct {
	Pid     int
	Program string
	Calls   map[string]int64
	Policy  struct {
		DefaultHint string `json:"default_hint"`
	}
	Tiers map[string]struct {
		AllocCalls   int64 `json:"alloc_calls"`
		BytesCurrent int64 `json:"bytes_current"`
		CapacitySoft int64 `json:"capacity_soft"`
	}
}

// valid reads a report, which must be one by the schema.
func valid(t *testing.T, text []byte) report {
	t.Helper()
	schema, err := os.ReadFile(filepath.Join(testlib.Root(), "docs", "stats.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonschema.Validate(schema, text); err != nil {
		t.Errorf("not valid by the schema: %v", err)
	}
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return r
}

// start starts a command in the background, in a session of its own, which is killed at
// the test's end, and waits until it has printed a line.
func start(t *testing.T, env []string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(append(os.Environ(), quiet()...), env...)
	cmd.Stderr = os.Stderr
	// away from whatever terminal the tests are on
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // its whole session
		cmd.Wait()
	})
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return cmd
}

// preloaded is the environment for a preloaded command.
func preloaded(t *testing.T, env ...string) []string {
	t.Helper()
	return append(env, "LD_PRELOAD="+testlib.Lib(t))
}
