package lockorder

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"tieralloc/internal/testlib"
)

// library is the debug build.
var library = sync.OnceValues(func() (string, error) {
	cmd := exec.Command("./build.sh", "debug")
	cmd.Dir = testlib.Root()
	text, err := cmd.CombinedOutput()
	if err != nil {
		os.Stderr.Write(text)
	}
	return filepath.Join(testlib.Root(), "build", "debug", "libtieralloc.so"), err
})

func debugBuild(t *testing.T) string {
	t.Helper()
	path, err := library()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const (
	done    = 3   // the handler's own status
	aborted = 134 // 128 + SIGABRT
)

// TestHandler: a signal handler interrupts a holder of poolLock. What it may do then ends well; what
// goes against the order ends the process with a line that names both locks.
func TestHandler(t *testing.T) {
	lib := debugBuild(t)
	program := testlib.CC(t, "handler.c")
	for name, wanted := range map[string]string{
		"exit":     "", // which writes no report
		"fork":     "",
		"manager":  "manager.lock",
		"deepbind": "libc_deepbind.c:lock",
	} {
		t.Run(name, func(t *testing.T) {
			r := testlib.Run(t, testlib.Cmd{Args: []string{program, name}, Env: []string{
				"LD_PRELOAD=" + lib, "TA_STATS_FILE=" + filepath.Join(t.TempDir(), "stats.json")}})
			const begin = "tieralloc: lock order: "
			if wanted == "" && (r.Status != done || strings.Contains(r.Stderr, begin)) {
				t.Errorf("%+v", r)
			}
			line := begin + "a thread waits for " + wanted + " and holds poolLock\n"
			if wanted != "" && (r != testlib.Result{Status: aborted, Stderr: line}) {
				t.Errorf("%+v, not %q", r, line)
			}
		})
	}
}

// TestPrograms: programs of other packages keep the order: threads, fork, exit, the hardened mode,
// the control plane, tiers, the live page, and devices on the fake driver.
func TestPrograms(t *testing.T) {
	lib := debugBuild(t)
	for folder, args := range map[string][]string{
		"process": {"-run", "Fork|Ends|SecureBusy|DeepBind|NoThreadState"},
		"tiers":   {"-run", "Storm|Background|Live"},
		"cuda":    {"-run", "Ends|Managers|Trace|Storm"},
	} {
		t.Run(folder, func(t *testing.T) {
			goTest(t, []string{"TA_TEST_LIB=" + lib}, append([]string{"./tests/" + folder}, args...)...)
		})
	}
}

// TestModels: so do the packages' own tests, with random programs of several threads. The longest
// of them take no other locks than the rest.
func TestModels(t *testing.T) {
	goTest(t, nil, "./alloc", "./cudahook/...", "-tags", "lockrank", "-short", "-skip",
		"(Tier|Secure|Crowded|Roomy)Simulation")
}

// goTest runs tests that exist, however long they take.
func goTest(t *testing.T, env []string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", append([]string{"test", "-count=1", "-timeout", "4h"}, args...)...)
	cmd.Dir = testlib.Root()
	cmd.Env = append(os.Environ(), env...)
	text, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(text, []byte("no test")) { // files, or tests to run
		t.Errorf("%v: %v\n%s", cmd.Args, err, text)
	}
}
