package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tieralloc/internal/testlib"
)

// system is the Python that the system's packages of modules are for.
const system = "/usr/bin/python3"

// pythons are the system's Python and the one in PATH, where they differ: the latter
// is often a shell script that finds an interpreter and execs it.
func pythons(t *testing.T) []string {
	t.Helper()
	inPath, err := exec.LookPath("python3")
	if err != nil {
		testlib.Lacks(t, "python3")
	}
	if _, err := os.Stat(system); err != nil || inPath == system || inPath == "/bin/python3" {
		return []string{inPath}
	}
	return []string{system, inPath}
}

// withModule is the system's Python, if it has a module.
func withModule(t *testing.T, module string) string {
	t.Helper()
	if err := exec.Command(system, "-c", "import "+module).Run(); err != nil {
		testlib.Lacks(t, module+" for "+system+" (Debian package python3-"+module+")")
	}
	return system
}

// run runs a script of testdata with the shim on its path.
func run(t *testing.T, preload bool, env []string, python, script string,
	args ...string) testlib.Result {
	t.Helper()
	root := testlib.Root()
	return testlib.Run(t, testlib.Cmd{
		Args: append([]string{python, filepath.Join(root, "tests", "python", "testdata",
			script)}, args...),
		Env: append([]string{"PYTHONPATH=" + filepath.Join(root, "python"),
			"PYTHONDONTWRITEBYTECODE=1", "LD_PRELOAD="}, env...),
		Preload: preload,
		Timeout: 3 * time.Minute,
	})
}

// want fails the test when a script did not end well.
func want(t *testing.T, r testlib.Result) {
	t.Helper()
	if r.Status != 0 || strings.Contains(r.Stderr, "Ran 0 tests") {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}

func TestShim(t *testing.T) {
	for _, python := range pythons(t) {
		t.Run(python, func(t *testing.T) {
			want(t, run(t, true, nil, python, "shim.py"))
		})
	}
}

// TestShimMalloc has Python's own small objects in the library as well.
func TestShimMalloc(t *testing.T) {
	want(t, run(t, true, []string{"PYTHONMALLOC=malloc"}, pythons(t)[0], "shim.py"))
}

// TestWithout: where the library is not at work the shim says so, and why.
func TestWithout(t *testing.T) {
	for _, c := range []struct {
		preload bool
		env     []string
		why     string
	}{
		{false, nil, "is not in this process"},
		{true, []string{"TA_INTERPOSE=0"}, "malloc is not its own"},
	} {
		for _, python := range pythons(t) {
			want(t, run(t, c.preload, c.env, python, "without.py", c.why))
		}
	}
}

// TestDisabled: TierAlloc's own example runs with TA_DISABLE=1, and says so.
func TestDisabled(t *testing.T) {
	for _, python := range pythons(t) {
		r := run(t, true, []string{"TA_DISABLE=1"}, python, "example.py")
		const says = "tieralloc is disabled in this process (TA_DISABLE=1)"
		if want(t, r); r.Stdout != says+"\n" ||
			strings.Count(r.Stderr, says+": enable() does nothing") != 1 {
			t.Errorf("it prints %q and %q", r.Stdout, r.Stderr)
		}
		want(t, run(t, true, []string{"TA_DISABLE=1"}, python, "disabled.py"))
	}
}

// TestExample: TierAlloc's own example.
func TestExample(t *testing.T) {
	for _, python := range pythons(t) {
		r := run(t, true, nil, python, "example.py")
		if want(t, r); r.Stderr != "" || !strings.Contains(r.Stdout, "shim on, default hint hot") {
			t.Errorf("it prints %q and %q", r.Stdout, r.Stderr)
		}
	}
}

// TestCommandInError: the command in the error is one that works.
func TestCommandInError(t *testing.T) {
	for _, python := range pythons(t) {
		r := run(t, false, nil, python, "enable.py", "an argument", "$x")
		_, command, found := strings.Cut(r.Stderr, "like this:\n")
		if r.Status != 1 || !found || strings.Contains(r.Stderr, "enabled") {
			t.Fatalf("status %d: %s", r.Status, r.Stderr)
		}
		command = strings.ReplaceAll(command,
			filepath.Join(testlib.Root(), "build", "libtieralloc.so"), testlib.Lib(t))
		command = strings.ReplaceAll(command, "/path/to/libtieralloc.so", testlib.Lib(t))
		again := testlib.Run(t, testlib.Cmd{Args: []string{"sh", "-c", command},
			Env: []string{"PYTHONPATH=" + filepath.Join(testlib.Root(), "python"),
				"PYTHONDONTWRITEBYTECODE=1"}})
		if again.Status != 0 || again.Stdout != "enabled an argument $x\n" {
			t.Errorf("%s: status %d, %s%s", command, again.Status, again.Stdout, again.Stderr)
		}
	}
}

func TestNumPy(t *testing.T) {
	want(t, run(t, true, nil, withModule(t, "numpy"), "arrays.py"))
}

func TestTorch(t *testing.T) {
	want(t, run(t, true, nil, withModule(t, "torch"), "hinted.py"))
}

// TestTorchTraining: under rules the same losses come out as without the library, and the
// tensors are in the rules' tiers.
func TestTorchTraining(t *testing.T) {
	python := withModule(t, "torch")
	plain := run(t, false, nil, python, "train.py")
	want(t, plain)
	rules := "TA_RULES=size>=1M:cold; lib=libtorch*:prefer_fast; lib=libc10*:prefer_fast"
	preloaded := run(t, true, []string{rules, "TA_STRICT=1"}, python, "train.py", "preloaded")
	want(t, preloaded)
	if strings.Count(plain.Stdout, "\n") != 20 || plain.Stdout != preloaded.Stdout {
		t.Errorf("plain:\n%s\npreloaded:\n%s", plain.Stdout, preloaded.Stdout)
	}
}
