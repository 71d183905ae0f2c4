package document

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"tieralloc/internal/version"
)

var update = flag.Bool("update", false, "write testdata/report.json anew")

// TestReportIsFrozen compares the report of a fixed state, byte for byte, with a file. Keys may be
// added, which takes -update; the others keep their order, their values and their form.
func TestReportIsFrozen(t *testing.T) {
	r := fullReport(t)
	r.DeviceCount = 3 // three of the eight policies
	r.ShareCount = 22 // instances of two managers
	for i := 4; i < len(r.Heap.SizeClasses); i++ {
		c := &r.Heap.SizeClasses[i]
		c.BlocksLive, c.BlocksTotalAlloc, c.BlocksTotalFreed, c.Pages = 0, 0, 0, 0
	}
	got := bytes.Replace(text(t, r), []byte(version.Number), []byte("VERSION"), 1)
	const golden = "testdata/report.json"
	if *update {
		if err := os.WriteFile(golden, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the report is not %s:\n%s", golden, got)
	}
}
