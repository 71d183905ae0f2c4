package verify

import (
	"debug/elf"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// upward are the symbols of C that a file may use of one above it, each with the reason.
var upward = map[string]string{
	"ta_boot": "any entry may be the first call of the process, and boot prepares all others",
}

// uses maps a file to those whose symbols it uses, each with one of the symbols.
type uses map[string]map[string]string

// cFiles compiles each file of C and assembly in dir, and reads which use which.
func cFiles(t *testing.T, dir string) uses {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.c", "*.S"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	definedBy, needs := map[string]string{}, map[string][]string{}
	for _, file := range files {
		name := filepath.Base(file)
		object := filepath.Join(t.TempDir(), name+".o")
		// Without optimisation no use is lost.
		cmd := exec.Command("gcc", "-std=gnu11", "-O0", "-w", "-fPIC", "-c", "-o", object, file)
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", cmd.Args, err, text)
		}
		for _, s := range globals(t, object) {
			if s.Section == elf.SHN_UNDEF {
				needs[name] = append(needs[name], s.Name)
			} else {
				definedBy[s.Name] = name
			}
		}
	}
	graph := uses{}
	for name, symbols := range needs {
		graph[name] = map[string]string{}
		for _, s := range symbols {
			if of := definedBy[s]; of != "" && of != name && upward[s] == "" {
				graph[name][of] = s
			}
		}
	}
	return graph
}

// globals are the symbols that an object file defines for others, or needs of them.
func globals(t *testing.T, object string) (list []elf.Symbol) {
	t.Helper()
	f, err := elf.Open(object)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		if elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			list = append(list, s)
		}
	}
	return list
}

// circle is a way along the graph that ends where it begins, or "".
func (g uses) circle() string {
	done := map[string]bool{}
	var path []string
	var visit func(name string) string
	visit = func(name string) string {
		if i := slices.Index(path, name); i >= 0 {
			var b strings.Builder
			for j, from := range path[i:] {
				to := append(path[i:], name)[j+1]
				fmt.Fprintf(&b, "%s uses %s of %s; ", from, g[from][to], to)
			}
			return strings.TrimSuffix(b.String(), "; ")
		}
		if done[name] {
			return ""
		}
		path = append(path, name)
		for _, to := range slices.Sorted(maps.Keys(g[name])) {
			if c := visit(to); c != "" {
				return c
			}
		}
		path = path[:len(path)-1]
		done[name] = true
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(g)) {
		if c := visit(name); c != "" {
			return c
		}
	}
	return ""
}

// TestNoCircle: the files of interpose use each other's functions and variables in one direction.
func TestNoCircle(t *testing.T) {
	g := cFiles(t, filepath.Join(testlib.Root(), "interpose"))
	if len(g) < 30 {
		t.Errorf("%d files: the graph would prove nothing", len(g))
	}
	if c := g.circle(); c != "" {
		t.Error(c)
	}
}

// TestCircle: a circle is found, by a function or by a variable, and the first call of all is let
// go.
func TestCircle(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"": {"a.c": "int b(void); int a(void) { return b(); } void ta_boot(void) { a(); }",
			"b.c": "void ta_boot(void); int b(void) { ta_boot(); return 1; }"},
		"a.c uses b of b.c; b.c uses n of a.c": {
			"a.c": "int b(void); int n; int a(void) { return b(); }",
			"b.c": "extern int n; int b(void) { return n; }"},
		"a.c uses b of b.c; b.c uses c of c.S; c.S uses a of a.c": {
			"a.c": "int b(void); int a(void) { return b(); }",
			"b.c": "int c(void); int b(void) { return c(); }",
			"c.S": "\t.globl c\nc:\tjmp a@plt\n"},
	} {
		dir := t.TempDir()
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := cFiles(t, dir).circle(); got != want {
			t.Errorf("found %q, not %q", got, want)
		}
	}
}
