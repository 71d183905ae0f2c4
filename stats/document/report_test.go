package document

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"unicode"
	"unsafe"

	"tieralloc/internal/jsonschema"
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// newReport is a report as the library has it: zero, in mapped memory.
func newReport(tb testing.TB) *stats.Report {
	tb.Helper()
	return (*stats.Report)(unsafe.Pointer(&mapped(tb, int(unsafe.Sizeof(stats.Report{})))[0]))
}

// mapped is n bytes of mapped memory followed by a page that faults.
func mapped(tb testing.TB, n int) []byte {
	tb.Helper()
	size := int(raw.RoundUp(uintptr(n), raw.Page))
	mem, err := syscall.Mmap(-1, 0, size+raw.Page, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = syscall.Munmap(mem) })
	if err := syscall.Mprotect(mem[size:], syscall.PROT_NONE); err != nil {
		tb.Fatal(err)
	}
	return mem[size-n : size : size]
}

// fill gives every number in a value one of its own.
func fill(v reflect.Value, next func() uint64) {
	if v.Type() == reflect.TypeFor[stats.Policy]() {
		v.FieldByName("Rules").SetUint(next()) // the others are codes
		return
	}
	switch v.Kind() {
	case reflect.Uint64:
		if v.CanSet() {
			v.SetUint(next())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i), next)
		}
	}
}

// fullReport has another number in every field, up to the largest.
func fullReport(tb testing.TB) *stats.Report {
	r := newReport(tb)
	n := uint64(math.MaxUint64)
	fill(reflect.ValueOf(r).Elem(), func() uint64 { n--; return n })
	r.NodeCount = 3
	for i := range r.Nodes {
		r.Nodes[i] = uint64(i * 7)
	}
	r.Policy.DefaultHint, r.Policy.OnSoftcap, r.Policy.OnHardcap, r.Policy.Throttle,
		r.Policy.Model = 4, 2, 1, 1, 1
	r.Backend = stats.BackendNuma
	r.Following.Source = stats.SourceReferenced
	r.DeviceCount = stats.DeviceMax
	for i := range r.Devices {
		d := &r.Devices[i]
		d.Reuse, d.Suballoc, d.OnHardcap, d.LeakCount = uint64(i&1), uint64(i>>1&1), uint64(i>>2),
			uint64(i)
		d.Pci, d.Managed = 1<<32|0x1bf8+1, uint64(i>>1&1)
	}
	for i := range r.Shares {
		s := &r.Shares[i]
		s.Manager, s.Mode, s.Manual, s.Proportion = uint64(i/20), uint64(i&1), uint64(i>>1&1),
			250000
	}
	for i := range r.Tiers {
		r.Tiers[i].HugePagesWanted = uint64(i)
		r.Tiers[i].TierNodes = 1<<63 | uint64(i)
	}
	for i := range r.Heap.SizeClasses {
		r.Heap.SizeClasses[i].Size = uint64(16 * (i + 1))
	}
	setProgram(r, "full")
	return r
}

func setProgram(r *stats.Report, name string) {
	r.SetProgram(raw.Bytes(name), uintptr(len(name)))
}

// text is what JSON writes, in a buffer of exactly the size it asks for.
func text(tb testing.TB, r *stats.Report) []byte {
	tb.Helper()
	return textWith(tb, r, nil)
}

// textWith is text for a report with sites.
func textWith(tb testing.TB, r *stats.Report, sites *stats.Sites) []byte {
	tb.Helper()
	need := JSON(0, 0, r, sites)
	buf := mapped(tb, int(need)+1)
	if again := JSON(uintptr(unsafe.Pointer(&buf[0])), need+1, r, sites); again != need {
		tb.Fatalf("needs %d bytes, then %d", need, again)
	}
	if buf[need] != 0 {
		tb.Fatal("no zero at the end")
	}
	return buf[:need:need]
}

// decode reads a report into objects, with numbers as they are written.
func decode(tb testing.TB, doc []byte) map[string]any {
	tb.Helper()
	v, err := jsonschema.Decode(doc)
	if err != nil {
		tb.Fatalf("%v in\n%s", err, doc)
	}
	return v.(map[string]any)
}

// keyOf is the key for a field: BytesMapped is bytes_mapped, ThrottleBW throttle_bw.
func keyOf(field string) string {
	if key, ok := otherKeys[field]; ok {
		return key
	}
	var b strings.Builder
	for i, c := range field {
		if unicode.IsUpper(c) && i > 0 && !unicode.IsUpper(rune(field[i-1])) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}

var otherKeys = map[string]string{"HugeFallbacks": "hugepage_fallbacks"}

// compare holds a decoded value to the field it comes from.
func compare(t *testing.T, at string, want reflect.Value, got any) {
	switch want.Kind() {
	case reflect.Uint64:
		if n, ok := got.(json.Number); !ok || n.String() != fmt.Sprint(want.Uint()) {
			t.Errorf("%s: %v, not %d", at, got, want.Uint())
		}
	case reflect.Struct:
		object, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s: %v is no object", at, got)
		}
		for i := range want.NumField() {
			name := want.Type().Field(i).Name
			key := at + "." + keyOf(name)
			switch name {
			case "Figures":
				compare(t, at, want.Field(i), object)
			case "OffHeap", "Program", "ProgramLen", "NodeCount", "DeviceCount", "LeakCount",
				"ShareCount", "Shares", "Follows": // not numbers of their own
			case // compared by the tests below
				"Calls", "Nodes", "Tiers", "Following", "Source", "SizeClasses", "BytesPerNode",
				"Devices", "Leaks", "Uuid", "Pci",
				"HintBytes", "Backend", "NodesSampled", "DefaultHint", "OnSoftcap", "OnHardcap",
				"Throttle", "Model", "Grouped", "Group",
				"HugePagesWanted", "TierNodes", "Reuse", "Suballoc",
				"Managed":
			default:
				compare(t, key, want.Field(i), object[keyOf(name)])
			}
		}
	}
}

