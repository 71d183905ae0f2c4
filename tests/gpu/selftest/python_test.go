package selftest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// systemPython skips the test where there is none, and fails it on a build server, where a
// skipped test would go unseen.
func systemPython(t *testing.T) string {
	t.Helper()
	const path = "/usr/bin/python3"
	if _, err := os.Stat(path); err != nil {
		testlib.Lacks(t, path)
	}
	return path
}

func python(t *testing.T, path, script string, args ...string) testlib.Result {
	t.Helper()
	file := filepath.Join(testlib.Root(), "tests", "gpu", script)
	return testlib.Run(t, testlib.Cmd{Args: append([]string{systemPython(t), file}, args...),
		Env: []string{"PYTHONPATH=" + path, "PYTHONDONTWRITEBYTECODE=1"}})
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

const fullLines = "ours a 100.0 900 1000 1000\nours a 110 900 1000 1000\ntorch a 300 900 1000 " +
	"1000\ntorch a 330 900 1000 1000\n"

func TestSummary(t *testing.T) {
	for _, c := range []struct {
		lines, runs string
		status      int
		row         string
	}{
		{fullLines, "2", 0, "row a ok 3.00 times PyTorch, reserved/live 1.000 to 1.000"},
		{"", "2", 0, "row a FAIL 0 of 2 runs of ours, 0 of 2 runs of torch"},
		{fullLines, "3", 0, "row a FAIL 2 of 3 runs of ours, 2 of 3 runs of torch"},
		{fullLines, "0", 0, "row a FAIL "},
		{"ours a 1 1 1 1\n", "1", 0, "row a lack 0 of 1 runs of torch"},
		{"torch a 1 1 1 1\n", "1", 0, "row a FAIL 0 of 1 runs of ours"},
		{"torch b 1 1 1 1\nours b 0.5 1 1 1\n", "1", 0, "row a FAIL 0 of 1 runs of ours"},
		{"torch a 1 1 1 1\nours a 2 1 1 1\n", "1", 0, "row a FAIL 0.50 times"},
		{"torch a 2 1 1 1\nours a 1 1 2 1\n", "1", 0, "row a FAIL 2.00 times"},
		{fullLines + "ours a 100.0 900\n", "2", 1, ""},
		{fullLines + "ours a nan 900 1 1\n", "2", 1, ""},
		{fullLines + "ours a 1 900 1 0\n", "2", 1, ""},
	} {
		file := filepath.Join(t.TempDir(), "lines")
		write(t, file, c.lines)
		r := python(t, "", "summary.py", file, c.runs, "a")
		if r.Status != c.status || c.row != "" && !strings.Contains(r.Stdout, "\n"+c.row) ||
			c.status == 0 && r.Stderr != "" {
			t.Errorf("%q: status %d\n%s%s", c.lines, r.Status, r.Stdout, r.Stderr)
		}
	}
}

// A numba that asks NumPy for what it no longer has, when it is loaded.
const oldNumba = `import numpy
assert numpy.row_stack is numpy.vstack and numpy.in1d is numpy.isin
assert numpy.trapz() == "the old one"
`

const itsCUDA = `
from .cudadrv.driver import driver

class device_array(dict):
    def __init__(self, n, dtype):
        driver.cuMemAlloc(4 * n)

class context:
    class deallocations:
        clear = staticmethod(lambda: driver.cuMemFree(0))

def synchronize():
    pass

def current_context():
    return context
`

// TestNumba: numba is measured though NumPy has dropped names that it asks for; where it
// refuses NumPy altogether, the last words say so.
func TestNumba(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "numpy.py"),
		"__version__ = '2.5.9'\nfloat32 = float\ndef vstack(): pass\ndef isin(): pass\ndef "+
			"trapezoid(): pass\ndef trapz(): return 'the old one'\n")
	write(t, filepath.Join(dir, "numba", "__init__.py"), oldNumba)
	write(t, filepath.Join(dir, "numba", "cuda", "__init__.py"), itsCUDA)
	write(t, filepath.Join(dir, "numba", "cuda", "cudadrv", "driver.py"),
		"class driver:\n    cuMemAlloc = cuMemFree = staticmethod(lambda n: n)\n")
	if r := python(t, dir, "frameworks.py", "numba"); r.Status != 0 ||
		!strings.HasPrefix(r.Stdout, "numba ") || !strings.HasSuffix(r.Stdout, " 2400.0\n") {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	write(t, filepath.Join(dir, "numba", "cuda", "cudadrv", "driver.py"),
		"class driver:\n    cuMemAlloc = cuMemFree = lambda n: n\n")
	write(t, filepath.Join(dir, "numba", "cuda", "__init__.py"),
		strings.Replace(itsCUDA, "driver.cuMemFree(0)", "None", 1))
	if r := python(t, dir, "frameworks.py", "numba"); r.Status != 1 ||
		r.Stderr != "numba made 1200 driver calls for 1200 arrays\n" {
		t.Errorf("half of the calls: status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
	write(t, filepath.Join(dir, "numba", "__init__.py"),
		"raise ImportError('Numba needs NumPy 2.4\\nor less.')\n")
	write(t, filepath.Join(dir, "numba-7.8.dist-info", "METADATA"),
		"Metadata-Version: 2.1\nName: numba\nVersion: 7.8\n") // found before an installed one's
	r := python(t, dir, "frameworks.py", "numba")
	if want := "numba 7.8 with NumPy 2.5.9: ImportError: Numba needs NumPy 2.4 or " +
		"less.\n"; r.Status != 1 || r.Stderr != want {
		t.Errorf("status %d\n%s%s", r.Status, r.Stdout, r.Stderr)
	}
}
