package main

import (
	"slices"
	"testing"

	"github.com/google/pprof/profile"
)

// TestPythonFrames: the interpreter's functions next to functions of Python are left out, those of
// extensions and of libc are not.
func TestPythonFrames(t *testing.T) {
	interpreter, extension, libc := &profile.Mapping{File: "/lib/libpython.so"},
		&profile.Mapping{File: "/lib/numpy.so"}, &profile.Mapping{File: "/lib/libc.so.6"}
	at := func(name string, m *profile.Mapping) *profile.Location {
		l := &profile.Location{Mapping: m,
			Line: []profile.Line{{Function: &profile.Function{Name: name}}}}
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
			[]string{"load", "<module>", "_start"}},
		{[]*profile.Location{array, call, load, main, run, start},
			[]string{"array_new", "load", "<module>", "_start"}},
		{[]*profile.Location{call, array, call, load, run, start, run},
			[]string{"vectorcall", "array_new", "load", "_start", "Py_BytesMain"}},
		{[]*profile.Location{call, run, start}, []string{"vectorcall", "Py_BytesMain", "_start"}},
		{[]*profile.Location{load, main}, []string{"load", "<module>"}},
		{[]*profile.Location{array, load}, []string{"array_new", "load"}},
	} {
		var got []string
		for _, f := range frames(&profile.Sample{Location: c.stack}) {
			got = append(got, f.name)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q instead of %q", got, c.want)
		}
	}
}
