package cuda

import (
	"os"
	"path/filepath"
	"testing"

	"tieralloc/internal/testlib"
)

// managedDrivers are the drivers by what they have of managed memory's operations.
var managedDrivers = map[string]string{"11": "11", "12": "12", "13": "."}

// underDriver is the environment for one of them.
func underDriver(version string) []string {
	return []string{"LD_LIBRARY_PATH=" + filepath.Join(drivers, managedDrivers[version])}
}

// TestManagedAPI: ta_managed_*, with each generation of drivers.
func TestManagedAPI(t *testing.T) {
	program := cc(t, "managed.c")
	for version := range managedDrivers {
		for _, c := range []string{"absent", "arguments", "advice", "singles", "contextless"} {
			t.Run(version+"/"+c, func(t *testing.T) {
				clean(t, testlib.Run(t, command(true, underDriver(version), program, c, version)))
			})
		}
	}
	for _, c := range []string{"batches", "failures"} {
		t.Run(c, func(t *testing.T) {
			clean(t,
				testlib.Run(t, command(true, nil, program, c, "13")))
		})
	}
	t.Run("limits", func(t *testing.T) {
		clean(t, testlib.Run(t, command(true, []string{"TA_CUDA_HARD=64M"}, program, "limits",
			"13")))
	})
	for _, off := range []string{"TA_CUDA=0", "TA_DISABLE=1"} {
		t.Run(off, func(t *testing.T) {
			clean(t,
				testlib.Run(t, command(true, []string{off}, program, "off", "13")))
		})
	}
}

// TestManagedPython: the package's classes and functions, by every rule they have.
func TestManagedPython(t *testing.T) {
	const python = "/usr/bin/python3"
	if _, err := os.Stat(python); err != nil {
		testlib.Lacks(t, python)
	}
	lib := testlib.Lib(t)
	for _, c := range []struct {
		name, version string
		preload       bool
		env, args     []string
	}{
		{"location", "13", true, nil, []string{"managed_location.py"}},
		{"rules", "13", true, nil, []string{"managed.py"}},
		{"life", "13", true, nil, []string{"managed_life.py"}},
		{"examples", "13", true, nil, []string{"managed_examples.py"}},
		{"buffers", "13", true, nil, []string{"cudacore_buffer.py"}},
		{"examples, limited", "13", true, []string{"TA_CUDA_HARD=64M", "TA_CUDA_REUSE=event"},
			[]string{"managed_examples.py"}},
		{"old/12", "12", true, nil, []string{"managed_old.py"}},
		{"old/11", "11", true, nil, []string{"managed_old.py"}},
		{"loaded", "13", false, nil, []string{"managed_loaded.py", lib}},
		{"off", "13", true, []string{"TA_CUDA=0"}, []string{"managed_loaded.py", lib, "off"}},
		{"disabled", "13", true, []string{"TA_DISABLE=1"},
			[]string{"managed_loaded.py", lib, "off"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := append(underDriver(c.version), "PYTHONDONTWRITEBYTECODE=1",
				"PYTHONPATH="+filepath.Join(testlib.Root(), "python"))
			args := append([]string{python, filepath.Join("testdata", c.args[0])}, c.args[1:]...)
			r := testlib.Run(t, command(c.preload, append(env, c.env...), args...))
			clean(t, r)
			if r.Stdout != "ok\n" {
				t.Errorf("stdout %q", r.Stdout)
			}
		})
	}
}
