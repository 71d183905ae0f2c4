package profile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"tieralloc/internal/testlib"
)

// pythonStack is the functions and lines of Python in a stack, innermost first. It reports whether
// they stand together, within frames of the interpreter.
func pythonStack(s *profile.Sample) (stack []string, within bool) {
	first, last := -1, -1
	for i, l := range s.Location {
		if len(l.Line) != 0 {
			if first < 0 {
				first = i
			}
			last = i
			stack = append(stack, l.Line[0].Function.Name+" "+strconv.FormatInt(l.Line[0].Line, 10))
		}
	}
	return stack, first > 0 && last+1 < len(s.Location) && last-first+1 == len(stack)
}

// TestPython: the blocks of a Python program are those of its functions and lines, in all versions
// of Python that there are.
func TestPython(t *testing.T) {
	script, err := filepath.Abs("testdata/python.py")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	at := map[string]string{} // the line of a comment
	for i, line := range strings.Split(string(text), "\n") {
		if _, name, found := strings.Cut(line, "#: "); found {
			at[name] = strconv.Itoa(i + 1)
		}
	}
	deep := "deep " + at["bottom"] + strings.Repeat(", deep "+at["deep"], 20)
	want := map[string]float64{ // bytes by stack
		"Store.load " + at["load"] + ", <module> " + at["module"]:   900 * 3034,
		"compared " + at["compared"] + ", <module> " + at["sorted"]: 300 * 5034,
		"généré " + at["generator"] + ", <module> " + at["extend"]:  200 * 9034,
		deep + ", <module> " + at["call"]:                           70034,
		"table " + at["table"] + ", <module> " + at["kept"]:         90 * 20002,
	}
	for _, python := range testlib.Pythons(t) {
		reports, heap := runWithReport(t, "1K", python, script)
		p := read(t, heap)
		got, elsewhere := map[string]float64{}, 0.0
		for _, s := range p.Sample {
			stack, within := pythonStack(s)
			bytes := float64(s.Value[p.value(t, "alloc_space")])
			if len(stack) == 0 {
				elsewhere += bytes
				continue
			}
			if !within {
				t.Errorf("%s: %q is not within the interpreter", python, stack)
			}
			key := strings.Join(stack, ", ")
			// Up to 3.11 a comprehension is a function.
			key = strings.Replace(key, "table.<locals>.<listcomp> "+at["table"]+", ", "", 1)
			if strings.Contains(key, "Thread.run") && strings.HasPrefix(key, "Store.load ") {
				key = "thread"
			}
			got[key] += bytes
		}
		want["thread"] = 900 * 3034
		for key, bytes := range want {
			if got[key] < 0.9*bytes || got[key] > 1.1*bytes {
				t.Errorf("%s: %.0f bytes instead of %.0f by %s", python, got[key], bytes, key)
			}
		}
		frame, found := script+":"+at["load"]+" Store.load", false
		for _, s := range sitesOf(t, reports[0]) {
			for _, f := range s.Stack {
				found = found || f == frame
			}
		}
		if !found {
			t.Errorf("%s: no site of the report has %s", python, frame)
		}
	}
}

// TestPythonFull: of a program with more functions than a profile has room for, each block belongs
// to its function, or to none of Python's.
func TestPythonFull(t *testing.T) {
	for _, python := range testlib.Pythons(t) {
		p, _ := run(t, "1K", python, "-c", `
kept = []
for i in range(20000):
    exec(f"def f{i}(): kept.append(bytes(4001))\nf{i}()")`)
		own := 0.0
		for _, s := range p.Sample {
			bytes := float64(s.Value[p.value(t, "alloc_space")])
			size := s.NumLabel["size_min"][0]
			switch stack, _ := pythonStack(s); {
			case size != s.NumLabel["size_max"][0] || size != 4034 || len(stack) == 0:
			case strings.HasPrefix(stack[0], "f"):
				own += bytes
			default:
				t.Errorf("%s: %.0f bytes by %q", python, bytes, stack)
			}
		}
		if own < 20000*4034/100 || p.comment(t, "stacks shortened") == 0 {
			t.Errorf("%s: %.0f bytes are of their functions", python, own)
		}
	}
}

// TestPythonNumbers: the functions of Python have the numbers from 1 on, since pprof gives those
// that it adds the numbers from their count on. Each is there once, however often it was called.
func TestPythonNumbers(t *testing.T) {
	const script = "def often():\n  return bytes(50001)\nkept = [often() for _ in range(20)]"
	for _, python := range testlib.Pythons(t) {
		p, _ := run(t, "1K", python, "-c", script)
		often := 0
		for i, f := range p.Function {
			if f.ID != uint64(i+1) {
				t.Errorf("%s: function %d has the number %d", python, i+1, f.ID)
			}
			if f.Name == "often" {
				often++
			}
		}
		if often != 1 {
			t.Errorf("%s: %d functions instead of one", python, often)
		}
	}
}

// TestPythonAgain: a function that is compiled again and again is one.
func TestPythonAgain(t *testing.T) {
	for _, python := range testlib.Pythons(t) {
		p, _ := run(t, "1K", python, "-c", `
kept = []
for i in range(6000):
    exec("def g():\n  kept.append(bytes(4001))\ng()")`)
		own := 0.0
		for _, s := range p.Sample {
			if stack, _ := pythonStack(s); len(stack) > 0 && stack[0] == "g 2" {
				own += float64(s.Value[p.value(t, "alloc_space")])
			}
		}
		if n := p.comment(t, "stacks shortened"); n != 0 || own < 0.95*6000*4034 ||
			own > 1.05*6000*4034 {
			t.Errorf("%s: %.0f bytes, %d stacks shortened", python, own, n)
		}
	}
}
