package config

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestSetParts: caps in percent are of what the tier has, and none is dropped without a line.
func TestSetParts(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		env        string
		memory     uint64
		soft, hard uint64
		line       string
	}{
		{"TA_FAST_SOFT=50% TA_FAST_HARD=80%", gib, gib / 100 * 50, gib / 100 * 80, ""},
		{"TA_FAST_SOFT=1G", gib / 2, gib, 0, ""},
		{"TA_FAST_HARD=1%", 64, 0, 1, ""},
		{"TA_FAST_SOFT=1G TA_FAST_HARD=100%", gib / 2, 0, gib / 200 * 100,
			`TA_FAST_SOFT="1G": expected at most TA_FAST_HARD="100%"; using no soft cap`},
		{"TA_FAST_HARD=80%", 0, 0, 0,
			`TA_FAST_HARD="80%": expected bytes, as the tier's memory is not known; using no ` +
				`hard cap`},
		{"TA_FAST_SOFT=9%", 0, 0, 0,
			`TA_FAST_SOFT="9%": expected bytes, as the tier's memory is not known; using no soft ` +
				`cap`},
	} {
		env := newEnviron(t, strings.Split(c.env, " "))
		fd, err := unix.MemfdCreate("complaints", 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "complaints")
		s := new(Settings)
		bad := ParseTo(s, env.addr(), uintptr(fd))
		bad += s.SetParts(env.addr(), &[4]uint64{c.memory}, uintptr(fd))
		text := make([]byte, 500)
		n, _ := f.ReadAt(text, 0)
		f.Close()
		want := ""
		if c.line != "" {
			want = "tieralloc: " + c.line + "\n"
		}
		if got := &s.Tiers[0]; got.Soft != c.soft || got.Hard != c.hard ||
			string(text[:n]) != want || bad != uintptr(min(len(want), 1)) {
			t.Errorf("%s of %d: %d and %d, %d bad: %s", c.env, c.memory, got.Soft, got.Hard, bad,
				text[:n])
		}
	}
}
