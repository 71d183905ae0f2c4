package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/stats/live"
)

// followingJSON is that part of a report.
const followingJSON = `"following": {"source": "write_protection", "samples": 12, "regions": 96,
	"thread_ns": 20000000, "up_room": {"regions": 3, "bytes": 3145728},
	"up_hotter": {"regions": 2, "bytes": 2097152}, "down_colder": {"regions": 1, "bytes": 1048576},
	"down_softcap": {"regions": 4, "bytes": 4194304}, "refused": {"regions": 5, "bytes": 5242880},
	"put_off": {"regions": 6, "bytes": 6291456}, "out_cold": {"regions": 0, "bytes": 0},
	"out_unknown": {"regions": 0, "bytes": 0}, "out_again": {"regions": 0, "bytes": 0},
	"out_refused": {"regions": 0, "bytes": 0}, "bytes_back": 0, "bytes_resident": 0}`

// followingReport is the fixture as a process that follows would have written it.
func followingReport(t *testing.T) *report {
	t.Helper()
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.Replace(text, []byte(`"devices": [`), []byte(followingJSON+`, "devices": [`), 1)
	text = bytes.Replace(text, []byte(`"bytes_hot": 0,`), []byte(`"bytes_hot": 1024,`), 1)
	text = bytes.Replace(text, []byte(`"bytes_cold": 0,`), []byte(`"bytes_cold": 3072,`), 1)
	if err := jsonschema.Validate(schema(t), text); err != nil {
		t.Fatal(err)
	}
	r, err := decodeReport(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFollowing: run and stats say in two lines what a process did to follow, and nothing of
// others.
func TestFollowing(t *testing.T) {
	for name, show := range map[string]func(*bytes.Buffer, *report){
		"run":   func(b *bytes.Buffer, r *report) { summarize(b, r) },
		"stats": func(b *bytes.Buffer, r *report) { describe(b, r) },
	} {
		var out bytes.Buffer
		show(&out, followingReport(t))
		for _, line := range []string{
			"follows by write protection: 12 samples of 96 regions in 20ms; " +
				"hot FAST 1.0 KiB of 4.0 KiB",
			"moved up: 3.0 MiB (3) into room, 2.0 MiB (2) as hotter; down: 1.0 MiB (1) as " +
				"colder, 4.0 MiB (4) over the soft cap; refused 5.0 MiB (5), put off 6.0 MiB (6)",
		} {
			if !strings.Contains(out.String(), line+"\n") {
				t.Errorf("%s: %q is missing in\n%s", name, line, out.String())
			}
		}
		out.Reset()
		if show(&out, goodReport(t)); strings.Contains(out.String(), "follows") {
			t.Errorf("%s: of a process that does not follow:\n%s", name, out.String())
		}
	}
}

// TestFollowingUnknown: before the second sample nothing is known to be hot.
func TestFollowingUnknown(t *testing.T) {
	r := goodReport(t)
	if err := json.Unmarshal([]byte(`{"following": {"source": "none"}}`), r); err != nil {
		t.Fatal(err)
	}
	lines := followingInReport(r)
	if want := "follows by none: 0 samples of 0 regions in 0s; nothing known to be hot"; len(
		lines) != 2 || lines[0] != want {
		t.Errorf("%q, not %q", lines, want)
	}
}

// TestPagingInReport: a process that pages out says so in the place of moves between tiers.
func TestPagingInReport(t *testing.T) {
	r := goodReport(t)
	if err := json.Unmarshal([]byte(`{"following": {"source": "none", "bytes_resident": 3145728,
		"out_cold": {"regions": 3, "bytes": 2097152}, "bytes_back": 1048576}}`), r); err != nil {
		t.Fatal(err)
	}
	lines := followingInReport(r)
	if want := "resident 3.0 MiB; paged out: 2.0 MiB (3) as coldest, 0 B (0) before its use was " +
		"known, 0 B (0) again; came back 1.0 MiB, refused 0 B (0)"; len(lines) != 2 ||
		lines[1] != want {
		t.Errorf("%q, not %q", lines, want)
	}
}

// TestFrameFollowing: top has columns for hot and cold memory where a process follows.
func TestFrameFollowing(t *testing.T) {
	plain := process(t, 7, 1, live.Running)
	f := frame{list: []activity{{page: plain}}}
	if text := squeeze(f.String()); strings.Contains(text, "hot") {
		t.Errorf("nobody follows:\n%s", text)
	}
	follows := process(t, 8, 1, live.Running)
	follows.report = followingReport(t)
	f.list = append(f.list, activity{page: follows})
	text := squeeze(f.String())
	if !strings.Contains(text, "violations hot cold\n") ||
		strings.Count(text, " 1.0 KiB 3.0 KiB\n") != 1 || strings.Count(text, " 0 B 0 B\n") != 2 {
		t.Errorf("one of two follows:\n%s", text)
	}
}
