package lockrank

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table into docs/architecture.md anew")

// TestNoCircle: a lock is taken under such only as stand above it in the table, or under one of its
// own rank.
func TestNoCircle(t *testing.T) {
	for r := Rank(1); r < Count; r++ {
		l := &Locks[r]
		if l.Name == "" || l.Guards == "" {
			t.Errorf("rank %d has no name, or does not say what it guards", r)
		}
		if above := Set(1<<(r+1) - 2); l.Under&^above != 0 {
			t.Errorf("%s is taken under a lock that is not above it", l.Name)
		}
		for held := Rank(1); held < Count; held++ {
			if held != r && Allows(held, r) && Allows(r, held) {
				t.Errorf("%s and %s are each taken under the other", l.Name, Locks[held].Name)
			}
		}
	}
}

// TestPage: docs/architecture.md shows the table.
func TestPage(t *testing.T) {
	file := filepath.Join("..", "..", "docs", "architecture.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	const heading = "| lock | guards | a thread that waits for it may hold |\n"
	before, rest, found := strings.Cut(string(text), heading)
	_, after, ended := strings.Cut(rest, "\n\n")
	if !found || !ended {
		t.Fatalf("%s has no table that begins with %q", file, heading)
	}
	want := before + heading + rows() + "\n" + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(text) != want {
		t.Error("docs/architecture.md does not show the table: run " +
			"go test ./internal/lockrank -run Page -update")
	}
}

// rows is the table in Markdown, without its heading.
func rows() string {
	var b strings.Builder
	b.WriteString("| --- | --- | --- |\n")
	for r := Rank(1); r < Count; r++ {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", Locks[r].Name, Locks[r].Guards, r.under())
	}
	return b.String()
}

// under says what a thread may hold that waits for the lock.
func (r Rank) under() string {
	var names []string
	set := Locks[r].Under
	if above := Set(1<<r - 2); set&above == above && above != 0 {
		names = append(names, "those above")
		set &^= above
	}
	for held := Rank(1); held < r; held++ {
		if set>>held&1 != 0 {
			names = append(names, "`"+Locks[held].Name+"`")
		}
	}
	if Allows(r, r) {
		names = append(names, "one of a lower address")
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}
