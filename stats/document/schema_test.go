package document

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"tieralloc/internal/jsonschema"
	"tieralloc/stats"
)

func schema(t *testing.T) []byte {
	t.Helper()
	s, err := os.ReadFile("../../docs/stats.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSchema holds real reports to docs/stats.schema.json.
func TestSchema(t *testing.T) {
	odd := newReport(t)
	setProgram(odd, "\"\\\x00\xff")
	for name, r := range map[string]*stats.Report{"empty": newReport(t), "full": fullReport(t),
		"odd": odd} {
		doc := text(t, r)
		if err := jsonschema.Validate(schema(t), doc); err != nil {
			t.Errorf("%s: %v in\n%s", name, err, doc)
		}
	}
}

// TestSchemaRefuses changes a good report so that the schema must refuse it.
func TestSchemaRefuses(t *testing.T) {
	r := newReport(t)
	r.NodeCount = 1
	r.Heap.SizeClasses[0].Pages = 1
	r.DeviceCount = 1
	r.Devices[0].LeakCount = 1
	r.ShareCount = 1
	r.Follows = 1
	doc := text(t, r)
	for _, c := range []struct{ old, new, why string }{
		{`"tieralloc.stats/1"`, `"tieralloc.stats/2"`, "another version"},
		{`"version": 1`, `"version": "1"`, "not a number"},
		{`"pid": 0,`, ``, "a key is missing"},
		{`"pid": 0`, `"pid": -1`, "negative"},
		{`"uptime_ns": 0`, `"uptime_ns": 18446744073709551616`, "too large"},
		{`"program": ""`, `"program": null`, "not a string"},
		{`"bytes_live": 0`, `"bytes_live": 0.5`, "not whole"},
		{`"bytes_live": 0`, `"bytes_live": 0, "extra": 0`, "unknown key in heap"},
		{`"malloc": 0`, `"malloc2": 0`, "unknown function"},
		{`"fragmentation_ratio": 0`, `"fragmentation_ratio": 1`, ""},
		{`"fragmentation_ratio": 0.0000`, `"fragmentation_ratio": 1.0001`, "above 1"},
		{`"size": 0`, `"size": "0"`, "a class"},
		{`"slow"`, `"slower"`, "unknown tier"},
		{`"0": 0`, `"node0": 0`, "a node without a number"},
		{`"moved_pages": 0,`, ``, "migrations"},
		{`"simulated"`, `"real"`, "unknown backend"},
		{`"simulated"`, `"numa"`, ""},
		{`"default_hint": "hot"`, `"default_hint": "lukewarm"`, "unknown hint"},
		{`"on_softcap": "reroute"`, `"on_softcap": "fail"`, "a word of the other cap"},
		{`"on_hardcap": "route_slow"`, `"on_hardcap": "reroute"`, "a word of the other cap"},
		{`"throttle": "account"`, `"throttle": ""`, "unknown mode"},
		{`"rules": 0`, `"rules": []`, "a list for a number"},
		{`"prefer_fast": 0`, `"prefer": 0`, "unknown hint"},
		{`"bytes_per_node_sampled": false`, `"bytes_per_node_sampled": 0`, "a number for a truth"},
		{`"hugepages": "auto"`, `"hugepages": "4M"`, "unknown page size"},
		{`"nodes": []`, `"nodes": [1024]`, "a node beyond the kernel's"},
		{`"nodes": [`, `"nodes": ["0",`, "a node that is a string"},
		{`"devices"`, `"device"`, "unknown key"},
		{`"uuid": ""`, `"uuid": "GPU-00000000-0000-0000-0000-000000000000"`,
			"a UUID with a word before it"},
		{`"uuid": ""`, `"uuid": "00000000-0000-0000-0000-000000000000"`, ""},
		{`"pci": ""`, `"pci": "0000:1b:00.0"`, "a short domain"},
		{`"reuse": "sync"`, `"reuse": "never"`, "unknown mode"},
		{`"suballoc": "small"`, `"suballoc": "large"`, "unknown mode"},
		{`"on_hardcap": "fail"`, `"on_hardcap": "route_slow"`, "a word of the host's cap"},
		{`"managed": false`, `"managed": 0`, "a number for a truth"},
		{`"efficiency": 0.0000`, `"efficiency": 1.0001`, "above 1"},
		{`"stream_wait": 0`, `"stream_waits": 0`, "unknown call"},
		{`"address": 0,`, ``, "a leak without its address"},
		{`"mode": "passive"`, `"mode": "automatic"`, "unknown mode"},
		{`"pool": "automatic"`, `"pool": "active"`, "unknown pool"},
		{`"instance_count": 0,`, ``, "a manager without a number of instances"},
		{`"evictions": 0`, `"evicted": 0`, "an instance without its evictions"},
		{`"proportion": 0.0000`, `"proportion": 1.0001`, "above 1"},
		{`"source": "none"`, `"source": "softdirty"`, "unknown source"},
		{`"source": "none"`, `"source": "soft_dirty"`, ""},
		{`"put_off": `, `"full": `, "unknown kind of moves"},
		{"{\n", "{\n\"pid\": 0,", "a key twice"},
	} {
		changed := bytes.Replace(doc, []byte(c.old), []byte(c.new), 1)
		if bytes.Equal(changed, doc) {
			t.Errorf("%s is not in the report", c.old)
		}
		err := jsonschema.Validate(schema(t), changed)
		if refused := err != nil; refused != (c.why != "") {
			t.Errorf("%s for %s (%s): %v", c.new, c.old, c.why, err)
		}
	}
}

// TestSchemaIsStrict shows that the schema describes every key, requires it, and says how exact
// every figure of the heap and the tiers is.
func TestSchemaIsStrict(t *testing.T) {
	root, err := jsonschema.Decode(schema(t))
	if err != nil {
		t.Fatal(err)
	}
	objects := 0
	var walk func(at string, node any)
	walk = func(at string, node any) {
		s, ok := node.(map[string]any)
		if !ok {
			return
		}
		if properties, ok := s["properties"].(map[string]any); ok {
			objects++
			required := map[string]bool{}
			for _, name := range s["required"].([]any) {
				required[name.(string)] = true
			}
			for name, rule := range properties {
				checkRule(t, at+"."+name, rule.(map[string]any))
				// A process without CUDA has no devices, and few have managers, follow, take a
				// profile, or are in a group.
				if optional := at == "$" && (name == "devices" || name == "managers" ||
					name == "following" || name == "sites") ||
					at == "$.policy" && name == "group"; required[name] == optional {
					t.Errorf("%s.%s: required is %v", at, name, !optional)
				}
				walk(at+"."+name, rule)
			}
			if s["additionalProperties"] != false {
				t.Errorf("%s admits unknown keys", at)
			}
		}
		for name, def := range asObject(s["$defs"]) {
			walk("#"+name, def)
		}
	}
	walk("$", root)
	if objects != 20 {
		t.Errorf("%d objects with properties, not report, calls, heap, class, policy, group,"+
			" hints, tiers, tier and migrations, following, moves, device, its calls, tiers and"+
			" tier, leak, manager, instance, site", objects)
	}
}

func asObject(v any) map[string]any {
	o, _ := v.(map[string]any)
	return o
}

// checkRule asks for a description, which says how exact the figure is if running threads could
// blur it.
func checkRule(t *testing.T, at string, rule map[string]any) {
	t.Helper()
	text, _ := rule["description"].(string)
	if text == "" {
		t.Errorf("%s has no description", at)
	}
	ref, _ := rule["$ref"].(string)
	counted := strings.HasSuffix(ref, "/count") || strings.HasSuffix(ref, "/bytes")
	for _, fixed := range []string{"$.pid", "$.policy.rules", "#tier.capacity_soft",
		"#tier.capacity_hard",
		"#tier.throttle_bw", "#tier.throttle_burst", "#device.ordinal", "#device.bytes_device",
		"#device.segment_size",
		"#device.cache_limit", "#device.stream_local", "#device.global_limit",
		"#device_tier.capacity_soft", "#device_tier.capacity_hard",
		"#device_tier.throttle_bw"} {
		counted = counted && at != fixed
	}
	if counted && !strings.HasPrefix(text, "Exact") && !strings.HasPrefix(text, "Span-granular.") &&
		!strings.HasPrefix(text, "Sampled.") {
		t.Errorf("%s does not say how exact it is: %s", at, text)
	}
	// The heap of a device sees each of its blocks, and so does a manager. A profile samples them.
	if host := !strings.HasPrefix(at, "#device") && !strings.HasPrefix(at, "#site.") &&
		!strings.HasPrefix(at, "#instance"); (host &&
		strings.Contains(at, "peak")) != strings.HasPrefix(text, "Span-granular.") {
		t.Errorf("%s: peaks and only peaks are span-granular", at)
	}
}
