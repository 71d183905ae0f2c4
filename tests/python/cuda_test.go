package python

import (
	"os/exec"
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestCUDA has the shim's part for devices on a library that pretends to be ours.
func TestCUDA(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		testlib.Lacks(t, "gcc")
	}
	fake := filepath.Join(t.TempDir(), "libfake.so")
	source := filepath.Join(testlib.Root(), "tests", "python", "testdata", "fake_cuda.c")
	if out, err := exec.Command("gcc", "-O1", "-Wall", "-shared", "-fPIC", "-I",
		filepath.Join(testlib.Root(), "interpose"), "-o", fake,
		source).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			want(t, run(t, false, []string{"LD_PRELOAD=" + fake}, python, "fakecuda.py"))
			want(t, run(t, false, []string{"LD_PRELOAD=" + fake}, python, "futures.py"))
		})
	}
}

func TestNoCUDA(t *testing.T) {
	for _, python := range pythons(t) {
		want(t, run(t, false, nil, python, "nocuda.py"))
	}
}

// TestOff: where the library does not serve devices, frameworks are left as they are.
func TestOff(t *testing.T) {
	for _, python := range pythons(t) {
		want(t, run(t, true, nil, python, "off.py"))
		for _, setting := range []string{"TA_CUDA=0", "TA_DISABLE=1"} {
			want(t, run(t, true, []string{setting}, python, "off.py", setting))
		}
	}
}
