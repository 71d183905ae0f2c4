package config

import (
	"math"
	"os"
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

// TestRank: of several launchers' numbers that of the innermost counts, and a word is none.
func TestRank(t *testing.T) {
	for _, c := range []struct{ env, want string }{
		{"", "none"}, {"RANK=0", "0"}, {"SLURM_PROCID=12", "12"}, {"PMI_RANK=3", "3"},
		{"PMIX_RANK=4", "4"}, {"SLURM_PROCID=0 OMPI_COMM_WORLD_RANK=5", "5"},
		{"OMPI_COMM_WORLD_RANK=1 RANK=6", "6"}, {"RANK=captain SLURM_PROCID=2", "2"},
		{"RANK= PMI_RANK=1", "1"}, {"RANK=999999999", "999999999"}, {"RANK=1000000000", "none"},
		{"RANK=-1", "none"}, {"RANKS=1 XRANK=2", "none"},
	} {
		env := newEnviron(t, strings.Fields(c.env))
		s, dst := new(Settings), new(Text)
		Parse(s, env.addr())
		env.clobber()
		if _, ok := Expand(dst, textOf("%r"), 1, textOf(""), s.Rank); !ok ||
			dst.String() != c.want {
			t.Errorf("%s: %s, not %s", c.env, dst, c.want)
		}
	}
}

func TestExpand(t *testing.T) {
	room := strings.Repeat("r", PathMax-1)
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
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
		{"/t/%h.%r", "ls", "/t/" + host + ".7", false, true},
		{room + "%r", "", room + "7", false, true},
		{room + "%h%e", "a", "", false, false},
		{room + "%e", "l", room + "l", false, true},
		{room + "%e", "ls", "", false, false},
		{room + "%e", room, "", false, false},
		{strings.Repeat("%p", 2000), "", "", false, false},
		{strings.Repeat("%e", 2000), "ab", strings.Repeat("ab", 2000), false, true},
		{strings.Repeat("%%", 2000), "", strings.Repeat("%", 2000), false, true},
	} {
		dst := textOf("old")
		hasPid, ok := Expand(dst, textOf(c.tmpl), math.MaxUint32, textOf(c.program), 8)
		if dst.String() != c.want || hasPid != c.hasPid || ok != c.ok {
			t.Errorf("%.40q, %.40q: %.40q %v %v", c.tmpl, c.program, dst, hasPid, ok)
		}
	}
}
