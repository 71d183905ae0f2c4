package verify

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// pageFields are the fields of alloc.Page whose meaning depends on the role of the span. The files
// listed, or functions of a file, use such a field with the meaning that its comment gives. Only
// pagestates.go uses it with another.
var pageFields = map[string]string{
	"stamp":    "",
	"Trigger":  "",
	"Gap":      "",
	"pendNext": "",
	"ageNext":  "age.go",
	"prev":     "bins.go heap.go migrate.go nursery.go",
	"next": "bins.go free.go heap.go malloc.go nursery.go pagemap.go pool.go retire.go " +
		"spanalloc.go subrelease.go",
	"Free": "freelists.go hugealloc.go:hugeSpan malloc.go nursery.go retire.go slot.go " +
		"subrelease.go",
	"Allocs": "abandoned.go free.go freelists.go hugealloc.go:hugeSpan inplace.go malloc.go " +
		"nursery.go page.go pagemap.go ration.go report.go retire.go slot.go spanalloc.go " +
		"subrelease.go tally.go zero.go",
	"Class": "free.go freelists.go heap.go hugealloc.go:hugeSpan inplace.go malloc.go page.go " +
		"quarantine.go remotequeue.go retire.go secure.go:resizeSecure tamove.go",
	"Carved": "freelists.go hugealloc.go:hugeSpan inplace.go malloc.go pagemap.go:freeDescriptor " +
		"pool.go:cut sampled.go segment.go:beClean slot.go subrelease.go",
	"done": "autohuge.go follow.go huge.go hugealloc.go hugecache.go hugeresize.go migrate.go " +
		"migrationpin.go parts.go placement.go pool.go report.go reserve.go tamove.go",
}

// TestFieldAccess: a field of Page is used with a second meaning only in the file whose functions
// name the meanings.
func TestFieldAccess(t *testing.T) {
	uses, err := fieldUses("../../alloc", "Page")
	if err != nil {
		t.Fatal(err)
	}
	for field, list := range pageFields {
		allowed := append(strings.Fields(list), "pagestates.go")
		met := map[string]bool{}
		for _, u := range uses[field] {
			file := filepath.Base(u.at.Filename)
			switch {
			case slices.Contains(allowed, file):
				met[file] = true
			case slices.Contains(allowed, file+":"+u.in):
				met[file+":"+u.in] = true
			default:
				t.Errorf("%s:%d uses Page.%s without a view", file, u.at.Line, field)
			}
		}
		for _, place := range allowed {
			if !met[place] {
				t.Errorf("%s does not use Page.%s any more", place, field)
			}
		}
	}
}

// A fieldUse is where a field is read or written, in which function.
type fieldUse struct {
	at token.Position
	in string
}

// fieldUses finds the uses of each field of a struct in the package in dir.
func fieldUses(dir, name string) (map[string][]fieldUse, error) {
	files := token.NewFileSet()
	parsed, err := parseDir(files, dir)
	if err != nil {
		return nil, err
	}
	info := types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(files, "gc", exportData(dir))}
	pkg, err := conf.Check(dir, files, parsed, &info)
	if err != nil {
		return nil, err
	}
	object := pkg.Scope().Lookup(name)
	if object == nil {
		return nil, fmt.Errorf("%s has no type %s", dir, name)
	}
	of, ok := object.Type().Underlying().(*types.Struct)
	if !ok {
		return nil, fmt.Errorf("%s is not a struct", name)
	}
	isField := map[types.Object]bool{}
	for i := range of.NumFields() {
		isField[of.Field(i)] = true
	}
	uses := map[string][]fieldUse{}
	for _, file := range parsed {
		for _, decl := range file.Decls {
			in := ""
			if f, ok := decl.(*ast.FuncDecl); ok {
				in = f.Name.Name
			}
			ast.Inspect(decl, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && isField[info.Uses[id]] {
					uses[id.Name] = append(uses[id.Name], fieldUse{files.Position(id.Pos()), in})
				}
				return true
			})
		}
	}
	return uses, nil
}
