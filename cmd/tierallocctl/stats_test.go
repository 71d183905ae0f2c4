package main

import (
	"strings"
	"testing"

	"tieralloc/stats/live"
)

// TestStateWords: each state is told apart.
func TestStateWords(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []live.State{live.Running, live.Killed, live.Exited, live.Unknown,
		live.Replaced} {
		words := stateWords(s)
		if !strings.HasPrefix(words, s.String()) || seen[words] {
			t.Errorf("%s: %q", s, words)
		}
		seen[words] = true
	}
}
