// Package testlib is shared by the black-box tests: it finds the built library, compiles small C
// programs, and runs commands.
package testlib

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Root returns the top of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Lib returns the path of the built library. If it is missing the test fails: build.sh builds it
// before it runs tests.
func Lib(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("TA_TEST_LIB")
	if path == "" {
		path = filepath.Join(Root(), "build", "libtieralloc.so")
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("the library is not built (run ./build.sh build): %v", err)
	}
	return path
}

// Tool returns the built tierallocctl, or that of TA_TEST_TOOL.
func Tool(tb testing.TB) string {
	tb.Helper()
	path := os.Getenv("TA_TEST_TOOL")
	if path == "" {
		path = filepath.Join(Root(), "build", "tierallocctl")
	}
	if _, err := os.Stat(path); err != nil {
		tb.Fatalf("the tool is not built (run ./build.sh build): %v", err)
	}
	return path
}

// compiled holds the programs that CC has made, by the source and the flags.
var compiled sync.Map

// CC compiles testdata/name of the calling test's folder and returns the
// program's path. Flags follow the source on gcc's command line; a .cc file
// goes to g++. What other tests have compiled is copied.
func CC(tb testing.TB, name string, flags ...string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	// What gcc 14 refuses in C, gcc 12 refuses here too.
	compiler, refused := "gcc", []string{"-Werror=implicit", "-Werror=int-conversion",
		"-Werror=incompatible-pointer-types"}
	if strings.HasSuffix(name, ".cc") {
		compiler, refused = "g++", nil
	}
	key := strings.Join(append([]string{name}, flags...), "\x00")
	if made, ok := compiled.Load(key); ok {
		// Not os.WriteFile: a child that is forked meanwhile would have the file open for writing,
		// and nobody can run it then.
		cp := exec.Command("install", "/dev/stdin", out)
		cp.Stdin = bytes.NewReader(made.([]byte))
		if msg, err := cp.CombinedOutput(); err != nil {
			tb.Fatalf("%v: %v\n%s", cp.Args, err, msg)
		}
		return out
	}
	args := slices.Concat([]string{"-O1", "-g", "-Wall", "-fno-builtin", "-pthread", "-o", out,
		filepath.Join("testdata", name)}, refused, flags)
	if msg, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, msg)
	}
	made, err := os.ReadFile(out)
	if err != nil {
		tb.Fatal(err)
	}
	compiled.Store(key, made)
	return out
}

// Result is the result of a command. Status is the exit status, or 128+N if signal N ended the
// command, as in a shell.
type Result struct {
	Stdout, Stderr string
	Status         int
}

// Cmd describes a command to run.
type Cmd struct {
	Args    []string
	Env     []string // added to the environment
	Dir     string
	Stdin   string
	Preload bool
	Timeout time.Duration // how long it may make no progress; default one minute
}

// Run runs the command to its end. The test fails if the command cannot be started or its processes
// no longer make progress.
func Run(tb testing.TB, c Cmd) Result {
	tb.Helper()
	if c.Preload {
		c.Env = append(slices.Clip(c.Env), "LD_PRELOAD="+Lib(tb))
	}
	r, err := run(c)
	if err != nil {
		tb.Fatalf("%q: %v\nstdout: %s\nstderr: %s", c.Args, err, tail(r.Stdout), tail(r.Stderr))
	}
	return r
}

func run(c Cmd) (Result, error) {
	limit := c.Timeout
	if limit == 0 {
		limit = time.Minute
	}
	cmd := exec.Command(c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.WaitDelay = limit
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	err := waitFor(cmd, limit)
	r := Result{Stdout: stdout.String(), Stderr: stderr.String(),
		Status: cmd.ProcessState.ExitCode()}
	if r.Status < 0 {
		r.Status = 128 + signal(cmd.ProcessState)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return r, err
}

// waitFor waits for the end of a command. If it no longer makes progress, waitFor kills it and all
// its descendants.
func waitFor(cmd *exec.Cmd, limit time.Duration) error {
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(min(time.Second, limit/5))
	defer look.Stop()
	for w := watch(cmd.Process.Pid, limit); ; {
		select {
		case err := <-ended:
			return err
		case <-look.C:
			if why := w.stuck(); why != "" {
				w.kill()
				<-ended
				return errors.New(why)
			}
		}
	}
}

// End waits for a command that the test has started itself, as Run does.
func End(cmd *exec.Cmd) error { return waitFor(cmd, time.Minute) }

// Wait polls until done returns true. It fails the test if process p, which this depends on, no
// longer makes progress.
func Wait(tb testing.TB, what string, p *os.Process, done func() bool) {
	tb.Helper()
	w := watch(p.Pid, time.Minute)
	for look := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Since(look) < time.Second {
			continue
		}
		if why := w.stuck(); why != "" {
			tb.Fatalf("waited in vain for %s: process %d %s", what, p.Pid, why)
		}
		look = time.Now()
	}
}

func tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
