package live

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestWithin: the newest files of each other user, and no more than of ten users.
func TestWithin(t *testing.T) {
	own := uint32(os.Geteuid())
	var files []usualFile
	for i := range 7 {
		files = append(files, usualFile{pid: i, owner: own})
	}
	for user := range uint32(20) {
		for i := range 3 {
			files = append(files, usualFile{pid: 100 + i, owner: own + 1 + user})
		}
	}
	some, leftOut := within(2, files)
	if len(some) != 7+20 || leftOut != 40 || !slices.Equal(some[:7], files[:7]) {
		t.Errorf("%v, %d left out", some, leftOut)
	}
	for i, f := range some[7:] {
		if want := own + 1 + uint32(i/2); f.owner != want || f.pid != 100+i%2 {
			t.Errorf("file %d: %v, not of %d", i, f, want)
		}
	}
	if some, leftOut = within(0, files); len(some) != len(files) || leftOut != 0 {
		t.Errorf("without a limit: %d, %d left out", len(some), leftOut)
	}
}

// TestUsualStrangers: of a folder full of another user's pages few are opened, the newest, after
// all of this user's. What is left out is told.
func TestUsualStrangers(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make files of another user")
	}
	dir := t.TempDir()
	path, _ := ownPage(t)
	const strangers, limit, own = 100, 5, 20
	for pid := 1; pid <= strangers+own; pid++ {
		name := putPage(t, path, dir, "tieralloc."+strconv.Itoa(pid), uint64(pid))
		at := time.Unix(int64(pid), 0)
		if pid <= strangers {
			if err := errors.Join(os.Chown(name, 12345, 0), os.Chtimes(name, at, at)); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Chtimes(name, time.Unix(1, 0), time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	var want []int
	for pid := strangers + 1; pid <= strangers+own; pid++ {
		want = append(want, pid)
	}
	want = append(want, 100, 99, 98, 97, 96)
	var pids []int
	err := openFolder(t, dir).Usual(limit, nil, func(p *Page) error {
		pids = append(pids, p.Pid())
		return nil
	})
	if !slices.Equal(pids, want) {
		t.Errorf("pages of %v, not %v", pids, want)
	}
	if err == nil || !strings.Contains(err.Error(), filepath.Clean(dir)+": 95 files") {
		t.Errorf("%v", err)
	}
}

// TestUsualDamaged: of other users' damaged pages a few are named and the others counted. Of this
// user's each is named.
func TestUsualDamaged(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to make files of another user")
	}
	dir := t.TempDir()
	path, _ := ownPage(t)
	const strangers, own = 3 * badNamed, 2 * badNamed
	for pid := 1; pid <= strangers+own; pid++ {
		name := putPage(t, path, dir, "tieralloc."+strconv.Itoa(pid), uint64(pid)+1)
		if pid <= strangers {
			if err := os.Chown(name, 12345, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := openFolder(t, dir).Usual(100, nil, func(p *Page) error {
		t.Errorf("%s is used", p.Path())
		return nil
	})
	if err == nil || strings.Count(err.Error(), "damaged live page") != own+badNamed ||
		!strings.Contains(err.Error(), ": 20 more pages of other users are damaged") {
		t.Errorf("%v", err)
	}
}

// TestUsualKnown: files that are known are not opened, so damaged ones among them are not told of.
func TestUsualKnown(t *testing.T) {
	dir := t.TempDir()
	path, _ := ownPage(t)
	known := map[ID]bool{}
	for pid := 1; pid <= 6; pid++ {
		name := putPage(t, path, dir, "tieralloc."+strconv.Itoa(pid), uint64(pid+pid/6))
		if pid%2 == 0 {
			p, err := Open(name)
			if err != nil {
				t.Fatal(err)
			}
			known[p.ID()] = true
			p.Close()
		}
	}
	var pids []int
	err := openFolder(t, dir).Usual(0, func(id ID) bool { return known[id] }, func(p *Page) error {
		pids = append(pids, p.Pid())
		return nil
	})
	if slices.Sort(pids); err != nil || !slices.Equal(pids, []int{1, 3, 5}) {
		t.Errorf("pages of %v, %v", pids, err)
	}
}
