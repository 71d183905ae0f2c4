package python

import "testing"

// TestModules: the package's modules form no circle, and each can be imported first.
func TestModules(t *testing.T) {
	for _, python := range pythons(t) {
		want(t, run(t, false, nil, python, "modules.py"))
	}
}
