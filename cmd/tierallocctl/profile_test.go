package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// libraryTypes are the sample types of the library.
var libraryTypes = []*profile.ValueType{{Type: "alloc_objects", Unit: "count"},
	{Type: "alloc_space", Unit: "bytes"}, {Type: "inuse_objects", Unit: "count"},
	{Type: "inuse_space", Unit: "bytes"}, {Type: "peak_space", Unit: "bytes"},
	{Type: "recent_space", Unit: "bytes"}, {Type: "lifetime", Unit: "nanoseconds"},
	{Type: "inuse_samples", Unit: "count"}}

// madeProfile is a profile of a program of 64 seconds that runs since 2023.
func madeProfile() *profile.Profile {
	return &profile.Profile{SampleType: libraryTypes, DefaultSampleType: "inuse_space",
		PeriodType: &profile.ValueType{Type: "space", Unit: "bytes"}, Period: 512 << 10,
		TimeNanos: 1_700_000_064e9, DurationNanos: 64e9,
		Comments: []string{"program /usr/bin/parrot", "pid 1234", "dropped 0"}}
}

// addStack adds a sample whose functions are named, callers first, and separated by blanks. If no
// number of samples is given, all blocks in use were sampled.
func addStack(p *profile.Profile, stack string, values ...int64) {
	if len(values) == len(libraryTypes)-1 {
		values = append(values, values[2])
	}
	s := &profile.Sample{Value: values}
	names := strings.Fields(stack)
	for i := range names {
		name := names[len(names)-1-i]
		var l *profile.Location
		for _, old := range p.Location {
			if old.Line[0].Function.Name == name {
				l = old
			}
		}
		if l == nil {
			id := uint64(len(p.Location) + 1)
			fn := &profile.Function{ID: id, Name: name, SystemName: name, Filename: name + ".c"}
			l = &profile.Location{ID: id, Address: id << 12,
				Line: []profile.Line{{Function: fn, Line: int64(10 * id)}}}
			p.Function = append(p.Function, fn)
			p.Location = append(p.Location, l)
		}
		s.Location = append(s.Location, l)
	}
	p.Sample = append(p.Sample, s)
}

// saveProfile writes a profile as the library does.
func saveProfile(t *testing.T, name string, p *profile.Profile) string {
	t.Helper()
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	return saved(t, name, b.Bytes())
}

