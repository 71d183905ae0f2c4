package main

import (
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/raw"
)

func TestEnviron(t *testing.T) {
	e := environ{"A=1", "TA_X=", "TA_Y=2", "TA_Y=3", "B", "TA_Z=a=b"}
	for name, want := range map[string]string{"A": "1", "TA_X": "", "TA_Y": "2", "TA_Z": "a=b",
		"TA": "", "B": "", "": ""} {
		got, ok := e.get(name)
		if got != want || ok != (want != "") {
			t.Errorf("%s is %q, %v", name, got, ok)
		}
	}
	if got := e.names("TA_"); !slices.Equal(got, []string{"TA_Y", "TA_Z"}) {
		t.Errorf("names: %q", got)
	}
	if got := e.with("TA_Y", "9"); !slices.Equal(got,
		environ{"A=1", "TA_X=", "B", "TA_Z=a=b", "TA_Y=9"}) {
		t.Errorf("with a value: %q", got)
	}
	if got := e.with("TA_Y", ""); !slices.Equal(got, environ{"A=1", "TA_X=", "B", "TA_Z=a=b"}) {
		t.Errorf("without: %q", got)
	}
	if got, _ := e.get("TA_Y"); got != "2" {
		t.Error("the environment was changed in place")
	}
}

// TestVector reads back what the library would read.
func TestVector(t *testing.T) {
	for _, e := range []environ{nil, {""}, {"A=1", "", "LONG=" + strings.Repeat("x", 10000)}} {
		var got environ
		e.vector(func(envp uintptr) {
			for ; raw.Load(envp) != 0; envp += 8 {
				var text []byte
				for at := raw.Load(envp); raw.LoadByte(at) != 0; at++ {
					text = append(text, raw.LoadByte(at))
				}
				got = append(got, string(text))
			}
		})
		if !slices.Equal(got, e) {
			t.Errorf("%q came back as %q", e, got)
		}
	}
}
