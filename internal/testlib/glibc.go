package testlib

import (
	"debug/elf"
	"strconv"
	"strings"
	"testing"
)

// Glibc returns the minor number of the newest glibc 2 that a program or library needs, and the
// library of glibc that it needs it from.
func Glibc(tb testing.TB, path string) (minor int, from string) {
	tb.Helper()
	file, err := elf.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	needs, err := file.DynamicVersionNeeds()
	if err != nil {
		tb.Fatal(err)
	}
	for _, library := range needs {
		for _, need := range library.Needs {
			// GLIBC_2.3.4 is older than GLIBC_2.34.
			number, _, _ := strings.Cut(strings.TrimPrefix(need.Dep, "GLIBC_2."), ".")
			if n, err := strconv.Atoi(number); err == nil && n > minor {
				minor, from = n, library.Name
			}
		}
	}
	return minor, from
}
