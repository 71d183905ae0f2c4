package cuda

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// drivers is the folder of libcuda.so.1, libcudart.so.13 and an older runtime, old/libcudart.so.13,
// and of older drivers, 11/libcuda.so.1 and 12/libcuda.so.1.
var drivers string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "fakecuda")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	drivers = dir
	if err := makeDrivers(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// symbolic binds a library's own calls to itself, as NVIDIA's are.
var shared = []string{"-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-Bsymbolic", "-Wl,-z,defs"}

func makeDrivers() error {
	sources, err := filepath.Glob("fake/*.c")
	if err != nil {
		return err
	}
	old := filepath.Join(drivers, "old")
	if err := os.Mkdir(old, 0o755); err != nil {
		return err
	}
	runtime := func(dir, version string) []string {
		return append([]string{"fake/runtime/cudart.c", "-DCUDART=" + version,
			"-Wl,-soname,libcudart.so.13",
			"-o", filepath.Join(dir, "libcudart.so.13")}, shared...)
	}
	// Of the drivers' sources one differs by the version.
	const differs = "fake/managed.c"
	sources = slices.DeleteFunc(sources, func(name string) bool { return name == differs })
	common := filepath.Join(drivers, "common.o")
	driver := func(dir, version string) []string {
		return append([]string{differs, common, "-DFAKE_CUDA=" + version,
			"-Wl,-soname,libcuda.so.1",
			"-o", filepath.Join(dir, "libcuda.so.1")}, shared...)
	}
	for _, version := range []string{"11", "12"} {
		if err := os.Mkdir(filepath.Join(drivers, version), 0o755); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		append(sources, "-r", "-fPIC", "-fvisibility=hidden", "-o", common),
		driver(drivers, "13"),
		driver(filepath.Join(drivers, "11"), "11"),
		driver(filepath.Join(drivers, "12"), "12"),
		runtime(drivers, "13000"),
		runtime(old, "11080"),
	} {
		if msg, err := exec.Command("gcc", append(args, flags...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("gcc %v: %v\n%s", args, err, msg)
		}
	}
	return nil
}

// oldDriver makes a folder with a libcuda.so.1 that has next to nothing.
func oldDriver(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	src := filepath.Join(dir, "old.c")
	text := "int cuInit(unsigned f) { return f != 0; }\nint cuMemAlloc_v2(unsigned long *p, " +
		"unsigned long n) { *p = n; return 0; }\n"
	if err := os.WriteFile(src, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("gcc", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o",
		filepath.Join(dir, "libcuda.so.1"), src)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, msg)
	}
	return dir
}

var flags = []string{"-g", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter",
	"-Wno-unused-function", "-Wno-cast-function-type",
	"-pthread", "-I", "fake", "-I", filepath.Join("..", "..", "interpose")}

// cc compiles a program of testdata.
func cc(t *testing.T, name string, more ...string) string {
	t.Helper()
	return testlib.CC(t, name, append(append([]string{}, flags...), more...)...)
}

// linkedWith are the flags for a program that is linked with the driver and the runtime.
func linkedWith() []string {
	return []string{"-DLINKED", filepath.Join(drivers, "libcuda.so.1"),
		filepath.Join(drivers, "libcudart.so.13")}
}

// quiet is an environment that no caller's settings reach.
var quiet = []string{"LC_ALL=C", "TA_STATS_FILE=", "TA_LOG=", "TA_STRICT=1", "TA_DISABLE=",
	"TA_INTERPOSE=", "TA_CUDA=",
	"TA_RULES=", "FAKE_MEMORY="}

// command is a program under the fake driver; env adds to the quiet one.
func command(preload bool, env []string, args ...string) testlib.Cmd {
	all := append(append([]string{}, quiet...), "LD_LIBRARY_PATH="+drivers)
	return testlib.Cmd{Args: args, Env: append(all, env...), Preload: preload}
}

// clean fails the test unless the program ended with status 0 and without a word on
// standard error, where the fake driver tells of illegal calls.
func clean(t *testing.T, r testlib.Result) {
	t.Helper()
	if r.Status != 0 || r.Stderr != "" {
		t.Fatalf("status %d\nstdout: %s\nstderr: %s", r.Status, clip(r.Stdout), clip(r.Stderr))
	}
}

func clip(s string) string {
	const most = 3000
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}

// same runs a program without the library and with it: the output is the same but for the files
// that functions are in. It returns both. The library has served something, but where env switches
// it off and in cases of programs that allocate nothing themselves or have nobody to allocate from.
func same(t *testing.T, env []string, args ...string) (plain, with string) {
	t.Helper()
	p := testlib.Run(t, command(false, env, args...))
	clean(t, p)
	file := filepath.Join(t.TempDir(), "stats.json")
	w := testlib.Run(t, command(true, append([]string{"TA_STATS_FILE=" + file}, env...), args...))
	clean(t, w)
	off := slices.Contains(env, "TA_CUDA=0") || slices.Contains(env, "TA_DISABLE=1")
	if !off && !slices.Contains([]string{"child", "uninitialised", "versions", "try"},
		args[len(args)-1]) {
		served(t, file)
	}
	if got := unplaced(t, w.Stdout); got != unplaced(t, p.Stdout) {
		t.Errorf("%v differs:\n%s", args[1:], differences(unplaced(t, p.Stdout), got))
	}
	return p.Stdout, w.Stdout
}

func served(t *testing.T, file string) {
	t.Helper()
	var report struct {
		Devices []struct {
			Allocs uint64 `json:"alloc_calls"`
		}
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &report)
	}
	if err != nil {
		t.Fatal(err)
	}
	calls := uint64(0)
	for _, d := range report.Devices {
		calls += d.Allocs
	}
	if calls == 0 {
		t.Error("the library has served no call")
	}
}

// unplaced hides in which library a function is.
func unplaced(t *testing.T, s string) string {
	for _, lib := range []string{filepath.Base(testlib.Lib(t)), "libcuda.so.1", "libcudart.so.13"} {
		s = strings.ReplaceAll(s, " in "+lib, " in LIB")
		if rest, ok := strings.CutPrefix(s, "in "+lib); ok {
			s = "in LIB" + rest
		}
		s = strings.ReplaceAll(s, "\nin "+lib, "\nin LIB")
		s = strings.ReplaceAll(s, "in LIB "+lib, "in LIB LIB")
	}
	return s
}

// differences are the lines of two texts that differ, by position.
func differences(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	var out strings.Builder
	for i := range max(len(a), len(b)) {
		var x, y string
		if i < len(a) {
			x = a[i]
		}
		if i < len(b) {
			y = b[i]
		}
		if x != y {
			fmt.Fprintf(&out, "%d: plain %q, with the library %q\n", i+1, x, y)
		}
	}
	return clip(out.String())
}
