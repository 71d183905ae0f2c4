package testlib

import (
	"os"
	"os/exec"
	"strings"
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

// NeedMounts calls Lacks where a process cannot have mounts of its own: without root's rights, in
// some containers, and after a plain chroot into a folder that is no mount point.
func NeedMounts(tb testing.TB) {
	tb.Helper()
	Need(tb, "unshare", "mount")
	if out, err := exec.Command("unshare", "-m", "mount", "-t", "tmpfs", "none",
		"/mnt").CombinedOutput(); err != nil {
		Lacks(tb, "mount namespace: "+strings.TrimSpace(string(out)))
	}
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
