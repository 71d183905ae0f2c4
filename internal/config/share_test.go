package config

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestShareCaps: tiers of one memory have the smallest caps of any, and each larger one is a line.
func TestShareCaps(t *testing.T) {
	const same = ", for both tiers are the same memory; using "
	apart, pair, all := [4]uintptr{0, 1, 2, 3}, [4]uintptr{0, 0, 2, 3}, [4]uintptr{0, 0, 0, 3}
	for _, c := range []struct {
		env        string
		account    [4]uintptr
		soft, hard [3]uint64
		lines      string // without tieralloc:
	}{
		{"TA_FAST_HARD=8 TA_NORMAL_HARD=4", apart, [3]uint64{}, [3]uint64{8, 4, 0}, ""},
		{"TA_FAST_HARD=8", pair, [3]uint64{}, [3]uint64{8, 8, 0}, ""},
		{"TA_NORMAL_HARD=8 TA_SLOW_SOFT=3", pair, [3]uint64{0, 0, 3}, [3]uint64{8, 8, 0}, ""},
		{"TA_FAST_HARD=4 TA_NORMAL_HARD=4", pair, [3]uint64{}, [3]uint64{4, 4, 0}, ""},
		{"TA_FAST_HARD=8K TA_NORMAL_HARD=4K", pair, [3]uint64{}, [3]uint64{4096, 4096, 0},
			`TA_FAST_HARD="8K": expected at most TA_NORMAL_HARD="4K"` + same + "4K\n"},
		{"TA_FAST_SOFT=1 TA_NORMAL_SOFT=2 TA_SLOW_SOFT=3", all, [3]uint64{1, 1, 1}, [3]uint64{},
			`TA_NORMAL_SOFT="2": expected at most TA_FAST_SOFT="1"` + same + "1\n" +
				`tieralloc: TA_SLOW_SOFT="3": expected at most TA_FAST_SOFT="1"` + same + "1\n"},
		{"TA_FAST_SOFT=3 TA_SLOW_HARD=3", all, [3]uint64{3, 3, 3}, [3]uint64{3, 3, 3}, ""},
		{"TA_FAST_SOFT=4 TA_SLOW_HARD=3", all, [3]uint64{}, [3]uint64{3, 3, 3},
			`TA_FAST_SOFT="4": expected at most TA_SLOW_HARD="3"; using no soft cap` + "\n"},
	} {
		env := newEnviron(t, strings.Split(c.env, " "))
		fd, err := unix.MemfdCreate("complaints", 0)
		if err != nil {
			t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), "complaints")
		s := new(Settings)
		ParseTo(s, env.addr(), uintptr(fd))
		bad := s.ShareCaps(env.addr(), &c.account, uintptr(fd))
		text := make([]byte, 500)
		n, _ := f.ReadAt(text, 0)
		f.Close()
		want := ""
		if c.lines != "" {
			want = "tieralloc: " + c.lines
		}
		if string(text[:n]) != want || int(bad) != strings.Count(want, "\n") {
			t.Errorf("%s: %d bad:\n%swant\n%s", c.env, bad, text[:n], want)
		}
		for i := range 3 {
			if s.Tiers[i].Soft != c.soft[i] || s.Tiers[i].Hard != c.hard[i] {
				t.Errorf("%s: tier %d has %d and %d", c.env, i, s.Tiers[i].Soft, s.Tiers[i].Hard)
			}
		}
	}
}
