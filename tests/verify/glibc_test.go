package verify

import (
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// TestGlibc: the library and its tool run where glibc is as old as the README says.
func TestGlibc(t *testing.T) {
	const promised = 34
	for _, path := range []string{testlib.Lib(t),
		filepath.Join(testlib.Root(), "build", "tierallocctl")} {
		if minor, from := testlib.Glibc(t, path); minor > promised || minor == 0 {
			t.Errorf("%s needs glibc 2.%d, for %s", path, minor, from)
		}
	}
}
