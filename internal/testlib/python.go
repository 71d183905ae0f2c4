package testlib

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Pythons returns the interpreters of Python 3 that there are: the system's first, and then those
// in PATH whose stacks the library reads.
func Pythons(t *testing.T) []string {
	t.Helper()
	list := []string{"/usr/bin/python3"}
	for _, version := range []string{"3.11", "3.12", "3.13", "3.14"} {
		program := "import sys; print(sys.executable)"
		out, err := exec.Command("python"+version, "-c", program).Output()
		if err == nil {
			list = append(list, strings.TrimSpace(string(out)))
		}
	}
	if _, err := os.Stat(list[0]); err != nil {
		Lacks(t, list[0])
	}
	return list
}
