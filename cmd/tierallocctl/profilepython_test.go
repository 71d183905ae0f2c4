package main

import (
	"slices"
	"testing"

	"github.com/google/pprof/profile"
)

// TestFoldPython: functions of Python and their callers stay, but for the interpreter.
func TestFoldPython(t *testing.T) {
	interpreter := &profile.Mapping{File: "/lib/libpython.so"}
	extension, libc := &profile.Mapping{File: "/lib/numpy.so"}, &profile.Mapping{}
	at := func(name string, m *profile.Mapping) *profile.Location {
		f := &profile.Function{Name: name, Filename: "/srv/app/main.py"}
		l := &profile.Location{Mapping: m, Line: []profile.Line{{Function: f}}}
		if m != nil {
			l.Address = 1 << 20
		}
		return l
	}
	load, main := at("load", nil), at("<module>", nil)
	call, run := at("vectorcall", interpreter), at("Py_BytesMain", interpreter)
	array, start := at("array_new", extension), at("_start", libc)
	for _, c := range []struct {
		stack []*profile.Location
		want  []string
	}{
		{[]*profile.Location{call, call, load, main, run, run, start},
			[]string{"load (app/main.py)", "<module> (app/main.py)", "_start"}},
		{[]*profile.Location{array, call, load, main, run, start, run},
			[]string{"load (app/main.py)", "<module> (app/main.py)", "_start", "Py_BytesMain"}},
		{[]*profile.Location{call, run, start}, []string{"vectorcall", "Py_BytesMain", "_start"}},
		{[]*profile.Location{array, load, main},
			[]string{"load (app/main.py)", "<module> (app/main.py)"}},
	} {
		var got []string
		p := &profile.Profile{Sample: []*profile.Sample{{Location: slices.Clone(c.stack)}}}
		foldPython(p)
		for _, f := range frames(p.Sample[0]) {
			got = append(got, f.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q instead of %q", got, c.want)
		}
	}
}
