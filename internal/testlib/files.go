package testlib

import (
	"os"
	"strings"
	"testing"
)

// OnlyFiles fails when the directory holds anything else, such as a temporary file
// left behind.
func OnlyFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s holds %q, not %q", dir, got, names)
	}
}
