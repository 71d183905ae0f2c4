package cuda

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// TestWays: by whatever way a program gets at the driver's functions, it gets ours, and
// they do the same.
func TestWays(t *testing.T) {
	ours := filepath.Base(testlib.Lib(t))
	linked := cc(t, "ways.c", linkedWith()...)
	programs := []struct {
		name, path string
		cases      []string
	}{
		{"loaded", cc(t, "ways.c"), []string{"handle", "proc", "proc_v2", "everywhere"}},
		{"linked", linked, []string{"handle", "proc_v2", "everywhere", "linked", "runtime", "entry",
			"devices"}},
		// libstdc++ allocates before our constructor runs: nothing else has looked for dlsym then.
		{"linked C++", cc(t, "ways.c", append(linkedWith(), "-Wl,--no-as-needed", "-lstdc++")...),
			[]string{"linked", "runtime"}},
		{"static runtime", cc(t, "ways.c", "-DSTATIC", "fake/runtime/cudart.c"),
			[]string{"runtime", "entry", "devices"}},
	}
	for _, p := range programs {
		for _, c := range p.cases {
			t.Run(p.name+"/"+c, func(t *testing.T) {
				_, with := same(t, nil, p.path, c)
				if !strings.Contains(with, "in "+ours) && c != "devices" &&
					p.name != "static runtime" {
					t.Errorf("nothing of it is ours:\n%s", with)
				}
			})
		}
	}
	// cudaSetDevice of a runtime before 12.0 leaves the old context current.
	for _, c := range []string{"runtime", "devices"} {
		t.Run("old runtime/"+c, func(t *testing.T) {
			same(t, []string{"LD_LIBRARY_PATH=" + filepath.Join(drivers, "old") + ":" + drivers},
				linked, c)
		})
	}
}

// TestStaticRuntime: a runtime inside the program asks the driver for all it needs, and
// what it allocates is served.
func TestStaticRuntime(t *testing.T) {
	_, with := same(t, nil, cc(t, "ways.c", "-DSTATIC", "fake/runtime/cudart.c"), "entry")
	if n := strings.Count(with, "in "+filepath.Base(testlib.Lib(t))); n < 2 {
		t.Errorf("%d lines name our library:\n%s", n, with)
	}
}

// TestVersions: of the forms that an entry point has by version and flags, those that
// have ours in their place are exactly those of the same signature.
func TestVersions(t *testing.T) {
	_, with := same(t, nil, cc(t, "ways.c"), "versions")
	ours := " in " + filepath.Base(testlib.Lib(t)) + " "
	want := map[string]string{
		"cuMemAlloc 2000/0":                "",
		"cuMemAlloc 3020/0":                "cuMemAlloc_v2",
		"cuMemAlloc 13000/1":               "cuMemAlloc_v2",
		"cuMemAlloc 13000/2":               "cuMemAlloc_v2",
		"cuMemAlloc 1000/0":                "",
		"cuMemAllocAsync 11010/0":          "",
		"cuMemAllocAsync 11020/0":          "cuMemAllocAsync",
		"cuMemAllocAsync 11020/2":          "cuMemAllocAsync_ptsz",
		"cuStreamBeginCapture 10000/0":     "cuStreamBeginCapture",
		"cuStreamBeginCapture 10010/0":     "cuStreamBeginCapture_v2",
		"cuStreamBeginCapture 10010/2":     "cuStreamBeginCapture_v2_ptsz",
		"cuGetProcAddress 11030/0":         "cuGetProcAddress",
		"cuGetProcAddress 12000/0":         "cuGetProcAddress_v2",
		"cuInit 13000/0":                   "cuInit",
		"cuDriverGetVersion 13000/0":       "",
		"cuNope 13000/0":                   "",
		"cuMemAlloc_v2 13000/0":            "",
		"cudaMalloc 13000/0":               "",
		"cuDevicePrimaryCtxRelease 7000/0": "cuDevicePrimaryCtxRelease",
	}
	seen := 0
	for line := range strings.Lines(with) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ": ")
		symbol, known := want[name]
		if !ok || !known {
			continue
		}
		seen++
		_, got, is := strings.Cut(rest, ours)
		if is != (symbol != "") || got != symbol {
			t.Errorf("%s, want ours: %q", strings.TrimSpace(line), symbol)
		}
	}
	if seen != len(want) {
		t.Errorf("%d of %d forms in:\n%s", seen, len(want), with)
	}
}

