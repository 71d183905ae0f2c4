package main

import "testing"

// TestOwnGroupName: two commands of one process number, as in two containers, get two groups.
func TestOwnGroupName(t *testing.T) {
	if a, b := ownGroup(), ownGroup(); a == b {
		t.Errorf("%s twice", a)
	}
	if name := ownGroup(); !ownGroupName.MatchString(name) {
		t.Errorf("%s is not known as a command's", name)
	}
	if ownGroupName.MatchString("run-1-mine") {
		t.Error("a user's group is taken for a command's")
	}
}
