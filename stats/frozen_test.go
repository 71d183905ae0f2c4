package stats

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/livepage.txt anew")

// TestLivePageIsFrozen compares the place of each figure in a live page with a file. Only a tool of
// the same version reads a page, so LiveVersion must rise with every change; -update insists on it.
func TestLivePageIsFrozen(t *testing.T) {
	var got bytes.Buffer
	fmt.Fprintf(&got, "version %d, %d bytes\n", LiveVersion, LiveSize)
	places(&got, "LivePage", reflect.TypeOf((*LivePage)(nil)).Elem(), 0)
	const golden = "testdata/livepage.txt"
	if *update {
		old, _ := os.ReadFile(golden)
		if bytes.HasPrefix(old, fmt.Appendf(nil, "version %d,", LiveVersion)) &&
			!bytes.Equal(old, got.Bytes()) {
			t.Fatal("the layout has changed: raise LiveVersion")
		}
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the live page is not laid out as %s says:\n%s", golden, got.Bytes())
	}
}

// places writes the offset of each field in t, of an array those of its first element.
func places(w io.Writer, name string, t reflect.Type, at uintptr) {
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Type.Size() != 0 {
				places(w, name+"."+f.Name, f.Type, at+f.Offset)
			}
		}
	case reflect.Array:
		places(w, fmt.Sprintf("%s[%d]", name, t.Len()), t.Elem(), at)
	default:
		fmt.Fprintf(w, "%6d %s %s\n", at, t, name)
	}
}

// publicFields are the fields of ta_stats, ta_tier_stats and ta_cuda_stats, eight bytes each. New
// ones may come at the end; those that are there keep their places.
var publicFields = map[string]string{
	"ta_stats": `size version bytes_mapped bytes_committed bytes_live bytes_peak bytes_cached
		bytes_total_alloc bytes_total_freed blocks_live blocks_total_alloc blocks_total_freed
		huge_blocks_live huge_bytes_live spans_free cross_thread_frees calls_failed tiers`,
	"ta_tier_stats": `blocks_entered blocks_left bytes_entered bytes_left bytes_current bytes_peak
		simulated_wait_ns`,
	"ta_cuda_stats": `size alloc_calls free_calls hits_local hits_global hits_split misses
		foreign_calls refused frees_invalid blocks_live bytes_live bytes_peak bytes_reserved
		bytes_cached_local bytes_cached_global largest_free segments splits merges blocks_warmed
		bytes_released bytes_device bytes_current capacity_hard segment_size cache_limit
		stream_local global_limit recording`,
}

// TestPublicStatsAreFrozen has the C compiler hold the structures of tieralloc.h to their ABI.
func TestPublicStatsAreFrozen(t *testing.T) {
	var c strings.Builder
	c.WriteString("#include \"tieralloc.h\"\n")
	for name, fields := range publicFields {
		for i, field := range strings.Fields(fields) {
			fmt.Fprintf(&c, "_Static_assert(offsetof(%s, %s) == %d, \"%s\");\n", name, field, 8*i,
				field)
		}
	}
	c.WriteString("_Static_assert(sizeof(ta_stats) == 17 * 8 + 3 * sizeof(ta_tier_stats), \"\");")
	cmd := exec.Command("cc", "-fsyntax-only", "-I../interpose", "-x", "c", "-")
	cmd.Stdin = strings.NewReader(c.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
