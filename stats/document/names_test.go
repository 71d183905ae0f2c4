package document

import (
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// words are the codes of a report, with the place where each is written as a word.
var words = []struct {
	at   []string
	code func(*stats.Report) *uint64
	want []string
}{
	{[]string{"backend"}, func(r *stats.Report) *uint64 { return &r.Backend },
		[]string{"simulated", "numa"}},
	{[]string{"policy", "default_hint"}, func(r *stats.Report) *uint64 { return &r.DefaultHint },
		[]string{"hot", "warm", "cold", "pin_fast", "prefer_fast"}},
	{[]string{"policy", "on_softcap"}, func(r *stats.Report) *uint64 { return &r.OnSoftcap },
		[]string{"reroute", "warn", "demote"}},
	{[]string{"policy", "on_hardcap"}, func(r *stats.Report) *uint64 { return &r.OnHardcap },
		[]string{"route_slow", "fail"}},
	{[]string{"policy", "throttle"}, func(r *stats.Report) *uint64 { return &r.Throttle },
		[]string{"account", "sleep"}},
	{[]string{"policy", "model"}, func(r *stats.Report) *uint64 { return &r.Model },
		[]string{"off", "cxl"}},
	{[]string{"tiers", "slow", "hugepages"},
		func(r *stats.Report) *uint64 { return &r.Tiers[stats.TierSlow].HugePagesWanted },
		[]string{"auto", "off", "thp", "2M", "1G"}},
}

func at(doc any, path []string) any {
	for _, key := range path {
		doc = doc.(map[string]any)[key]
	}
	return doc
}

// TestWords: each code is written as its word, which the schema knows; a code that
// no report has does no harm.
func TestWords(t *testing.T) {
	for _, w := range words {
		for code, want := range w.want {
			r := newReport(t)
			*w.code(r) = uint64(code)
			doc := text(t, r)
			if err := jsonschema.Validate(schema(t), doc); err != nil {
				t.Errorf("%v = %d: %v", w.at, code, err)
			}
			if got := at(decode(t, doc), w.at); got != want {
				t.Errorf("%v = %d: %v, not %s", w.at, code, got, want)
			}
		}
		for _, code := range []uint64{uint64(len(w.want)), 8, 255, 1 << 63, math.MaxUint64} {
			r := newReport(t)
			*w.code(r) = code
			if got, ok := at(decode(t, text(t, r)), w.at).(string); !ok {
				t.Errorf("%v = %d: %v", w.at, code, got)
			}
		}
	}
}

// TestHints: each hint's bytes are under its word.
func TestHints(t *testing.T) {
	r := fullReport(t)
	hints := decode(t, text(t, r))["hints"].(map[string]any)
	for i, word := range words[1].want {
		compare(t, word, reflect.ValueOf(r.HintBytes[i]), hints[word])
	}
	if len(hints) != len(words[1].want) {
		t.Errorf("%v", hints)
	}
}

// TestTierNodes: the nodes of a tier's bits, lowest first, and whether its bytes per
// node are of a sample.
func TestTierNodes(t *testing.T) {
	for bits, want := range map[uint64]string{
		0: "[]", 1: "[0]", 1 << 63: "[63]", 1<<63 | 5: "[0 2 63]", 1 << 32: "[32]",
	} {
		r := newReport(t)
		r.Tiers[stats.TierFast].TierNodes = bits
		got := at(decode(t, text(t, r)), []string{"tiers", "fast", "nodes"})
		if fmt.Sprint(got) != want {
			t.Errorf("%b: %v, not %s", bits, got, want)
		}
	}
	for v, want := range map[uint64]bool{0: false, 1: true, math.MaxUint64: true} {
		r := newReport(t)
		r.NodesSampled = v
		r.Policy.Grouped = v
		doc := decode(t, text(t, r))
		if got := doc["bytes_per_node_sampled"]; got != want {
			t.Errorf("%d: %v", v, got)
		}
		if got := at(doc, []string{"policy", "grouped"}); got != want {
			t.Errorf("grouped %d: %v", v, got)
		}
		if got := at(doc, []string{"policy"}).(map[string]any)["group"]; (got != nil) != want {
			t.Errorf("grouped %d: %v", v, got)
		}
	}
}

// TestGroupName: the name of a group is the user's, whatever it holds and however long it is.
func TestGroupName(t *testing.T) {
	for name, want := range map[string]string{
		"train":                        "train",
		"/a \"b\\\n\x1b\xff\u00e9":     "/a \"b\\\n\x1b\ufffd\u00e9",
		"/" + strings.Repeat("d", 999): "/" + strings.Repeat("d", stats.NameSize-1),
	} {
		r := newReport(t)
		r.Policy.Grouped, r.Policy.Group.Min = 1, 5<<20
		r.Policy.Group.SetName(raw.Bytes(name), uintptr(len(name)))
		doc := decode(t, text(t, r))
		if got := at(doc, []string{"policy", "group", "name"}); got != want {
			t.Errorf("%q: %q", name, got)
		}
		if got := at(doc, []string{"policy", "group", "bytes_min"}); fmt.Sprint(got) != "5242880" {
			t.Errorf("%q: %v", name, got)
		}
		r.Policy.Group.NameLen = math.MaxUint64 // a damaged live page
		decode(t, text(t, r))
	}
}

// TestSameMemory: tiers on the same nodes name each other; those on none name nobody.
func TestSameMemory(t *testing.T) {
	for nodes, want := range map[[3]uint64]string{
		{0, 0, 0}: "[] [] []", {1, 2, 4}: "[] [] []", {1, 1, 2}: "[normal] [fast] []",
		{1, 2, 2}: "[] [slow] [normal]",
		{3, 1, 3}: "[slow] [] [fast]", {1, 1, 1}: "[normal slow] [fast slow] [fast normal]",
	} {
		r := newReport(t)
		for i := range nodes {
			r.Tiers[i].TierNodes = nodes[i]
		}
		tiers := decode(t, text(t, r))["tiers"].(map[string]any)
		var got []any
		for _, name := range []string{"fast", "normal", "slow"} {
			got = append(got, tiers[name].(map[string]any)["same_memory"])
		}
		if fmt.Sprintf("%v %v %v", got...) != want {
			t.Errorf("%v: %v, not %s", nodes, got, want)
		}
	}
}

// TestDamagedName: a report that another process damaged makes no read past its end.
func TestDamagedName(t *testing.T) {
	r := newReport(t) // the next byte after it faults
	setProgram(r, "name")
	r.ProgramLen = math.MaxUint64
	if got := program(t, r); len(got) != stats.NameSize {
		t.Errorf("%d bytes", len(got))
	}
}
