package raw

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestLookForFilter: the line is found wherever it is. A file without it is that of a kernel that
// has no filters; where there is no file, or nothing in it, that counts as a filter.
func TestLookForFilter(t *testing.T) {
	for _, c := range []struct {
		text string
		want uint32
	}{
		{"Name:\tx\nSeccomp:\t0\nSeccomp_filters:\t0\n", filterAbsent},
		{"Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n", filterPresent},
		{"Name:\tSeccomp:\t0\nSeccomp:\t2\n", filterPresent},
		{"Name:\tx\n\nSeccomp\nSeccomp:\t0\n", filterAbsent},
		{"Name:\tx\nSeccomp:\t", filterPresent},
		{"", filterAbsent},
	} {
		for _, groups := range []int{0, 200, 230, 239, 240, 241, 242, 250, 256, 70000} {
			file := filepath.Join(t.TempDir(), "status")
			text := "Groups:\t" + strings.Repeat("7", groups) + "\n" + c.text
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if got := lookForFilter(Bytes(file + "\x00")); got != c.want {
				t.Errorf("%q after %d bytes: %d", c.text, groups, got)
			}
		}
	}
	for _, file := range []string{"/no/such/file", os.DevNull} {
		if got := lookForFilter(Bytes(file + "\x00")); got != filterPresent {
			t.Errorf("%s: %d", file, got)
		}
	}
}

// TestResident: both ways agree about pages that were written, and those that were not.
func TestResident(t *testing.T) {
	const pages = 200
	at := Map(pages * Page)
	defer Sys(syscall.SYS_MUNMAP, at, pages*Page, 0, 0, 0, 0)
	for _, i := range []uintptr{0, 3, 63, 64, 130, 199} {
		StoreByte(at+i*Page, 1)
	}
	defer func(was uint32) { startFilter = was }(startFilter)
	var found [2][pages]byte
	for i, state := range []uint32{filterAbsent, filterPresent} {
		startFilter = state
		if errno := Resident(at, pages, &found[i][0]); errno != 0 {
			t.Fatal(syscall.Errno(errno))
		}
	}
	if found[0] != found[1] || found[0][3] != 1 || found[0][4] != 0 {
		t.Errorf("mincore: %v\npagemap: %v", found[0], found[1])
	}
}
