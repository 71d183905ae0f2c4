package tool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestProfile: the built tool shows a profile, and what it writes is one again.
func TestProfile(t *testing.T) {
	fn := &profile.Function{ID: 1, Name: "parse"}
	l := &profile.Location{ID: 1, Line: []profile.Line{{Function: fn, Line: 7}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}},
		Function:   []*profile.Function{fn}, Location: []*profile.Location{l},
		Sample: []*profile.Sample{{Location: []*profile.Location{l}, Value: []int64{3 << 20}}},
	}
	dir := t.TempDir()
	plain, packed := filepath.Join(dir, "heap.pb"), filepath.Join(dir, "heap.pb.gz")
	file, err := os.Create(plain)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WriteUncompressed(file); err != nil {
		t.Fatal(err)
	}
	file.Close()
	if r := ctl(t, nil, "profile", "-o", packed, plain); r.Status != 0 || r.Stderr != "" {
		t.Fatal(r.Status, r.Stderr)
	}
	for _, path := range []string{plain, packed} {
		says(t, ctl(t, nil, "profile", path).Stdout, "inuse_space 3.0 MiB",
			"3.0 MiB  100.0%  3.0 MiB  100.0%  parse")
		says(t, ctl(t, nil, "profile", "--flame", "-", path).Stdout, "<svg", "parse: 3.0 MiB")
	}
	r := ctl(t, nil, "profile", "--type", "inuse", plain)
	if r.Status != 2 || !strings.Contains(r.Stderr, "--type inuse: "+plain+" has inuse_space") {
		t.Error(r.Status, r.Stderr)
	}
}
