package verify

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fixture builds testdata/fixtures once; a shared library of 30 exports takes
// one link.
var fixture = sync.OnceValues(func() (string, error) {
	dir, err := filepath.Abs(filepath.Join("testdata", "fixtures"))
	if err != nil {
		return "", err
	}
	out := filepath.Join(scratch, "fixtures.so")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-o", out, ".")
	cmd.Dir = dir
	if msg, err := cmd.CombinedOutput(); err != nil {
		return "", &buildError{string(msg), err}
	}
	return out, nil
})

type buildError struct {
	output string
	err    error
}

func (e *buildError) Error() string { return e.err.Error() + "\n" + e.output }

var fixtureImage = sync.OnceValues(func() (*Image, error) {
	path, err := fixture()
	if err != nil {
		return nil, err
	}
	return Load(path)
})

func loadFixture(t *testing.T) *Image {
	t.Helper()
	img, err := fixtureImage()
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func fixtureRules() *Rules {
	return &Rules{
		Own: func(pkg string) bool {
			return slices.Contains([]string{"main", "fixtures/room", "fixtures/asm"}, pkg)
		},
	}
}

// sins are the exports of the fixture that break a rule, and what the report
// must say of each.
var sins = map[string]string{
	"ta_go_new":           ": allocates on Go's heap",
	"ta_go_append":        "reaches runtime.growslice",
	"ta_go_map_read":      "reaches runtime.mapaccess1_fast64",
	"ta_go_map_write":     "reaches runtime.mapassign_fast64",
	"ta_go_index":         "reaches runtime.panicBounds: bounds check",
	"ta_go_slice":         "reaches runtime.panicBounds: bounds check",
	"ta_go_divide":        "reaches runtime.panicdivide: guard the divisor",
	"ta_go_shift":         "reaches runtime.panicshift: guard the divisor",
	"ta_go_panic":         "reaches runtime.gopanic: panic edge",
	"ta_go_func_value":    "indirect call: call   *",
	"ta_go_interface":     "indirect call: call   *",
	"ta_go_defer":         "reaches runtime.deferreturn",
	"ta_go_closure":       "reaches runtime.deferreturn",
	"ta_go_concat":        "reaches runtime.concatstring2",
	"ta_go_barrier":       "reaches runtime.gcWriteBarrier1: write barrier",
	"ta_go_mutex":         "package internal/sync is not part",
	"ta_go_channel":       "reaches runtime.chansend1",
	"ta_go_goroutine":     "reaches runtime.newproc",
	"ta_go_entersyscall":  "package syscall is not part",
	"ta_go_std":           "package unicode/utf8 is not part",
	"ta_go_other_package": "package fixtures/other is not part",
	"ta_go_c":             "reaches main._Cfunc_c_function",
	"ta_go_asm":           "reaches fixtures/asm.Double.abi0: assembly",
	"ta_go_result":        "reaches runtime.cgoCheckResult",
	"ta_go_deep":          "bytes of stack, more than 4096",
	"ta_go_chain":         "bytes of stack, more than 4096",
	"ta_go_recursion":     "recursion",
	"ta_go_mutual":        "recursion",
}

// TestSins: each broken rule is found, at its own export and with a path from
// there.
func TestSins(t *testing.T) {
	img := loadFixture(t)
	exports := img.Exports()
	for name, want := range sins {
		t.Run(name, func(t *testing.T) {
			entry := exports[name]
			if entry == nil {
				t.Fatal("the fixture does not export it")
			}
			res := Walk(img, fixtureRules(), []*Func{entry})
			for _, v := range res.Violations {
				t.Log(v)
			}
			i := slices.IndexFunc(res.Violations,
				func(v Violation) bool { return strings.Contains(v.What, want) })
			if i < 0 {
				t.Fatalf("passes, or is reported for another reason than %q", want)
			}
			if v := res.Violations[i]; !strings.HasPrefix(v.Path[0], entry.Name) {
				t.Errorf("the path does not start at the export: %v", v.Path)
			}
		})
	}
}

// TestEverySinIsListed: a sin added to the fixture and not to the table above
// would not be tested.
func TestEverySinIsListed(t *testing.T) {
	for name := range loadFixture(t).Exports() {
		if _, ok := sins[name]; !ok && !strings.HasPrefix(name, "ta_go_ok_") &&
			name != "ta_go_init" {
			t.Errorf("%s of the fixture is not listed", name)
		}
	}
}

// TestClean: what is allowed passes, so that a failure means something.
func TestClean(t *testing.T) {
	img := loadFixture(t)
	var entries []*Func
	for name, fn := range img.Exports() {
		if strings.HasPrefix(name, "ta_go_ok_") || name == "ta_go_init" {
			entries = append(entries, fn)
		}
	}
	res := Walk(img, fixtureRules(), entries)
	for _, v := range res.Violations {
		t.Error(v)
	}
	t.Logf("%d exports, %d functions, %d bytes: %v", res.Exports, res.Reached, res.Depth,
		res.DepthPath)
	// The allowed leaves must have been met, or the fixture has lost its point.
	for _, leaf := range []string{"runtime.memmove", "runtime.memequal",
		"runtime.memclrNoHeapPointers", rawSyscall, "main.triple"} {
		if !reaches(img, entries, leaf) {
			t.Errorf("no clean export reaches %s any more", leaf)
		}
	}
}

func reaches(img *Image, entries []*Func, name string) bool {
	w := &walker{img: img, rules: fixtureRules(), summaries: map[*Func]*summary{},
		parent: map[*Func]*Func{}}
	w.reachAll(entries)
	return w.summaries[img.named[name]] != nil
}

// TestInits: every kind of initialiser is found, and none where there is none.
func TestInits(t *testing.T) {
	img := loadFixture(t)
	found := img.Inits([]string{"fixtures/room", "fixtures/other", "fixtures/asm"})
	slices.Sort(found)
	want := []string{"fixtures/room..inittask", "fixtures/room.init", "fixtures/room.init.0"}
	if !slices.Equal(found, want) {
		t.Errorf("found %v, want %v", found, want)
	}
}

// TestStripped: a library without symbols is an error and not a clean one.
func TestStripped(t *testing.T) {
	path, err := fixture()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "stripped.so")
	if msg, err := exec.Command("strip", "-o", out, path).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, msg)
	}
	if _, err := Load(out); err == nil {
		t.Error("a stripped library was accepted")
	}
}
