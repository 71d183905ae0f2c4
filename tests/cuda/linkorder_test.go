package cuda

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// startsWith are the functions by which a program of linkorder.c may begin.
var startsWith = []string{"init", "resolver", "old"}

// TestLinkOrder: a program that is linked with the library before the driver, and names the
// library's functions alone, does not need the driver as the linker sees it, and has it all the
// same.
func TestLinkOrder(t *testing.T) {
	lib := testlib.Lib(t)
	program := cc(t, "linkorder.c", "-Wl,--as-needed", lib, "-Wl,-rpath,"+filepath.Dir(lib),
		drivers+"/libcuda.so.1")
	needs := needed(t, program)
	if slices.Contains(needs, "libcuda.so.1") {
		t.Fatalf("the linker keeps the driver, and the test shows nothing: %v", needs)
	}
	want := "start 0\ncontext 0\ntotal 0\nmemory 1\nalloc 0\nblock 1\nfree 0\n"
	for _, start := range startsWith {
		for _, env := range [][]string{nil, {"TA_CUDA=0"}, {"TA_DISABLE=1"}} {
			t.Run(strings.Join(append([]string{start}, env...), "/"), func(t *testing.T) {
				r := testlib.Run(t, command(false, env, program, start))
				clean(t, r)
				if r.Stdout != want {
					t.Errorf("%q, want %q", r.Stdout, want)
				}
			})
		}
		t.Run(start+"/no driver", func(t *testing.T) {
			r := testlib.Run(t, command(false, []string{"LD_LIBRARY_PATH=" + t.TempDir()}, program,
				start))
			clean(t, r)
			if r.Stdout != "start 3\n" {
				t.Errorf("%q", r.Stdout)
			}
		})
	}
}

// needed are the libraries that a program names.
func needed(t *testing.T, program string) []string {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	needs, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	return needs
}
