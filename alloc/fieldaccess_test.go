package alloc

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestFieldAccess: a field of Page whose meaning depends on the state of the span is read and
// written only in the file whose functions name the meanings.
func TestFieldAccess(t *testing.T) {
	home := map[string]string{"stamp": "pagestates.go", "Trigger": "pagestates.go"}
	seen := map[string]bool{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if ok && home[s.Sel.Name] != "" {
				seen[s.Sel.Name] = true
				if name != home[s.Sel.Name] {
					t.Errorf("%s: .%s is used outside %s", set.Position(s.Pos()), s.Sel.Name,
						home[s.Sel.Name])
				}
			}
			return true
		})
	}
	if len(seen) != len(home) {
		t.Errorf("only the fields %v are used", seen)
	}
}
