package cuda

import (
	"os"
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

const systemPython = "/usr/bin/python3"

// pythonProgram is a program of testdata, with the package where it is.
func pythonProgram(t *testing.T, preload bool, env []string, args ...string) testlib.Cmd {
	t.Helper()
	for _, need := range []string{systemPython, "/usr/lib/python3/dist-packages/numpy"} {
		if _, err := os.Stat(need); err != nil {
			testlib.Lacks(t, need)
		}
	}
	env = append([]string{"PYTHONPATH=" + filepath.Join("..", "..", "python"),
		"PYTHONDONTWRITEBYTECODE=1"}, env...)
	return command(preload, env, append([]string{systemPython}, args...)...)
}

// says runs a program that prints ok when it has seen what it should.
func says(t *testing.T, c testlib.Cmd) {
	t.Helper()
	r := testlib.Run(t, c)
	clean(t, r)
	if r.Stdout != "ok\n" {
		t.Errorf("stdout %q", r.Stdout)
	}
}

// TestMMPython: the MemoryManager of Python, by parts; with each way of device memory's reuse
// where that makes a difference.
func TestMMPython(t *testing.T) {
	for _, part := range []string{"parts", "names", "arrays", "queue", "room", "active", "numba",
		"hooks"} {
		t.Run(part, func(t *testing.T) {
			says(t,
				pythonProgram(t, true, nil, "testdata/mm_"+part+".py"))
		})
	}
	for mode, env := range modes {
		for _, part := range []string{"arrays", "room", "active", "hooks"} {
			t.Run(mode+"/"+part, func(t *testing.T) {
				says(t,
					pythonProgram(t, true, env, "testdata/mm_"+part+".py"))
			})
		}
	}
}

// TestComingFromCubie: the example of docs/coming-from.md.
func TestComingFromCubie(t *testing.T) {
	says(t, pythonProgram(t, true, nil, "testdata/coming_from_cubie.py"))
}

// TestMMPythonAbsent: what it says where something is missing.
func TestMMPythonAbsent(t *testing.T) {
	const program = "testdata/mm_absent.py"
	none, old := "LD_LIBRARY_PATH="+t.TempDir(), "LD_LIBRARY_PATH="+oldDriver(t)
	for name, c := range map[string]testlib.Cmd{
		"library": pythonProgram(t, false, nil, program, "library",
			filepath.Join(drivers, "libcuda.so.1")),
		"load":      pythonProgram(t, false, nil, program, "load", testlib.Lib(t)),
		"no driver": pythonProgram(t, true, []string{none}, program, "device"),
		"old":       pythonProgram(t, true, []string{old}, program, "device"),
		"off":       pythonProgram(t, true, []string{"TA_CUDA=0"}, program, "off"),
		"disabled":  pythonProgram(t, true, []string{"TA_DISABLE=1"}, program, "off"),
		"ordinal":   pythonProgram(t, true, nil, program, "ordinal"),
		"numpy":     pythonProgram(t, true, nil, program, "numpy"),
	} {
		t.Run(name, func(t *testing.T) { says(t, c) })
	}
}
