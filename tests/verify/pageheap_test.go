package verify

import (
	"slices"
	"testing"
)

// pageheap are the files of alloc that know spans and tiers, and nothing of thread heaps.
var pageheap = Border{
	Below: []string{
		"age.go", "autohuge.go", "bins.go", "coalesce.go", "follow.go", "granules.go",
		"guardpages.go", "huge.go", "hugecache.go", "hugecost.go", "hugeresize.go", "limit.go",
		"migrate.go", "migrationpin.go", "page.go", "pagemap.go", "pagestates.go", "parts.go",
		"placement.go", "pool.go", "pressure.go", "purge.go", "retained.go", "segment.go",
		"tally.go",
	},
}

func TestPageheap(t *testing.T) {
	breaches, err := pageheap.Check("../../alloc")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaches {
		t.Error(b)
	}
}

// TestBorder: a type, a method, a field and a constant of what is above are each a breach, and so
// is an exception that is not needed.
func TestBorder(t *testing.T) {
	b := Border{Below: []string{"below.go"}}
	want := []string{"below.go:3 names thread of above.go", "below.go:5 names makeRoom of above.go",
		"below.go:9 names most of above.go"}
	got, err := b.Check("testdata/border")
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	b.Below = append(b.Below, "gone.go")
	b.Except = map[string][]string{"below.go": {"thread", "makeRoom", "most", "spans"}}
	got, err = b.Check("testdata/border")
	if err != nil || !slices.Equal(got, []string{"below.go does not name spans any more",
		"gone.go is not there"}) {
		t.Errorf("with exceptions: %q, %v", got, err)
	}
}
