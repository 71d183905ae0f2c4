package profile

import (
	"path/filepath"
	"strconv"
	"testing"

	"tieralloc/internal/testlib"
)

// TestForksDiffer: forked children take samples at points of their own, so that the sum of their
// profiles is near what they have allocated together.
func TestForksDiffer(t *testing.T) {
	const rate, children, blocks = 64 << 10, 40, 650
	program := testlib.CC(t, "children.c", "-O1")
	p, _ := run(t, strconv.Itoa(rate), program, strconv.Itoa(children), strconv.Itoa(blocks))
	files, err := filepath.Glob(p.file + ".*")
	if err != nil || len(files) != children {
		t.Fatalf("%d children wrote a profile: %v", len(files), err)
	}
	sum, values := 0.0, map[float64]bool{}
	for _, file := range files {
		n := read(t, file).sums(t, "alloc_space", "child")["child"]
		values[n] = true
		sum += n
	}
	within(t, "all children", sum, children*blocks*1000, rate)
	if len(values) < 5 {
		t.Errorf("%d children have %d values", children, len(values))
	}
}