// TestSwitchedOff: with TA_CUDA=0 or TA_DISABLE=1 programs get the driver's own functions
// where they search, and ours do nothing where the linker has bound them.
func TestSwitchedOff(t *testing.T) {
	ours := "in " + filepath.Base(testlib.Lib(t))
	loaded, linked := cc(t, "ways.c"), cc(t, "ways.c", linkedWith()...)
	served := cc(t, "reuse.c")
	for _, off := range []string{"TA_CUDA=0", "TA_DISABLE=1"} {
		for _, c := range []string{"handle", "proc", "proc_v2", "versions", "everywhere"} {
			t.Run(off+"/"+c, func(t *testing.T) {
				if plain, with := same(t, []string{off}, loaded, c); with != plain ||
					strings.Contains(with, ours) {
					t.Errorf("not as without the library:\n%s", with)
				}
			})
		}
		for _, c := range []string{"linked", "runtime", "entry"} {
			t.Run(off+"/"+c, func(t *testing.T) { same(t, []string{off}, linked, c) })
		}
		t.Run(off+"/served", func(t *testing.T) {
			if plain, with := same(t, []string{off}, served, "served"); plain != with {
				t.Errorf("calls of the driver: %s, plain %s", with, plain)
			}
		})
	}
}

// TestWithoutCUDA: a program without CUDA sees nothing of ours: the same searches fail, the
// caller's own view counts, and no library is loaded.
func TestWithoutCUDA(t *testing.T) {
	dir := t.TempDir()
	program := cc(t, "nocuda.c")
	plugin := exec.Command("gcc", "-shared", "-fPIC", "-fno-builtin", "-o",
		filepath.Join(dir, "plugin.so"), "testdata/plugin.c")
	if msg, err := plugin.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	for _, c := range []string{"search", "caller", "maps"} {
		t.Run(c, func(t *testing.T) {
			var out [2]string
			for i, preload := range []bool{false, true} {
				cmd := command(preload, nil, program, c)
				cmd.Dir = dir
				r := testlib.Run(t, cmd)
				clean(t, r)
				out[i] = r.Stdout
			}
			if c == "maps" && strings.Contains(out[1], "libcuda") {
				t.Errorf("the driver is loaded:\n%s", out[1])
			}
			if c == "maps" {
				out[0], out[1] = set(out[0]), set(out[1])
			}
			if out[0] != out[1] {
				t.Error(differences(out[0], out[1]))
			}
		})
	}
}

// set sorts out lines that come in another order, or twice.
func set(s string) string {
	seen := map[string]bool{}
	for line := range strings.Lines(s) {
		seen[line] = true
	}
	var lines []string
	for line := range seen {
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// TestOtherInterposer: another library that stands before or after ours and passes dlsym
// and cuMemAlloc_v2 on sees a driver in either place.
func TestOtherInterposer(t *testing.T) {
	other := filepath.Join(t.TempDir(), "other.so")
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-O1", "-Wall", "-o", other, "testdata/other.c")
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	linked := cc(t, "ways.c", linkedWith()...)
	plain := testlib.Run(t, command(false, nil, linked, "linked"))
	clean(t, plain)
	for _, preload := range []string{other + " " + testlib.Lib(t), testlib.Lib(t) + " " + other} {
		for _, c := range []string{"linked", "handle", "runtime"} {
			plain := testlib.Run(t, command(false, nil, linked, c))
			clean(t, plain)
			cmd := command(false, []string{"LD_PRELOAD=" + preload}, linked, c)
			r := testlib.Run(t, cmd)
			clean(t, r)
			if got := results(r.Stdout); got != results(plain.Stdout) {
				t.Errorf("LD_PRELOAD=%s %s:\n%s", preload, c,
					differences(results(plain.Stdout), got))
			}
		}
	}
}

// results are the lines that tell of a call.
func results(s string) string {
	var out strings.Builder
	for line := range strings.Lines(s) {
		if strings.Contains(line, " = ") {
			out.WriteString(line)
		}
	}
	return out.String()
}

// TestNoDriver: a program that is built for CUDA on a machine without a driver, or with a
// library of the driver's name that is too old, runs as without us.
func TestNoDriver(t *testing.T) {
	empty, old := t.TempDir(), oldDriver(t)
	program := cc(t, "nodriver.c")
	for name, dir := range map[string]string{"none": empty, "old": old} {
		t.Run(name, func(t *testing.T) {
			same(t, []string{"LD_LIBRARY_PATH=" + dir}, program, "try")
		})
	}
}
