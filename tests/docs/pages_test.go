package docs

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"tieralloc/internal/testlib"
)

// pages are the documents, by their paths from the root of the tree.
func pages(t *testing.T) []string {
	t.Helper()
	var list []string
	for _, pattern := range []string{"*.md", "docs/*.md", "python/*.md"} {
		found, err := filepath.Glob(filepath.Join(testlib.Root(), pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		list = append(list, found...)
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// prose is a page without its blocks of code, whose lines are empty.
func prose(text string) []string {
	var lines []string
	fenced := false
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		line := s.Text()
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if fenced || fence || strings.HasPrefix(line, "    ") {
			line = ""
		}
		fenced = fenced != fence
		lines = append(lines, line)
	}
	return lines
}

// anchor is the name that a heading has in a link, as GitHub makes it.
func anchor(heading string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(heading) {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return b.String()
}

func anchors(text string) map[string]bool {
	found := map[string]bool{"": true}
	for _, line := range prose(text) {
		if title := strings.TrimLeft(line, "#"); title != line {
			found[anchor(strings.TrimSpace(title))] = true
		}
	}
	return found
}

var link = regexp.MustCompile(`\]\(([^)\s]+)\)`)

// TestLinks: each link to the tree leads to a file, and to a heading in it.
func TestLinks(t *testing.T) {
	for _, page := range pages(t) {
		text := strings.Join(prose(read(t, page)), "\n")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			file, heading, _ := strings.Cut(m[1], "#")
			if strings.Contains(file, "://") {
				continue
			}
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: %s: %v", page, m[1], err)
			} else if heading != "" && !anchors(read(t, target))[heading] {
				t.Errorf("%s: %s: no such heading", page, m[1])
			}
		}
	}
}

// TestWidth: prose wraps at 100 columns. Tables, code and headings do not.
func TestWidth(t *testing.T) {
	for _, page := range pages(t) {
		for i, line := range prose(read(t, page)) {
			table := strings.HasPrefix(line, "|") || strings.HasPrefix(line, "#")
			if !table && utf8.RuneCountInString(line) > 100 && strings.Contains(strings.TrimSpace(line), " ") {
				t.Errorf("%s:%d: %d columns", page, i+1, utf8.RuneCountInString(line))
			}
		}
	}
}

// TestLength: the README can be read in a few minutes, and the architecture at one sitting.
func TestLength(t *testing.T) {
	root := testlib.Root()
	if n := strings.Count(read(t, filepath.Join(root, "README.md")), "\n"); n > 150 {
		t.Errorf("README.md has %d lines, more than 150", n)
	}
	if n := len(strings.Fields(read(t, filepath.Join(root, "docs", "architecture.md")))); n > 3000 {
		t.Errorf("docs/architecture.md has %d words, more than 3000", n)
	}
}
