package testlib

import (
	"os"
	"os/exec"
	"testing"
)

// Lacks skips a test for want of something, and fails it on a build server (CI=true),
// where a skipped test would go unseen.
func Lacks(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatalf("there is no %s, and CI=true: run ./build.sh test as root, or install it", what)
	}
	tb.Skipf("there is no %s", what)
}

// Need is Lacks for each of the programs that is not installed.
func Need(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Lacks(tb, name)
		}
	}
}
