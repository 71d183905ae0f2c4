package live

import (
	"os"
	"testing"
)

// TestMapped: the page of a process is found in its memory, wherever its file is, and also
// when its name is gone or another file has it.
func TestMapped(t *testing.T) {
	w := start(t, "idle")
	pid := w.cmd.Process.Pid
	pages := Mapped(pid)
	if len(pages) != 1 {
		t.Fatalf("%d pages", len(pages))
	}
	p := pages[0]
	defer p.Close()
	if p.Path() != w.path || p.Pid() != pid || p.ID() != w.open(t).ID() || p.Owner() != os.Geteuid() {
		t.Errorf("%s of process %d", p.Path(), p.Pid())
	}
	if s := snapshot(t, p); s.State != Running {
		t.Error(s.State)
	}
	if err := p.Remove(); err == nil {
		t.Error("a page was removed from where its process says that it is")
	}
	if err := os.Rename(copyOf(t, w.path, nil, whole), w.path); err != nil {
		t.Fatal(err)
	}
	for _, other := range Mapped(pid) { // none, without the right to look files up by mappings
		if other.ID() != p.ID() {
			t.Error("another file is taken for the page")
		}
		other.Close()
	}
	if pages := Mapped(1 << 30); pages != nil {
		t.Error("a process that is not has pages")
	}
}

// TestMappedByChild: a child that has its parent's memory has not its page.
func TestMappedByChild(t *testing.T) {
	w := start(t, "idle")
	p := w.open(t)
	for _, c := range []struct {
		pid  uint64
		want int
	}{{uint64(p.Pid()), 1}, {uint64(p.Pid()) + 1, 0}} {
		file, err := os.OpenFile(w.path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteAt(words(&c.pid), int64(pidAt)); err != nil {
			t.Fatal(err)
		}
		file.Close()
		pages := Mapped(w.cmd.Process.Pid)
		if len(pages) != c.want {
			t.Errorf("the page of %d is %d pages of %d", c.pid, len(pages), w.cmd.Process.Pid)
		}
		for _, p := range pages {
			p.Close()
		}
	}
}

func TestParseMapping(t *testing.T) {
	for line, want := range map[string]mapping{
		"7f02000-7f17000 rw-s 00000000 00:19 77 /dev/shm/a page (deleted)\n": {0x7f02000, 0x7f17000, 77, "/dev/shm/a page (deleted)"},
		"7f02000-7f17000 rw-p 00000000 00:19 77 /dev/shm/a":                  {},
		"7f02000-7f17000 r--s 00000000 00:19 77 /dev/shm/a":                  {},
		"7f02000-7f17000 rw-s 00001000 00:19 77 /dev/shm/a":                  {},
		"7f02000-9f17000 rw-s 00000000 00:19 77 /dev/shm/a":                  {},
		"7f02000-7f17000 rw-s 00000000 00:19 x7 /dev/shm/a":                  {},
		"7f17000-7f02000 rw-s 00000000 00:19 77 /dev/shm/a":                  {},
		"7f02000-7f17000 rw-s 00000000 00:01 77 anon_inode:[io_uring]":       {},
		" rw-s 00000000 ": {},
		"":                {},
	} {
		got, ok := parseMapping([]byte(line))
		if ok != (want != mapping{}) || ok && got != want {
			t.Errorf("%q: %+v, %v", line, got, ok)
		}
	}
}
