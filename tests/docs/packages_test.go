package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// packageDocs returns the documentation of the package in each folder of Go files below root, by
// the folder's name. Files of tests document nothing.
func packageDocs(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); name == "build" || name == "testdata" ||
				path != root && strings.HasPrefix(name, ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil,
			parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		folder := filepath.Dir(path)
		found[folder] += ""
		if file.Doc != nil && !strings.HasSuffix(path, "_test.go") {
			found[folder] += file.Doc.Text()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPackagesAreDocumented: each package says in its first line what it is.
func TestPackagesAreDocumented(t *testing.T) {
	docs := packageDocs(t, testlib.Root())
	if len(docs) < 20 {
		t.Errorf("found only %d packages", len(docs))
	}
	for folder, text := range docs {
		first, _, _ := strings.Cut(text, " ")
		switch first {
		case "Package", "Command", "Tierallocctl":
		default:
			t.Errorf("%s: its documentation begins with %.40q", folder, text)
		}
	}
}
