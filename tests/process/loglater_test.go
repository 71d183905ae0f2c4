package process

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestLogLater: a log of errors and warnings has no thread of the Go runtime before there is one.
// Then it is as one that was there from the start: while the program runs and at its end, where the
// tier has no room for anything, after the program has changed its folder and user, and in a child
// forked early.
func TestLogLater(t *testing.T) {
	t.Parallel()
	prog := testlib.CC(t, "loglater.c")
	for _, how := range []string{"lives", "ends", "fills", "moves", "forks", "nothing", "alone"} {
		t.Run(how, func(t *testing.T) {
			if how == "moves" && os.Getuid() != 0 {
				testlib.Lacks(t, "root")
			}
			r, log := logsLater(t, prog, how)
			clean(t, r)
			lines := strings.Count(log, `"message":"hard cap reached"`)
			if none := how == "nothing" || how == "alone"; (lines == 0) != none || none && log != "" {
				t.Errorf("%d lines in %q", lines, clip(log))
			}
			child := regexp.MustCompile("child ([1-9][0-9]*)").FindStringSubmatch(r.Stdout)
			if child != nil && (!strings.Contains(log, `"pid":`+child[1]+",") || lines < 2) {
				t.Errorf("%snot in %q", r.Stdout, clip(log))
			}
		})
	}
}

// logsLater runs the program with a log of warnings, under a hard cap.
func logsLater(t *testing.T, prog, how string) (r testlib.Result, log string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "log")
	r = testlib.Run(t, testlib.Cmd{Args: []string{prog, how, file}, Dir: dir, Preload: true,
		Env: append(append([]string{}, quiet...), "TA_LOG=warn", "TA_LOG_FILE=log",
			"TA_NORMAL_HARD=24M", "TA_ON_HARDCAP=fail")})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return r, string(text)
}

// TestLogLaterReplaced: a program that has put its own file in the place of standard error, where
// the log would go, finds nothing in it.
func TestLogLaterReplaced(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := testlib.Run(t, testlib.Cmd{Args: []string{testlib.CC(t, "loglater.c"), "closes", "none"},
		Dir: dir, Preload: true, Env: append(append([]string{}, quiet...), "TA_LOG=error",
			"TA_NORMAL_HARD=24M", "TA_ON_HARDCAP=fail")})
	clean(t, r)
	if text, err := os.ReadFile(filepath.Join(dir, "own")); err != nil || len(text) != 0 {
		t.Errorf("%q, %v", text, err)
	}
}
