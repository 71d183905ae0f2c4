package document

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// program is the name as a reader of the report gets it.
func program(tb testing.TB, r *stats.Report) string {
	var doc struct{ Program string }
	if err := json.Unmarshal(text(tb, r), &doc); err != nil {
		tb.Fatal(err)
	}
	return doc.Program
}

// sequences are starts of UTF-8 sequences, good and bad, that tests combine.
var sequences = []string{
	"", "a", "\x00", "\x1f", "\n", "\t", "\r", "\x7f", `"`, `\`, "/", "é", "€", "\u2028",
	"\U0010ffff",
	"\x80", "\xbf", "\xc0\x80", "\xc1\xbf", "\xc2", "\xdf\xbf", "\xe0\x9f\xbf", "\xe0\xa0\x80",
	"\xe1\x80",
	"\xed\x9f\xbf", "\xed\xa0\x80", "\xef\xbf\xbd", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80\x80",
	"\xf0\x90\x80",
	"\xf4\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xff",
}

func TestProgramName(t *testing.T) {
	r := newReport(t)
	check := func(name string) {
		t.Helper()
		setProgram(r, name)
		// A conversion to runes replaces each bad byte by U+FFFD.
		if want, got := string([]rune(name)), program(t, r); got != want {
			t.Errorf("%q: %q, not %q", name, got, want)
		}
	}
	for _, a := range sequences {
		for _, b := range sequences {
			check(a + b)
		}
	}
	for c := range 256 {
		check(string([]byte{byte(c)}))
	}
	check(strings.Repeat("\x01", stats.NameSize))
	setProgram(r, strings.Repeat("n", stats.NameSize)+"more")
	if got := program(t, r); got != strings.Repeat("n", stats.NameSize) {
		t.Errorf("a long name became %q", got)
	}
	setProgram(r, "")
	if got := program(t, r); got != "" {
		t.Errorf("no name became %q", got)
	}
}

// TestRuneSize compares with unicode/utf8 for every first two bytes.
func TestRuneSize(t *testing.T) {
	buf := mapped(t, 4)
	for first := range 256 {
		for second := range 256 {
			for _, tail := range []string{"\x80\x80", "\xbf\xbf", "\xbfa", "a\x80", "\xc0\x80"} {
				buf[0], buf[1] = byte(first), byte(second)
				copy(buf[2:], tail)
				for n := 1; n <= 4; n++ {
					c, want := utf8.DecodeRune(buf[:n])
					if c == utf8.RuneError && want == 1 {
						want = 0
					}
					if got := runeSize(uintptr(unsafe.Pointer(&buf[0])),
						uintptr(n)); int(got) != want {
						t.Fatalf("% x: %d, not %d", buf[:n], got, want)
					}
				}
			}
		}
	}
}

func FuzzProgramName(f *testing.F) {
	for _, s := range sequences {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		r := newReport(t)
		setProgram(r, name)
		want := string([]rune(name[:min(len(name), stats.NameSize)]))
		if got := program(t, r); got != want {
			t.Errorf("%q: %q, not %q", name, got, want)
		}
	})
}

// TestShortBuffer writes into a buffer of every size from nothing to one too many,
// which ends where memory ends.
func TestShortBuffer(t *testing.T) {
	r := newReport(t)
	setProgram(r, "a\"\x80é")
	r.Heap.SizeClasses[3].Pages = 7
	r.NodeCount = 1
	whole := text(t, r)
	buf := mapped(t, len(whole)+2)
	for size := 0; size <= len(buf); size++ {
		for i := range buf {
			buf[i] = 0xee
		}
		dst := buf[len(buf)-size:]
		addr := uintptr(unsafe.Pointer(&buf[0])) + uintptr(len(buf)-size)
		if need := JSON(addr, uintptr(size), r, nil); int(need) != len(whole) {
			t.Fatalf("size %d: needs %d, not %d", size, need, len(whole))
		}
		if size == 0 {
			continue
		}
		n := min(size-1, len(whole))
		if !bytes.Equal(dst[:n], whole[:n]) || dst[n] != 0 {
			t.Fatalf("size %d: %q", size, dst)
		}
		if i := len(buf) - size - 1; i >= 0 && buf[i] != 0xee ||
			size == len(buf) && buf[size-1] != 0xee {
			t.Fatalf("size %d: a byte outside was written", size)
		}
	}
}

// TestLayout holds the text to the usual two-space form, in one order of keys.
func TestLayout(t *testing.T) {
	for _, r := range []*stats.Report{newReport(t), fullReport(t)} {
		doc := text(t, r)
		var want bytes.Buffer
		if err := json.Indent(&want, doc, "", "  "); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(doc, want.Bytes()) {
			t.Errorf("not the form of json.Indent:\n%s", doc)
		}
	}
	doc := text(t, newReport(t))
	at := 0
	for _, key := range []string{"schema", "version", "library_version", "pid", "program",
		"start_unix_ns", "uptime_ns",
		"calls", "calls_failed", "heap", "backend", "policy", "hints", "nodes",
		"bytes_per_node_sampled", "tiers"} {
		next := bytes.Index(doc, []byte("\n  \""+key+"\": "))
		if next < at {
			t.Errorf("%s is missing or out of order", key)
		}
		at = next
	}
}

func TestHex(t *testing.T) {
	buf := mapped(t, 20)
	for v, want := range map[uint64]string{0: "0", 0xf: "f", 0x10: "10",
		0xabcdef0123456789: "abcdef0123456789"} {
		var w writer
		w.begin(uintptr(unsafe.Pointer(&buf[0])), 20)
		w.hex(v)
		if got := string(buf[:w.n]); got != want {
			t.Errorf("%x is %q", v, got)
		}
	}
}

// TestNames shows that the tables name everything once: an unnamed constant would
// be an empty key.
func TestNames(t *testing.T) {
	seen := map[string]bool{"": true}
	var names []string
	for i := range config.TierCount {
		names = append(names, config.TierWord(i))
	}
	for i := range uintptr(stats.CallCount) {
		names = append(names, stats.CallName(i))
	}
	for _, name := range names {
		if seen[name] {
			t.Errorf("%q is empty or twice", name)
		}
		seen[name] = true
	}
}
