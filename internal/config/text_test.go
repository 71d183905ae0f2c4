package config

import (
	"math"
	"strconv"
	"strings"
	"testing"
	"tieralloc/internal/raw"
)

func TestText(t *testing.T) {
	x := new(Text)
	for i := range TextSize - 1 {
		if !x.Byte('a') || x.Len() != uintptr(i+1) {
			t.Fatalf("byte %d refused", i)
		}
	}
	if x.Byte('b') || x.Mem(raw.Bytes("c"), 1) || x.Len() != TextSize-1 || x.buf[TextSize-1] != 0 {
		t.Error("a full text takes more, or lost its final zero")
	}
	if !x.Mem(raw.Bytes("c"), 0) {
		t.Error("nothing does not fit")
	}
	if !x.Set(raw.Bytes("hello"), 5) || x.String() != "hello" || raw.LoadByte(x.Addr()+5) != 0 {
		t.Errorf("%q", x)
	}
	if x.At(4) != 'o' || x.At(5) != 0 || x.At(math.MaxUint64) != 0 {
		t.Error("At")
	}
	long := strings.Repeat("z", TextSize)
	if x.Set(raw.Bytes(long), TextSize) || x.String() != long[1:] {
		t.Errorf("a cut text has %d bytes", x.Len())
	}
	for _, v := range []uint64{0, 9, 10, 4096, math.MaxUint64} {
		x.Reset()
		if !x.Dec(v) || x.String() != strconv.FormatUint(v, 10) {
			t.Errorf("%d is %q", v, x)
		}
	}
}

func TestExpand(t *testing.T) {
	room := strings.Repeat("r", PathMax-1)
	for _, c := range []struct {
		tmpl, program, want string
		hasPid, ok          bool
	}{
		{"", "ls", "", false, true},
		{"/t/s.json", "ls", "/t/s.json", false, true},
		{"/t/%e.%p", "ls", "/t/ls.4294967295", true, true},
		{"%p%p%%p%%", "ls", "42949672954294967295%p%", true, true},
		{"%%e%e", "%p", "%e%p", false, true},
		{"/t/%e", "a/../b", "/t/a_.._b", false, true},
		{"/t/%e", "", "/t/", false, true},
		{"/t/%", "ls", "", false, false},
		{"%p/%x", "ls", "", false, false},
		{room + "%e", "l", room + "l", false, true},
		{room + "%e", "ls", "", false, false},
		{room + "%e", room, "", false, false},
		{strings.Repeat("%p", 2000), "", "", false, false},
		{strings.Repeat("%e", 2000), "ab", strings.Repeat("ab", 2000), false, true},
		{strings.Repeat("%%", 2000), "", strings.Repeat("%", 2000), false, true},
	} {
		dst := textOf("old")
		hasPid, ok := Expand(dst, textOf(c.tmpl), math.MaxUint32, textOf(c.program))
		if dst.String() != c.want || hasPid != c.hasPid || ok != c.ok {
			t.Errorf("%.40q, %.40q: %.40q %v %v", c.tmpl, c.program, dst, hasPid, ok)
		}
	}
}
