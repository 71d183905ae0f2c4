package main

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

// TestProfileBadInput: a mistake gets one line that names it, and says what is accepted.
func TestProfileBadInput(t *testing.T) {
	report, err := os.ReadFile("testdata/report.json")
	if err != nil {
		t.Fatal(err)
	}
	other := madeProfile()
	other.SampleType = libraryTypes[:4]
	addStack(other, "main", 1, 1, 1, 1)
	bare := &profile.Profile{}
	good := saveProfile(t, "good.pb", parrot())
	for _, c := range []struct {
		name, want string
		status     int
		args       []string
	}{
		{"missing", "no such file or directory", 1, []string{"/nowhere/p.pb"}},
		{"folder", "/tmp: not a regular file", 1, []string{"/tmp"}},
		{"empty", "not a profile: the file is empty", 1, []string{saved(t, "e", nil)}},
		{"text", "not a profile in pprof's format, as TA_PROFILE=FILE writes it", 1,
			[]string{saved(t, "e", []byte("hello there, world"))}},
		{"cut", "not a profile: unexpected EOF", 1,
			[]string{saved(t, "e", []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0, 3})}},
		{"report", `a report, not a profile: "tierallocctl stats" shows it; TA_PROFILE=FILE ` +
			"writes profiles", 1, []string{saved(t, "r.json", report)}},
		{"no types", "it has no sample types", 1, []string{saveProfile(t, "p", bare)}},
		{"type", "--type inuse_spac: " + good + " has alloc_objects, alloc_space, inuse_objects, " +
			"inuse_space, peak_space, recent_space, lifetime, inuse_samples; " +
			"did you mean inuse_space?", 2, []string{good, "--type", "inuse_spac"}},
		{"other types", "sample types alloc_objects, alloc_space, inuse_objects, inuse_space; " +
			"expected those of " + good + ": alloc_objects,", 1,
			[]string{good, "--diff", saveProfile(t, "old.pb", other)}},
		{"old is a report", "a report, not a profile", 1,
			[]string{good, "--diff", saved(t, "r.json", report)}},
		{"leaks", "--leaks needs the sample type recent_space, as TA_PROFILE=FILE writes it; " +
			"it has alloc_objects,", 1, []string{"--leaks", saveProfile(t, "old.pb", other)}},
		{"views", "profile has one view at a time: --flame and --leaks", 2,
			[]string{good, "--leaks", "--flame", "x.svg"}},
		{"diff", "--diff goes with --top or --flame, not with --leaks", 2,
			[]string{good, "--leaks", "--diff", good}},
		{"type of output", "--type goes with --top or --flame, not with -o", 2,
			[]string{good, "-o", "x", "--type", "lifetime"}},
		{"lines", "--lines -1: expected a number, or 0 for all", 2,
			[]string{good, "--lines", "-1"}},
		{"output", "open /nowhere/x: no such file or directory", 1,
			[]string{good, "-o", "/nowhere/x"}},
	} {
		status, out, stderr := ctlProfile(c.args...)
		if status != c.status || out != "" || !strings.Contains(stderr, c.want) ||
			!strings.HasPrefix(stderr, "tierallocctl: ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d %q %q", c.name, status, out, stderr)
		}
	}
}

// TestProfileDamaged: a profile that is cut anywhere, or has any byte changed, is shown or refused.
func TestProfileDamaged(t *testing.T) {
	p := parrot()
	m := &profile.Mapping{ID: 1, Start: 1 << 20, Limit: 2 << 20, File: "/bin/true", BuildID: "ab"}
	p.Mapping = append(p.Mapping, m)
	p.Location[0].Mapping, p.Location[0].Line = m, nil
	var b bytes.Buffer
	if err := p.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	show := func(data []byte) {
		p, err := decodeProfile(data)
		if err != nil {
			return
		}
		f := &profileFile{path: "p.pb", profile: p}
		f.symbolize(io.Discard)
		for kind := range p.SampleType {
			newProfileTable(f, nil, kind, "").write(io.Discard, 3)
			_ = newFlame(f, f, kind).svg(io.Discard)
		}
		_ = f.leaks(io.Discard, 3)
		if err := p.WriteUncompressed(io.Discard); err != nil {
			t.Error(err)
		}
	}
	whole := b.Bytes()
	for i := range whole {
		show(whole[:i])
		for _, flip := range []byte{1, 0x80, 0xff} {
			data := bytes.Clone(whole)
			data[i] ^= flip
			show(data)
		}
	}
}
