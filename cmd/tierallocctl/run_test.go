package main

import "testing"

// TestOwnGroupName: two commands of one process number, as in two containers, get two groups.
func TestOwnGroupName(t *testing.T) {
	if a, b := ownGroup(), ownGroup(); a == b {
		t.Errorf("%s twice", a)
	}
}
