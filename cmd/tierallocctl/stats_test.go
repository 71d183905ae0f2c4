package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tieralloc/stats/live"
)

// TestPrune: only what nobody will write to goes, and one that cannot be removed does
// not keep the others.
func TestPrune(t *testing.T) {
	dir := t.TempDir()
	var pages []*page
	states := []live.State{live.Running, live.Killed, live.Exited, live.Unknown, live.Replaced}
	for _, s := range states {
		p := &page{path: filepath.Join(dir, s.String()), state: s, program: "prog"}
		if s != live.Killed { // that is gone already
			if err := os.WriteFile(p.path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		pages = append(pages, p)
	}
	var out bytes.Buffer
	if err := prunePages(&out, pages); !os.IsNotExist(unjoined(err)) {
		t.Errorf("%v", err)
	}
	for _, s := range states {
		_, err := os.Stat(filepath.Join(dir, s.String()))
		if kept := err == nil; kept != (s == live.Running || s == live.Unknown) {
			t.Errorf("%s: kept %v", s, kept)
		}
	}
	if n := strings.Count(out.String(), "removed"); n != 2 {
		t.Errorf("%d are told of: %s", n, out.String())
	}
}

// unjoined is the one error in a joined one.
func unjoined(err error) error {
	if j, ok := err.(interface{ Unwrap() []error }); ok && len(j.Unwrap()) == 1 {
		return j.Unwrap()[0]
	}
	return err
}

// TestStateWords: each state is told apart.
func TestStateWords(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range []live.State{live.Running, live.Killed, live.Exited, live.Unknown, live.Replaced} {
		words := stateWords(s)
		if !strings.HasPrefix(words, s.String()) || seen[words] {
			t.Errorf("%s: %q", s, words)
		}
		seen[words] = true
	}
}
