package verify

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Border is the line between the files of a package that are below and all its others: what is
// below names nothing that the others declare.
type Border struct {
	Below  []string            // files
	Except map[string][]string // by file: what it names all the same, be it a type or a field
}

// Check returns one line per breach in the package in dir, and one for each exception that is not
// needed and each file that is not there.
func (b *Border) Check(dir string) ([]string, error) {
	files := token.NewFileSet()
	parsed, err := parseDir(files, dir)
	if err != nil {
		return nil, err
	}
	uses := map[*ast.Ident]types.Object{}
	conf := types.Config{Importer: importer.ForCompiler(files, "gc", exportData(dir))}
	pkg, err := conf.Check(dir, files, parsed, &types.Info{Uses: uses})
	if err != nil {
		return nil, err
	}
	met := map[string]bool{}
	var breaches []string
	for id, obj := range uses {
		at, to := files.Position(id.Pos()), files.Position(obj.Pos())
		file, from := filepath.Base(at.Filename), filepath.Base(to.Filename)
		if obj.Pkg() != pkg || !slices.Contains(b.Below, file) || slices.Contains(b.Below, from) {
			continue
		}
		if slices.Contains(b.Except[file], obj.Name()) {
			met[file+" "+obj.Name()] = true
			continue
		}
		breaches = append(breaches, fmt.Sprintf("%s:%d names %s of %s", file, at.Line, obj.Name(),
			from))
	}
	for _, file := range b.Below {
		if _, err := os.Stat(filepath.Join(dir, file)); err != nil {
			breaches = append(breaches, file+" is not there")
		}
	}
	for file, names := range b.Except {
		for _, name := range names {
			if !met[file+" "+name] {
				breaches = append(breaches, fmt.Sprintf("%s does not name %s any more", file, name))
			}
		}
	}
	slices.Sort(breaches)
	return breaches, nil
}

func parseDir(files *token.FileSet, dir string) (parsed []*ast.File, err error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		parsed = append(parsed, f)
	}
	return parsed, nil
}

// exportData looks up what the package in dir imports.
func exportData(dir string) importer.Lookup {
	return func(path string) (io.ReadCloser, error) {
		cmd := exec.Command("go", "list", "-export", "-f", "{{.Export}}", path)
		cmd.Dir = dir
		out, err := cmd.Output()
		if err != nil {
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return nil, fmt.Errorf("go list -export: %w\n%s", err, exit.Stderr)
			}
			return nil, err
		}
		return os.Open(strings.TrimSpace(string(out)))
	}
}
