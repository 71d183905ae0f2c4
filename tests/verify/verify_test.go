package verify

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// sortedFuncs is the exports' entry points in the order of their names, so that
// reports do not change from run to run.
func sortedFuncs(m map[string]*Func) []*Func {
	var list []*Func
	for _, name := range slices.Sorted(maps.Keys(m)) {
		list = append(list, m[name])
	}
	return list
}

// TestDataPlane walks the built library.
func TestDataPlane(t *testing.T) {
	img, err := Load(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	exports := sortedFuncs(img.Exports())
	if len(exports) == 0 {
		t.Fatal("no exports named _cgoexp_*_ta_go_*: the walk would prove nothing")
	}
	res := Walk(img, ProjectRules(), exports)
	for _, v := range res.Violations {
		t.Error(v)
	}
	t.Logf("%d exports reach %d functions; the deepest stack is %d bytes:\n\t%s",
		res.Exports, res.Reached, res.Depth, strings.Join(res.DepthPath, "\n\t"))
}

// TestNoInits: the rooms run no code when the Go runtime starts.
func TestNoInits(t *testing.T) {
	img, err := Load(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range img.Inits(RoomPackages()) {
		t.Errorf("%s: package variables must be statically initialised, and there must be no "+
			"init function", s)
	}
}

// TestDynamic checks what the loader sees of the built library.
func TestDynamic(t *testing.T) {
	d, err := ReadDynamic(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range d.Check(listed(t, "dynsyms.txt")) {
		t.Error(b)
	}
	minor, syms := d.NewestGlibc()
	t.Logf("%d symbols defined; the newest version needed is GLIBC_2.%d, by %v", len(d.Defined),
		minor, syms)
}

// TestUndefined: what the library takes from whichever library provides it is on the list, with a
// reason.
func TestUndefined(t *testing.T) {
	d, err := ReadDynamic(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	want := listed(t, "undefined.txt")
	for _, s := range d.Undefined {
		if !slices.Contains(want, s) {
			t.Errorf("takes %s from any library that has it", s)
		}
	}
	for _, s := range want {
		if !slices.Contains(d.Undefined, s) {
			t.Errorf("%s is on the list and not needed", s)
		}
	}
}

// listed are the words of a file in testdata but for its comments.
func listed(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		want = append(want, strings.Fields(line)...)
	}
	return want
}

// TestImports holds the source to the order of the rooms.
func TestImports(t *testing.T) {
	list, err := ListPackages(testlib.Root())
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range CheckImports(list) {
		t.Error(b)
	}
	var seen []string
	for _, p := range list {
		if dir, own := ownDir(p.ImportPath); own && !free(dir) {
			seen = append(seen, p.ImportPath)
		}
	}
	t.Logf("%d packages of the library: %v", len(seen), seen)
}
