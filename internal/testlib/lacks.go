package testlib

import (
	"os"
	"os/exec"
	"testing"
)

// Lacks skips a test because the machine lacks something. On a build server (CI=true), where nobody
// would see that it was skipped, it fails the test.
func Lacks(tb testing.TB, what string) {
	tb.Helper()
	if os.Getenv("CI") == "true" {
		tb.Fatalf("there is no %s, and CI=true: run ./build.sh test as root, or install it", what)
	}
	tb.Skipf("there is no %s", what)
}

// Need calls Lacks for each of the programs that is not installed.
func Need(tb testing.TB, names ...string) {
	tb.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			Lacks(tb, name)
		}
	}
}