func saved(t *testing.T, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// ctlProfile runs the command.
func ctlProfile(args ...string) (status int, out, stderr string) {
	var o, e bytes.Buffer
	status = execute(append([]string{"profile"}, args...), &o, &e)
	return status, o.String(), e.String()
}

// parrot has a small leak, a table from the start, a buffer that was just filled, and a parser that
// frees what it allocates. parse calls itself.
func parrot() *profile.Profile {
	p := madeProfile()
	const mib = 1 << 20
	addStack(p, "main serve remember", 1024, 16*mib, 1000, 15*mib, 15*mib, 8*mib, 1e9)
	addStack(p, "main init table", 16, 64*mib, 16, 64*mib, 64*mib, 0, 0)
	addStack(p, "main serve load", 8, 32*mib, 8, 32*mib, 0, 32*mib, 0)
	addStack(p, "main serve parse parse", 9000, 900*mib, 10, mib, 2*mib, mib/2, 5e12)
	return p
}

const parrotTop = `parrot (process 1234), 1m4s: inuse_space 112 MiB
estimates from one sample every 512 KiB
   flat  flat%      cum    cum%  function
 64 MiB  57.1%   64 MiB   57.1%  table
 32 MiB  28.6%   32 MiB   28.6%  load
 15 MiB  13.4%   15 MiB   13.4%  remember
1.0 MiB   0.9%  1.0 MiB    0.9%  parse
    0 B   0.0%  112 MiB  100.0%  main
    0 B   0.0%   64 MiB   57.1%  init
    0 B   0.0%   48 MiB   42.9%  serve
`

func TestProfileTable(t *testing.T) {
	path := saveProfile(t, "parrot.pb", parrot())
	for _, args := range [][]string{{path}, {path, "--top"}, {path, "--type", "inuse_space"}} {
		if status, out, stderr := ctlProfile(args...); status != 0 || out != parrotTop ||
			stderr != "" {
			t.Errorf("%q: %d %s\n%s", args, status, stderr, out)
		}
	}
	const lifetimes = `parrot (process 1234), 1m4s: lifetime 1h23m21s
estimates from one sample every 512 KiB
    flat   flat%       cum    cum%  function
1h23m20s  100.0%  1h23m20s  100.0%  parse
and 3 functions (--lines 0 shows all)
`
	_, out, _ := ctlProfile(path, "--type", "lifetime", "--lines", "1")
	if out != lifetimes {
		t.Error(out)
	}
}

// TestProfileDifference: functions of either profile are shown, the largest change first.
func TestProfileDifference(t *testing.T) {
	old := madeProfile()
	addStack(old, "main gone", 1, 3<<20, 1, 3<<20, 0, 0, 0)
	addStack(old, "main same", 1, 8<<20, 1, 8<<20, 0, 0, 0)
	addStack(old, "main more", 1, 1<<20, 1, 1<<20, 0, 0, 0)
	now := madeProfile()
	addStack(now, "main same", 1, 8<<20, 1, 8<<20, 0, 0, 0)
	addStack(now, "main more", 1, 5<<20, 1, 5<<20, 0, 0, 0)
	const want = `parrot (process 1234), 1m4s: inuse_space +1.0 MiB, from 12 MiB to 13 MiB
estimates from one sample every 512 KiB
    flat   flat%       cum    cum%  function
+4.0 MiB   33.3%  +4.0 MiB   33.3%  more
-3.0 MiB  -25.0%  -3.0 MiB  -25.0%  gone
     0 B    0.0%  +1.0 MiB    8.3%  main
`
	status, out, stderr := ctlProfile("--diff", saveProfile(t, "old.pb", old),
		saveProfile(t, "now.pb", now))
	if status != 0 || out != want || stderr != "" {
		t.Errorf("%d %s\n%s", status, stderr, out)
	}
}

func TestShortName(t *testing.T) {
	long := strings.Repeat("very", 20)
	for name, want := range map[string]string{
		"std::vector<int>::reserve":                   "std::vector<int>::reserve",
		"std::map<" + long + ", std::less<K> >::find": "std::map<…>::find",
		"a<b<" + long + "> >::c<d>::operator<<":       "a<…>::c<…>::operator<<",
		"a<" + long + ">::operator-><int>":            "a<…>::operator-><int>",
		"<" + long + " as core::fmt::Debug>::fmt":     "<…>::fmt",
		long + "a>b": long + "a>b",
	} {
		if got := shortName(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// TestProfileDropped: a profile that is not complete says so.
func TestProfileDropped(t *testing.T) {
	p := madeProfile()
	p.Comments[2] = "dropped 17"
	p.Comments = append(p.Comments, "stacks shortened 5")
	addStack(p, "main", 1, 1, 1, 1, 1, 1, 1)
	_, out, _ := ctlProfile(saveProfile(t, "p.pb", p))
	if !strings.Contains(out, "\n5 samples have the innermost frames only: there were too many "+
		"different stacks\n17 samples were dropped: there was no room for more\n") {
		t.Error(out)
	}
	p.Sample = nil
	_, out, _ = ctlProfile(saveProfile(t, "p.pb", p))
	if out != "parrot (process 1234), 1m4s: inuse_space 0 B\nthe profile has no samples\n" {
		t.Error(out)
	}
}

// TestProfileOutput: what -o writes is complete and shows the same table.
func TestProfileOutput(t *testing.T) {
	packed := filepath.Join(t.TempDir(), "out.pb.gz")
	status, out, stderr := ctlProfile("-o", packed, saveProfile(t, "parrot.pb", parrot()))
	if status != 0 || out != "" || stderr != "" {
		t.Fatal(status, out, stderr)
	}
	data, err := os.ReadFile(packed)
	if err != nil || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		t.Fatalf("%v, not compressed: %.4x", err, data)
	}
	p, err := profile.ParseData(data)
	if err != nil || len(p.Sample) != 4 || p.DefaultSampleType != "inuse_space" ||
		len(p.Comments) != 3 {
		t.Fatal(err, p)
	}
	if _, out, _ := ctlProfile(packed); out != parrotTop {
		t.Error(out)
	}
}
