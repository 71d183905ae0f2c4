package document

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unsafe"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

func newSites(t *testing.T) *stats.Sites {
	t.Helper()
	return (*stats.Sites)(unsafe.Pointer(&mapped(t, int(unsafe.Sizeof(stats.Sites{})))[0]))
}

// sites writes a report with sites, checks it against the schema, and returns them.
func sites(t *testing.T, list *stats.Sites) []any {
	t.Helper()
	doc := textWith(t, newReport(t), list)
	if err := jsonschema.Validate(schema(t), doc); err != nil {
		t.Fatalf("%v in\n%s", err, doc)
	}
	got, _ := decode(t, doc)["sites"].([]any)
	return got
}

// TestSites: each figure of a site arrives, whatever bytes the names of files are of.
func TestSites(t *testing.T) {
	list := newSites(t)
	list.Count = 2
	s := &list.List[0]
	*s = stats.Site{BytesTotalAlloc: math.MaxUint64, BlocksTotalAlloc: 2, BlocksTotalFreed: 3,
		BytesLive: 4, BlocksLive: 5, BytesPeak: 6, SizeMedian: 7, LifetimeMedianNs: 8, Hint: 2,
		Tier: 2, StackLen: 3}
	name := mapped(t, 5)
	copy(name, "a\"\n\xffz")
	s.Stack[0] = stats.Frame{Name: uintptr(unsafe.Pointer(&name[0])), NameLen: 5,
		Address: math.MaxUint64}
	s.Stack[1] = stats.Frame{Name: raw.Bytes("libc.so.6"), NameLen: 9, Address: 0x1a0}
	s.Stack[2] = stats.Frame{}
	all := sites(t, list)
	got := all[0].(map[string]any)
	for key, want := range map[string]string{"bytes_total_alloc": "18446744073709551615",
		"blocks_total_alloc": "2", "blocks_total_freed": "3", "bytes_live": "4",
		"blocks_live": "5", "bytes_peak": "6", "size_median": "7", "lifetime_median_ns": "8"} {
		if n, ok := got[key].(json.Number); !ok || n.String() != want {
			t.Errorf("%s: %v, not %s", key, got[key], want)
		}
	}
	if got["hint"] != "cold" || got["tier"] != "slow" {
		t.Errorf("hint %v, tier %v", got["hint"], got["tier"])
	}
	var frames []string
	for _, f := range got["stack"].([]any) {
		frames = append(frames, f.(string))
	}
	if want := "a\"\n\ufffdz+0xffffffffffffffff libc.so.6+0x1a0 0x0"; strings.Join(frames,
		" ") != want {
		t.Errorf("%q, not %q", frames, want)
	}
	empty := all[1].(map[string]any)
	if lifetime, there := empty["lifetime_median_ns"]; !there || lifetime != nil ||
		len(empty["stack"].([]any)) != 0 {
		t.Errorf("%v", empty)
	}
}

// TestSiteCounts: a report has no more sites and frames than it can have, an empty list where
// nothing was sampled, and none without a profile.
func TestSiteCounts(t *testing.T) {
	list := newSites(t)
	for _, count := range []uint64{0, 1, stats.SiteMax, stats.SiteMax + 1, math.MaxUint64} {
		list.Count, list.List[0].StackLen = count, count
		got := sites(t, list)
		if want := min(count, stats.SiteMax); uint64(len(got)) != want {
			t.Errorf("%d sites, not %d", len(got), want)
		}
		if len(got) > 0 {
			frames := got[0].(map[string]any)["stack"].([]any)
			if want := min(count, stats.StackMax); uint64(len(frames)) != want {
				t.Errorf("%d frames, not %d", len(frames), want)
			}
		}
	}
	list.Count = 0
	doc := decode(t, textWith(t, newReport(t), list))
	if got, ok := doc["sites"].([]any); !ok || len(got) != 0 {
		t.Errorf("without samples: %v", doc["sites"])
	}
	if got, there := decode(t, text(t, newReport(t)))["sites"]; there {
		t.Errorf("without a profile: %v", got)
	}
}

// TestSchemaRefusesSites changes a good site so that the schema must refuse it.
func TestSchemaRefusesSites(t *testing.T) {
	list := newSites(t)
	list.Count = 1
	list.List[0].StackLen = 1
	doc := string(textWith(t, newReport(t), list))
	for _, c := range [][2]string{
		{`"size_median": 0`, `"size_median": null`},
		{`"lifetime_median_ns": null`, `"lifetime_median_ns": -1`},
		{`"hint": "hot",
      "tier"`, `"hint": "lukewarm",
      "tier"`},
		{`"tier": "`, `"tier": "very `},
		{`"0x0"`, `0`}, {`"0x0"`, `"main"`},
	} {
		changed := strings.Replace(doc, c[0], c[1], 1)
		if changed == doc {
			t.Errorf("%s is not in the report:\n%s", c[0], doc)
		} else if jsonschema.Validate(schema(t), []byte(changed)) == nil {
			t.Errorf("%s for %s is accepted", c[1], c[0])
		}
	}
}