// TestRoundTrip shows that every field arrives under its key with its value.
func TestRoundTrip(t *testing.T) {
	for _, r := range []*stats.Report{fullReport(t), newReport(t)} {
		got := decode(t, text(t, r))
		compare(t, "$", reflect.ValueOf(r).Elem(), got)
		calls := got["calls"].(map[string]any)
		for i := range stats.CallCount {
			name := stats.CallName(uintptr(i))
			compare(t, name, reflect.ValueOf(r.Calls[i]), calls[name])
		}
		if len(calls) != int(stats.CallCount) {
			t.Errorf("%d functions, not %d: %v", len(calls), stats.CallCount, calls)
		}
		tiers := got["tiers"].(map[string]any)
		for i, name := range []string{stats.TierFast: "fast", stats.TierNormal: "normal",
			stats.TierSlow: "slow"} {
			tier := tiers[name].(map[string]any)
			compare(t, name, reflect.ValueOf(r.Tiers[i]), tier)
			perNode := tier["bytes_per_node"].(map[string]any)
			for k := range r.NodeCount {
				compare(t, name, reflect.ValueOf(r.Tiers[i].BytesPerNode[k]),
					perNode[fmt.Sprint(r.Nodes[k])])
			}
			if len(perNode) != int(r.NodeCount) {
				t.Errorf("%s: %v", name, perNode)
			}
		}
	}
}

// TestSizeClasses shows that classes never used are left out and others are not.
func TestSizeClasses(t *testing.T) {
	r := newReport(t)
	for i := range r.Heap.SizeClasses {
		r.Heap.SizeClasses[i].Size = uint64(16 * (i + 1))
	}
	r.Heap.SizeClasses[0].BlocksTotalAlloc = 1
	r.Heap.SizeClasses[5].Pages = 1
	r.Heap.SizeClasses[6].BlocksLive = 1
	r.Heap.SizeClasses[7].BlocksTotalFreed = 1
	r.Heap.SizeClasses[stats.ClassMax-1].BlocksTotalAlloc = math.MaxUint64
	list := decode(t, text(t, r))["heap"].(map[string]any)["size_classes"].([]any)
	for i, k := range []int{0, 5, 6, 7, stats.ClassMax - 1} {
		if len(list) != 5 {
			t.Fatalf("%d classes: %v", len(list), list)
		}
		compare(t, "class", reflect.ValueOf(r.Heap.SizeClasses[k]), list[i])
	}
	full := fullReport(t)
	list = decode(t, text(t, full))["heap"].(map[string]any)["size_classes"].([]any)
	if len(list) != stats.ClassMax {
		t.Errorf("%d classes of %d", len(list), stats.ClassMax)
	}
}

// TestNodes shows that a wrong NodeCount names no nodes that are not there.
func TestNodes(t *testing.T) {
	r := newReport(t)
	for _, count := range []uint64{0, 1, stats.NodeMax, stats.NodeMax + 1, math.MaxUint64} {
		r.NodeCount = count
		for i := range r.Nodes {
			r.Nodes[i] = uint64(i)
		}
		nodes := decode(t, text(t, r))["nodes"].([]any)
		if want := min(count, stats.NodeMax); uint64(len(nodes)) != want {
			t.Errorf("%d nodes, not %d", len(nodes), want)
		}
	}
}

func TestFragmentationRatio(t *testing.T) {
	const most = math.MaxUint64
	r := newReport(t)
	for _, c := range []struct {
		live, committed uint64
		want            string
	}{
		{0, 0, "0.0000"}, {0, 1, "1.0000"}, {1, 1, "0.0000"}, {2, 3, "0.3333"}, {1, 3, "0.6666"},
		{5, 4, "0.0000"}, {most, 0, "0.0000"}, {0, most, "1.0000"}, {most, most, "0.0000"},
		{1 << 63, most, "0.4999"}, {9999, 10000, "0.0001"}, {1 << 47, 1 << 48, "0.5000"},
		{1 << 40, 1<<48 - 1, "0.9960"}, {most - 1, most, "0.0000"},
	} {
		r.Heap.BytesLive, r.Heap.BytesCommitted = c.live, c.committed
		got := decode(t, text(t, r))["heap"].(map[string]any)["fragmentation_ratio"].(json.Number)
		if got.String() != c.want {
			t.Errorf("%d of %d live: %s, not %s", c.live, c.committed, got, c.want)
		}
	}
}
