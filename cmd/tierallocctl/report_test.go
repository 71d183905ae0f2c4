package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"tieralloc/internal/jsonschema"
)

const fixture = "testdata/report.json"

func schema(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../docs/stats.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func goodReport(t *testing.T) *report {
	t.Helper()
	_, r, err := readReportFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestFixture: the report that these tests are made with is one that the library could
// have written.
func TestFixture(t *testing.T) {
	text, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	if err := jsonschema.Validate(schema(t), text); err != nil {
		t.Error(err)
	}
}

// TestKeys: each key that this program looks for is one of the schema, at its place.
func TestKeys(t *testing.T) {
	var s map[string]any
	if err := json.Unmarshal(schema(t), &s); err != nil {
		t.Fatal(err)
	}
	properties := s["properties"].(map[string]any)
	part := func(name string) map[string]any {
		return properties[name].(map[string]any)["properties"].(map[string]any)
	}
	def := func(name string) map[string]any {
		return s["$defs"].(map[string]any)[name].(map[string]any)["properties"].(map[string]any)
	}
	for _, c := range []struct {
		of   any
		keys map[string]any
	}{
		{report{}, properties}, {heap{}, part("heap")}, {report{}.Policy, part("policy")},
		{report{}.Tiers, part("tiers")}, {tier{}, def("tier")},
		{tier{}.Migrations, def("migrations")}, {device{}, def("device")}, {leak{}, def("leak")},
		{deviceTiers{}, def("device")["tiers"].(map[string]any)["properties"].(map[string]any)},
		{following{}, part("following")}, {moves{}, def("moves")}, {site{}, def("site")},
	} {
		for _, f := range reflect.VisibleFields(reflect.TypeOf(c.of)) {
			if _, ok := c.keys[f.Tag.Get("json")]; !ok {
				t.Errorf("%T: the schema has no %q", c.of, f.Tag.Get("json"))
			}
		}
	}
}

func TestDecodeReportRefuses(t *testing.T) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ text, word string }{
		{"", "empty"},
		{" \n", "empty"},
		{"hello", "not statistics"},
		{string(good[:len(good)/2]), "cut short"},
		{string(good) + "}", "no JSON"},
		{"[]", "not statistics"},
		{"{}", `no "schema"`},
		{`{"schema": 1}`, "not statistics"},
		{`{"schema": "tieralloc.stats/2"}`, `"tieralloc.stats/2"`},
		{`{"schema": "tieralloc.stats/1"}`, "damaged"},
		{strings.Replace(string(good), `"slow"`, `"slower"`, 1), "damaged"},
		{strings.Replace(string(good), `"tiers": {
        "fast"`, `"tiers": {
        "faster"`, 1), "tiers of a device"},
		{strings.Replace(string(good), `"devices": [`, `"devices": [null, `, 1),
			"tiers of a device"},
		{strings.Replace(string(good), `"devices": [`, `"devices": [`+strings.Repeat("{}, ", 8), 1),
			"9 devices"},
		{strings.Replace(string(good), `"bytes_peak": `, `"bytes_peak": -`, 1), "not statistics"},
	} {
		r, err := decodeReport([]byte(c.text))
		if err == nil || r != nil || !strings.Contains(err.Error(), c.word) {
			t.Errorf("%.40q: %v does not say %s", c.text, err, c.word)
		}
	}
}

func FuzzDecodeReport(f *testing.F) {
	good, err := os.ReadFile(fixture)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	const begin = `{"schema": "tieralloc.stats/1", "heap": {}, "tiers": `
	const tiers = `{"fast": {}, "normal": {}, "slow": {}}`
	f.Add([]byte(begin + tiers + `}`))
	f.Add([]byte(begin + `{"fast": null}}`))
	f.Add([]byte(begin + tiers + `, "devices": [{"tiers": {"fast": {}}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := decodeReport(text)
		if (r == nil) == (err == nil) {
			t.Fatalf("%v and %v", r, err)
		}
		if r != nil { // whatever it says can be shown
			tame(t, shownReport(text, r))
		}
	})
}

func TestReadReportFileRefuses(t *testing.T) {
	dir := t.TempDir()
	if _, _, err := readReportFile(dir); err == nil {
		t.Error("a folder was read")
	}
	if _, _, err := readReportFile(filepath.Join(dir, "none")); !os.IsNotExist(err) {
		t.Errorf("a file that is not there: %v", err)
	}
	huge := filepath.Join(dir, "huge")
	if err := os.WriteFile(huge, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(huge, 1<<40); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readReportFile(huge); err == nil || !strings.Contains(err.Error(), "16 MiB") {
		t.Errorf("a huge file: %v", err)
	}
}

// TestDescribe: all figures of the fixture are shown, each where it belongs.
func TestDescribe(t *testing.T) {
	var out bytes.Buffer
	describe(&out, goodReport(t))
	for _, words := range []string{
		"trainer (process 4242), after 1m1.5s; tiers numa",
		"policy: default hint warm, 2 rules, over soft demote, at hard route_slow, throttle " +
			"sleep, model cxl", "caps: of the group of processes train",
		"current 1.0 MiB 2.0 MiB 3.0 MiB", "soft cap 32 MiB - -", "hard cap 64 MiB - -",
		"blocks allocated 1,001 2,001 3,001", "blocks entered 1,101 2,101 3,101",
		"bytes entered 2.0 GiB 3.0 GiB 4.0 GiB", "taken over soft cap 5 0 0",
		"rerouted at soft cap 7 0 0",
		"met hard cap 11 0 0", "routed slow at hard cap 13 0 0", "refused 17 0 0",
		"throttled to - - 1.0 GiB/s, 100ns each", "wait charged 0s 0s 1.23ms", "sleeps 0 0 31",
		"overslept 0s 0s 45.7µs",
		"moves out attempted 19 0 0", "pages moved 2,300 0 0", "pages not moved 29 0 0",
		"huge pages auto auto 2M", "mappings without them 0 0 37", "nodes 0 0 2-3",
		"on node 3 0 B 0 B 1.5 MiB",
	} {
		if !strings.Contains(squeeze(out.String()), words) {
			t.Errorf("%q is missing in\n%s", words, out.String())
		}
	}
	out.Reset()
	r := goodReport(t)
	r.BytesPerNodeSampled = true
	describe(&out, r)
	if !strings.Contains(squeeze(out.String()), "on node 3 ~0 B ~0 B ~1.5 MiB") {
		t.Error("figures that are scaled are shown as if they were counted")
	}
}

// squeeze makes each run of blanks one.
func squeeze(s string) string {
	var lines []string
	for line := range strings.Lines(s) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestSummarize(t *testing.T) {
	var out bytes.Buffer
	summarize(&out, goodReport(t))
	for _, words := range []string{
		"FAST 1.0 MiB 2.0 MiB 32 MiB 64 MiB 1,001 990 11 20 0s 2,300 29",
		"SLOW 3.0 MiB 6.0 MiB - - 3,001 2,990 0 0 1.23ms 0 0",
	} {
		if !strings.Contains(squeeze(out.String()), words) {
			t.Errorf("%q is missing in\n%s", words, out.String())
		}
	}
}
