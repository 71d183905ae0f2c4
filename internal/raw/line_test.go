package raw

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"unsafe"
)

// written is what Emit writes.
func written(t *testing.T, l *Line) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	l.Emit(w.Fd())
	buf := make([]byte, 4096)
	n, err := r.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return string(buf[:n])
}

// TestLineHost: a string of the host's does not play with the terminal.
func TestLineHost(t *testing.T) {
	name := []byte("a\x1b[2J/\x01~ \xc2\x9b\n\x7fz\x00")
	var l Line
	l.CStr(uintptr(unsafe.Pointer(&name[0])))
	if got, want := written(t, &l), "a?[2J/?~ ????z\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
}

// TestLineLong: what follows a long string of the host's is in the line.
func TestLineLong(t *testing.T) {
	for _, n := range []int{shownMax - 1, shownMax, shownMax + 1, 4000} {
		name := []byte(strings.Repeat("x", n) + "\x00")
		var l Line
		l.CStr(uintptr(unsafe.Pointer(&name[0])))
		l.Text(": why")
		want := strings.Repeat("x", min(n, shownMax))
		if n > shownMax {
			want += "..."
		}
		if got := written(t, &l); got != want+": why\n" {
			t.Errorf("%d bytes: %q", n, got)
		}
	}
}

func TestLineNumbers(t *testing.T) {
	for _, v := range []uint64{0, 1, 9, 10, 15, 16, 255, 1000, 1<<32 - 1, 1 << 47, 1<<63 + 11,
		^uint64(0)} {
		var l Line
		l.Hex(uintptr(v))
		l.Text(" ")
		l.Dec(v)
		if got, want := written(t, &l), fmt.Sprintf("%#x %d\n", v, v); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestLineText(t *testing.T) {
	var l Line
	name := []byte("free\x00more")
	l.CStr(uintptr(unsafe.Pointer(&name[0])))
	l.Text("(")
	l.Text("")
	l.Mem(uintptr(unsafe.Pointer(&name[5])), 2)
	l.Text(")")
	if got := written(t, &l); got != "free(mo)\n" {
		t.Errorf("%q", got)
	}
	var empty Line
	if got := written(t, &empty); got != "\n" {
		t.Errorf("an empty line is %q", got)
	}
}

// TestLineFull: what does not fit is dropped, whatever adds it; the newline fits.
func TestLineFull(t *testing.T) {
	zero := append([]byte(strings.Repeat("c", 600)), 0)
	for _, add := range []func(*Line){
		func(l *Line) { l.Text(strings.Repeat("c", 600)) },
		func(l *Line) { l.CStr(uintptr(unsafe.Pointer(&zero[0]))) },
		func(l *Line) { l.Hex(0xcccccccccccccccc) },
		func(l *Line) { l.Dec(^uint64(0)) },
	} {
		for _, before := range []int{0, 500, lineMask - 1, lineMask} {
			var l Line
			l.Text(strings.Repeat("c", before))
			for range 40 {
				add(&l)
			}
			got := written(t, &l)
			if len(got) != lineMask+1 || strings.Index(got, "\n") != lineMask ||
				!strings.HasPrefix(got, strings.Repeat("c", before)) {
				t.Errorf("after %d: %d bytes, %q", before, len(got), got)
			}
		}
	}
}

// FuzzRoundUp compares with division, and covers what wraps.
func FuzzRoundUp(f *testing.F) {
	f.Add(uint64(0), uint8(0))
	f.Add(uint64(4097), uint8(12))
	f.Add(^uint64(0)-5, uint8(4))
	f.Fuzz(func(t *testing.T, n uint64, bit uint8) {
		align := uint64(1) << (bit % 48)
		want := uint64(0)
		if top := ^uint64(0) - (align - 1); n <= top {
			want = (n + align - 1) / align * align
		}
		if got := uint64(RoundUp(uintptr(n), uintptr(align))); got != want {
			t.Fatalf("RoundUp(%d, %d) = %d, not %d", n, align, got, want)
		}
	})
}
