package docs

import (
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// source is a file of the tree as pages name it: with its folder, or with the end of its path.
var source = regexp.MustCompile("`([A-Za-z_][A-Za-z0-9_./]*\\.(?:go|c|h|S|ld|map|txt|sh|py|json))`")

// TestFiles: the files that pages name are there, but for those that a build makes. The page for
// users of other libraries names files of theirs.
func TestFiles(t *testing.T) {
	root := testlib.Root()
	var tree strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && (d.Name() == ".git" || d.Name() == "build") {
			return filepath.SkipDir
		}
		tree.WriteString(strings.TrimPrefix(path, root) + "\n")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		if filepath.Base(page) == "coming-from.md" {
			continue
		}
		for _, m := range source.FindAllStringSubmatch(strings.Join(prose(read(t, page)), "\n"),
			-1) {
			built := strings.HasPrefix(m[1], "build/")
			if !built && !strings.Contains(tree.String(), "/"+m[1]+"\n") {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
}
