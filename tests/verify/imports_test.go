package verify

import (
	"slices"
	"strings"
	"testing"
)

// cleanGraph is the shape that the finished project has.
func cleanGraph() []Package {
	own := func(dir string, imports ...string) Package {
		return Package{ImportPath: strings.TrimSuffix(Module+"/"+dir, "/"), Imports: imports}
	}
	const m = Module + "/"
	return []Package{
		own("internal/raw", "runtime/cgo", "syscall", "unsafe", "sync/atomic"),
		own("internal/config", m+"internal/raw", "golang.org/x/sys/unix"),
		own("stats", m+"internal/raw", m+"internal/config"),
		own("stats/logger", m+"stats", "fmt", "github.com/rs/zerolog"),
		own("tiers", m+"stats", m+"numa"),
		own("numa", "math/bits", m+"internal/raw"),
		own("alloc/sizeclass", "math/bits"),
		own("alloc", m+"tiers", m+"internal/raw", m+"alloc/sizeclass"),
		own("cudahook", m+"tiers"),
		own("cudahook/nvml", "github.com/NVIDIA/go-nvml/pkg/dl"),
		own("interpose", "C"),
		own("", "C", m+"alloc", m+"cudahook", m+"interpose", m+"stats/logger"),
		own("internal/testlib", "testing"),
		own("cmd/tierallocctl", "github.com/NVIDIA/go-nvml/pkg/nvml", "os", m+"stats/logger"),
		own("tests/verify", "debug/elf"),
		{ImportPath: "fmt", Standard: true},
		{ImportPath: "os", Standard: true},
		{ImportPath: "math/bits", Standard: true},
		{ImportPath: "syscall", Standard: true},
		{ImportPath: "sync/atomic", Standard: true},
		{ImportPath: "runtime/cgo", Standard: true},
		{ImportPath: "github.com/rs/zerolog", Imports: []string{"github.com/mattn/go-isatty"}},
		{ImportPath: "github.com/mattn/go-isatty"},
	}
}

func TestImportsClean(t *testing.T) {
	for _, b := range CheckImports(cleanGraph()) {
		t.Error(b)
	}
}

// TestImportSins adds one import at a time to the clean graph.
func TestImportSins(t *testing.T) {
	const m = Module + "/"
	for _, sin := range []struct{ from, to, want string }{
		{m + "internal/raw", m + "internal/config", "against the order"},
		{m + "internal/config", m + "stats", "against the order"},
		{m + "numa", m + "stats", "against the order"},
		{m + "stats", m + "tiers", "against the order"},
		{m + "alloc", m + "cudahook", "against the order"},
		{m + "alloc/sizeclass", m + "alloc", "against the order"},
		{m + "alloc/sizeclass", m + "internal/raw", "against the order"},
		{m + "cudahook", m + "alloc", "against the order"},
		{m + "alloc", m + "stats/logger", "rooms only"},
		{m + "stats", m + "stats/logger", "rooms only"},
		{m + "alloc", m + "interpose", "rooms only"},
		{m + "alloc", "fmt", "short list"},
		{m + "alloc", "sync", "short list"},
		{m + "alloc", "github.com/rs/zerolog", "short list"},
		{m + "alloc", "golang.org/x/sys/cpu", "short list"},
		{m + "alloc", "C", "meet C"},
		{m + "stats/logger", "C", "meet C"},
		{m + "stats/logger", "github.com/sirupsen/logrus", "not one of the library's modules"},
		{m + "stats/logger", "github.com/rs/zerologger", "not one of the library's modules"},
		{m + "interpose", Module, "imported by nobody"},
		{m + "stats/logger", m + "internal/testlib", "no part of the library"},
		{m + "cudahook/nvml", nvmlCalls, "use pkg/dl"},
		{"github.com/rs/zerolog", nvmlCalls, "the library links"},
	} {
		list := cleanGraph()
		i := slices.IndexFunc(list, func(p Package) bool { return p.ImportPath == sin.from })
		list[i].Imports = append(list[i].Imports, sin.to)
		got := CheckImports(list)
		if len(got) == 0 || !slices.ContainsFunc(got,
			func(b string) bool { return strings.Contains(b, sin.want) }) {
			t.Errorf("%s imports %s: want %q, got %v", sin.from, sin.to, sin.want, got)
		}
	}
}

func TestImportAssembly(t *testing.T) {
	list := cleanGraph()
	list[0].SFiles = []string{"raw_amd64.s"}
	if got := CheckImports(list); len(got) != 1 || !strings.Contains(got[0], "Go assembly") {
		t.Errorf("assembly in a room: %v", got)
	}
}
