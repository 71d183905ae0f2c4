package python

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// fakeDriver makes a folder with the driver of tests/cuda.
func fakeDriver(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("gcc"); err != nil {
		testlib.Lacks(t, "gcc")
	}
	root, dir := testlib.Root(), t.TempDir()
	sources, err := filepath.Glob(filepath.Join(root, "tests", "cuda", "fake", "*.c"))
	if err != nil || len(sources) == 0 {
		t.Fatal("no sources of the fake driver: ", err)
	}
	args := append(sources, "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic",
		"-Wl,-z,defs", "-Wl,-soname,libcuda.so.1",
		"-O1", "-pthread", "-DFAKE_CUDA=13", "-I", filepath.Join(root, "tests", "cuda", "fake"),
		"-I", filepath.Join(root, "interpose"),
		"-o", filepath.Join(dir, "libcuda.so.1"))
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// TestRounds has 2,000 random rounds of MemoryManagers on devices of 1 to 8 GiB.
func TestRounds(t *testing.T) {
	const rounds = 250
	python, driver := withModule(t, "numpy"), fakeDriver(t)
	for gib := 1; gib <= 8; gib++ {
		t.Run(fmt.Sprintf("%dGiB", gib), func(t *testing.T) {
			env := []string{"LC_ALL=C", "TA_STRICT=1", "LD_LIBRARY_PATH=" + driver,
				fmt.Sprintf("FAKE_MEMORY=%d", gib<<30)}
			r := run(t, true, env, python, "rounds.py", fmt.Sprint(gib), fmt.Sprint(rounds))
			want(t, r)
			if !strings.HasSuffix(r.Stdout, "ok\n") {
				t.Errorf("stdout %q, stderr %q", r.Stdout, r.Stderr)
			}
		})
	}
}
