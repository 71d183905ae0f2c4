package verify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
)

// Package is what `go list -json` tells of one, as far as it is needed here.
type Package struct {
	ImportPath string
	Imports    []string
	SFiles     []string
	Standard   bool
}

// ListPackages lists the packages of the module at root and all that they
// import, tests not counted.
func ListPackages(root string) ([]Package, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Imports,SFiles,Standard",
		"./...")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("go list: %w\n%s", err, exit.Stderr)
		}
		return nil, err
	}
	var list []Package
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p Package
		if err := dec.Decode(&p); err == io.EOF {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

// roomStd are the standard packages that a room may import. What it may call of
// them is the walk's business: syscall, for instance, is for its constants and
// RawSyscall6.
var roomStd = map[string]bool{
	"runtime/cgo": true, "unsafe": true, "sync/atomic": true, "syscall": true, "math/bits": true,
}

// roomThird is for its constants.
const roomThird = "golang.org/x/sys/unix"

// libraryModules are the modules that the library may import. Modules that
// these import in turn are theirs to choose.
var libraryModules = []string{"github.com/NVIDIA/go-nvml", "golang.org/x/sys",
	"github.com/rs/zerolog"}

// nvmlCalls has unresolved nvml* symbols: with LD_BIND_NOW=1 whatever links it
// dies where the driver is not installed.
const nvmlCalls = "github.com/NVIDIA/go-nvml/pkg/nvml"

// CheckImports holds an import graph to the order of the rooms. It returns one
// line per breach.
func CheckImports(list []Package) []string {
	g := graph{}
	for _, p := range list {
		g[p.ImportPath] = p
	}
	var breaches []string
	for _, p := range list {
		dir, own := ownDir(p.ImportPath)
		if !own || free(dir) {
			continue
		}
		if _, room := rooms[dir]; room && len(p.SFiles) > 0 {
			breaches = append(breaches,
				p.ImportPath+" has Go assembly: its callers reload g from TLS")
		}
		for _, imp := range p.Imports {
			if why := g.breach(dir, imp); why != "" {
				breaches = append(breaches, fmt.Sprintf("%s imports %s: %s", p.ImportPath, imp,
					why))
			}
		}
	}
	if path := g.path(Module, nvmlCalls); path != nil {
		breaches = append(breaches, "the library links "+nvmlCalls+": "+strings.Join(path, " → "))
	}
	return breaches
}

type graph map[string]Package

// ownDir is a package's folder in this module.
func ownDir(path string) (string, bool) {
	if path == Module {
		return "", true
	}
	return strings.CutPrefix(path, Module+"/")
}

// breach says why the library's package in dir may not import imp.
func (g graph) breach(dir, imp string) string {
	rank, room := rooms[dir]
	if imp == "C" {
		if !doors[dir] {
			return "only package main and interpose meet C"
		}
		return ""
	}
	to, own := ownDir(imp)
	if !own {
		return g.foreign(room, imp)
	}
	toRank, toRoom := rooms[to]
	switch {
	case to == "":
		return "package main is imported by nobody"
	case free(to):
		return "it is no part of the library"
	case room && !toRoom:
		return "a data-plane room imports rooms only, not ordinary Go"
	case room && toRank >= rank:
		return "against the order of the rooms"
	}
	return ""
}

// foreign is breach for the standard library and other modules.
func (g graph) foreign(room bool, imp string) string {
	std := g[imp].Standard || imp == "unsafe"
	switch {
	case room && !roomStd[imp] && imp != roomThird:
		return "not on the short list of a data-plane room"
	case imp == nvmlCalls:
		return "its nvml* symbols stay unresolved: use pkg/dl"
	case std:
		return ""
	}
	for _, m := range libraryModules {
		if imp == m || strings.HasPrefix(imp, m+"/") {
			return ""
		}
	}
	return "not one of the library's modules"
}

// path finds a way in the import graph, or nil.
func (g graph) path(from, to string) []string {
	came := map[string]string{from: ""}
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		if at == to {
			var path []string
			for ; at != ""; at = came[at] {
				path = append(path, at)
			}
			slices.Reverse(path)
			return path
		}
		for _, imp := range g[at].Imports {
			if _, seen := came[imp]; !seen {
				came[imp] = at
				queue = append(queue, imp)
			}
		}
	}
	return nil
}
