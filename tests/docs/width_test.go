package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"tieralloc/internal/testlib"
)

// unwrapped are the folders whose lines are not wrapped yet, and generated files.
var unwrapped = []string{"tests/", "cmd/tierallocctl/nvmllink/functions_amd64.S"}

// sources are the files of Go, C, C++ and assembly in the tree, by their paths from its root.
func sources(t *testing.T) (list []string) {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "*.go", "*.c", "*.h", "*.cc", "*.S")
	cmd.Dir = testlib.Root()
	out, err := cmd.Output()
	if err != nil {
		t.Skipf("git ls-files: %v", err)
	}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		list = append(list, string(name))
	}
	return list
}

// TestSourceWidth: no line of code is longer than 100 columns with tabs of 4, but for addresses of
// pages, and for text that a raw string holds as it is.
func TestSourceWidth(t *testing.T) {
	checked := 0
	for _, name := range sources(t) {
		skip := false
		for _, folder := range unwrapped {
			skip = skip || strings.HasPrefix(name, folder)
		}
		if skip {
			continue
		}
		text, err := os.ReadFile(filepath.Join(testlib.Root(), name))
		if os.IsNotExist(err) { // removed, and not yet from the index
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		checked++
		n, quotes := 0, 0
		for line := range strings.Lines(string(text)) {
			n++
			line = strings.TrimRight(line, "\n")
			raw := quotes%2 == 1 || strings.Contains(line, "`")
			quotes += strings.Count(line, "`")
			if w := width(line); w > 100 && !raw && !strings.Contains(line, "://") {
				t.Errorf("%s:%d: %d columns", name, n, w)
			}
		}
	}
	if checked < 50 {
		t.Errorf("%d files: the test would prove nothing", checked)
	}
}

// width is the columns of a line with tabs of 4.
func width(line string) int {
	columns := 0
	for _, r := range line {
		if r == '\t' {
			columns += 4 - columns%4
		} else {
			columns++
		}
	}
	return columns
}

// TestTabs: a tab goes to the next multiple of 4, and a letter of several bytes is one column.
func TestTabs(t *testing.T) {
	for line, want := range map[string]int{"": 0, "\t": 4, "a\tb": 5, "abcd\te": 9, "\t\u2026": 5} {
		if got := width(line); got != want {
			t.Errorf("%q: %d columns, not %d (%d letters)", line, got, want,
				utf8.RuneCountInString(line))
		}
	}
}
