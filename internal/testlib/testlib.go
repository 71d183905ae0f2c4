// Package testlib is what the black-box tests share: where the built library
// is, how to compile a small C program, and how to run a command under it.
package testlib

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Root is the top of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(file)))
}

// Lib is the built library. A missing one fails the test: build.sh builds it
// before it runs any.
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

// CC compiles testdata/name of the calling test's folder and returns the
// program's path. Flags follow the source on gcc's command line; a .cc file
// goes to g++.
func CC(tb testing.TB, name string, flags ...string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	compiler := "gcc"
	if strings.HasSuffix(name, ".cc") {
		compiler = "g++"
	}
	args := append([]string{"-O1", "-g", "-Wall", "-fno-builtin", "-pthread", "-o", out, filepath.Join("testdata", name)}, flags...)
	if msg, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		tb.Fatalf("%s %s: %v\n%s", compiler, strings.Join(args, " "), err, msg)
	}
	return out
}

// Result is what a command left behind. Status is the exit status, or 128+N
// when signal N ended the command, as a shell has it.
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
	Timeout time.Duration // default one minute
}

// Run runs the command to its end. A command that cannot be started or passes
// its time limit fails the test.
func Run(tb testing.TB, c Cmd) Result {
	tb.Helper()
	limit := c.Timeout
	if limit == 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Args[0], c.Args[1:]...)
	cmd.Dir = c.Dir
	cmd.Env = append(os.Environ(), c.Env...)
	if c.Preload {
		cmd.Env = append(cmd.Env, "LD_PRELOAD="+Lib(tb))
	}
	cmd.Stdin = strings.NewReader(c.Stdin)
	cmd.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		tb.Fatalf("%q did not end within %v\nstdout: %s\nstderr: %s", c.Args, limit, tail(stdout.String()), tail(stderr.String()))
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		tb.Fatalf("%q: %v", c.Args, err)
	}
	status := cmd.ProcessState.ExitCode()
	if status < 0 {
		status = 128 + signal(cmd.ProcessState)
	}
	return Result{stdout.String(), stderr.String(), status}
}

func tail(s string) string {
	const most = 2000
	if len(s) > most {
		return "…" + s[len(s)-most:]
	}
	return s
}
