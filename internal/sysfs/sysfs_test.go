package sysfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

// listOf is nodes for a text of any length, by way of a pipe.
func listOf(tb testing.TB, text string) (set uint64, beyond, ok bool) {
	tb.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(text); err != nil { // a pipe holds 64 KiB
		tb.Fatal(err)
	}
	w.Close()
	f := File{fd: r.Fd()}
	set, beyond, ok = f.Nodes()
	return set, beyond, ok
}

func TestList(t *testing.T) {
	long := ""
	for n := 0; n < 64; n += 2 {
		long += strings.Repeat("0", 40) + fmt.Sprint(n) + ","
	}
	for _, c := range []struct {
		text   string
		set    uint64
		beyond bool
		ok     bool
	}{
		{"0\n", 1, false, true},
		{"0", 1, false, true},
		{"", 0, false, true},
		{"\n", 0, false, true},
		{"0-63\n", ^uint64(0), false, true},
		{"0-3,8,62-63\n", 0x10f | 3<<62, false, true},
		{"0,64\n", 1, true, true},
		{"60-70\n", 0xf << 60, true, true},
		{"5-99999999999999999999\n", ^uint64(31), true, true},
		{"0,\n", 1, false, true}, // the kernel never writes it
		{long + "63\n", 0x5555555555555555 | 1<<63, false, true},
		{" 0\n", 0, false, false},
		{"0 1\n", 0, false, false},
		{",0\n", 0, false, false},
		{"0,,1\n", 0, false, false},
		{"3-1\n", 0, false, false},
		{"1-\n", 0, false, false},
		{"-1\n", 0, false, false},
		{"1-2-3\n", 0, false, false},
		{"0x1\n", 0, false, false},
		{"0\x00\n", 1, false, true}, // sysfs has no such byte
		{"none\n", 0, false, false},
	} {
		set, beyond, ok := listOf(t, c.text)
		if set != c.set || beyond != c.beyond || ok != c.ok {
			t.Errorf("%.60q: %#x %v %v, not %#x %v %v", c.text, set, beyond, ok, c.set, c.beyond,
				c.ok)
		}
	}
}

// referList is file.nodes in ordinary Go.
func referList(text string) (set uint64, beyond, ok bool) {
	text, _, _ = strings.Cut(text, "\n")
	text = strings.TrimSuffix(text, ",")
	if text == "" {
		return 0, false, true
	}
	number := func(s string) (uint64, bool) {
		if s == "" || strings.Trim(s, "0123456789") != "" {
			return 0, false
		}
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil || n > 1<<20 {
			n = 1 << 20
		}
		return n, true
	}
	for _, part := range strings.Split(text, ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		low, good := number(first)
		high, alsoGood := number(last)
		if !good || !alsoGood || low > high {
			return 0, false, false
		}
		for n := range uint64(64) {
			if low <= n && n <= high {
				set |= 1 << n
			}
		}
		beyond = beyond || high > 63
	}
	return set, beyond, true
}

func FuzzList(f *testing.F) {
	for _, seed := range []string{"0-3,8\n", "", ",", ",,", "1,\n2", "64", "63-64", "9-1", "1-2-3",
		"00", "1048577-1048576",
		"18446744073709551616", "0-18446744073709551615\n", strings.Repeat("0,", 200)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 60_000 || strings.Contains(text, "\x00") || text == "," ||
			strings.HasPrefix(text, ",\n") {
			return // no file of sysfs has them
		}
		set, beyond, ok := listOf(t, text)
		wantSet, wantBeyond, wantOk := referList(text)
		if set != wantSet || beyond != wantBeyond || ok != wantOk {
			t.Errorf("%q: %#x %v %v, not %#x %v %v", text, set, beyond, ok, wantSet, wantBeyond,
				wantOk)
		}
	})
}

func TestPath(t *testing.T) {
	for _, n := range []uintptr{0, 7, 10, 63, 100, 1009, 9999} {
		var p Path
		p.Node(n, "/distance")
		want := fmt.Sprintf("/sys/devices/system/node/node%d/distance", n)
		if got := string(p.buf[:p.n]); got != want || p.buf[p.n] != 0 {
			t.Errorf("%q, not %q", got, want)
		}
	}
	var p Path
	for range 100 {
		p.Text("0123456789")
		p.Number(4711)
	}
	if p.n != pathMask || p.buf[pathMask] != 0 {
		t.Errorf("a full path has %d bytes and ends in %q", p.n, p.buf[pathMask])
	}
}

// TestFigureOfFolder: what can be opened and not be read is no figure.
func TestFigureOfFolder(t *testing.T) {
	var p Path
	p.Text(t.TempDir())
	if v := Figure(&p); v != 0 {
		t.Errorf("a folder says %d", v)
	}
	if set, beyond, ok := NodeSet(&p); set != 0 || beyond {
		t.Errorf("a folder is the list %#x %v %v", set, beyond, ok)
	}
}
