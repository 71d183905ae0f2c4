package live

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/stats/document"
)

// wantOne fails unless every word of the snapshot is the number of its update.
func wantOne(t *testing.T, s *Snapshot) {
	t.Helper()
	for i, v := range figureWords(&s.Figures) {
		if v != s.Updates {
			t.Fatalf("word %d of update %d is %d", i, s.Updates, v)
		}
	}
}

// TestKilledWriter kills a writer at random moments, while and after which every
// snapshot must be whole.
func TestKilledWriter(t *testing.T) {
	torn := 0
	const rounds = 25
	for range rounds {
		w := start(t, "numbers")
		p := w.open(t)
		last := uint64(0)
		for end := time.Now().Add(time.Duration(rand.IntN(5_000_000))); time.Now().Before(end); {
			s := snapshot(t, p)
			wantOne(t, s)
			if s.Updates < last || s.State != Running {
				t.Fatalf("update %d after %d; %v", s.Updates, last, s.State)
			}
			last = s.Updates
		}
		w.kill()
		s := snapshot(t, p)
		wantOne(t, s)
		if s.Updates < last || s.State != Killed {
			t.Errorf("update %d after %d; %v", s.Updates, last, s.State)
		}
		if isTorn(t, p, s.Updates) {
			torn++
		}
	}
	if torn == 0 {
		t.Errorf("none of %d writers was killed in the midst of an update", rounds)
	}
}

// isTorn reports whether the buffer that is not current holds parts of two updates.
func isTorn(t *testing.T, p *Page, updates uint64) bool {
	t.Helper()
	var b stats.LiveBuffer
	if err := p.read(words(&b), buffersAt+uintptr((updates+1)&1)*bufferSize); err != nil {
		t.Fatal(err)
	}
	all := figureWords(&b.Figures)
	for _, v := range all {
		if v != all[0] {
			return true
		}
	}
	return false
}

// TestRunningWriter reads often while the page changes.
func TestRunningWriter(t *testing.T) {
	p := start(t, "numbers").open(t)
	first := snapshot(t, p)
	last := first
	for n := 0; n < 20000 || last.Updates == first.Updates; n++ {
		s := &Snapshot{}
		whole, err := p.copyLast(s)
		if err != nil {
			t.Fatal(err)
		}
		if whole {
			wantOne(t, s)
			last = s
		}
	}
}

// TestReadAgain: nothing stays of what a snapshot had before.
func TestReadAgain(t *testing.T) {
	p := start(t, "idle").open(t)
	s := &Snapshot{State: Exited, Updates: 99}
	for i := range figureWords(&s.Figures) {
		figureWords(&s.Figures)[i] = ^uint64(0)
	}
	if err := p.Read(s); err != nil || *s != *snapshot(t, p) {
		t.Errorf("%v: %v, %d updates", err, s.State, s.Updates)
	}
}

// ownPage is a page that this process writes, with one update of made-up figures.
func ownPage(t *testing.T) (path string, want []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "page")
	openPage(path)
	t.Cleanup(stats.LiveForked)
	r := stats.LiveBegin(1)
	setWords(r, 3)
	name := "a \"name\" \x1b\xff"
	r.SetProgram(raw.Bytes(name), uintptr(len(name)))
	buf := make([]byte, document.JSON(0, 0, r, nil)+1)
	document.JSON(uintptr(unsafe.Pointer(&buf[0])), uintptr(len(buf)), r, nil)
	stats.LiveCommit(1)
	return path, buf[:len(buf)-1]
}

// TestJSON: the text is what the library itself writes.
func TestJSON(t *testing.T) {
	path, want := ownPage(t)
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := snapshot(t, p)
	if got, err := s.JSON(); err != nil || string(got) != string(want) {
		t.Errorf("%v: %s\nnot %s", err, got, want)
	}
	if s.Name() != "a \"name\" \x1b\xff" || s.Updates != 1 || s.Age() > time.Hour ||
		s.State != Running {
		t.Errorf("%q, %d updates, %v old, %v", s.Name(), s.Updates, s.Age(), s.State)
	}
	if p.Program() != "writer" || p.Pid() != os.Getpid() || p.Path() != path ||
		p.Start().UnixNano() != testStart {
		t.Errorf("%q, %d, %s, %v", p.Program(), p.Pid(), p.Path(), p.Start())
	}
}

// TestNoUpdateYet: the snapshot says whose it is, and no more.
func TestNoUpdateYet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page")
	openPage(path)
	t.Cleanup(stats.LiveForked)
	p, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := snapshot(t, p)
	if s.Updates != 0 || s.Pid != uint64(os.Getpid()) || s.Name() != "writer" ||
		s.StartUnixNs != testStart ||
		!s.At.Equal(p.Start()) || s.State != Running {
		t.Errorf("%d updates of %d, %q, from %v, %v", s.Updates, s.Pid, s.Name(), s.At, s.State)
	}
}

// TestForkedWriter: a child leaves its parent's page alone, and has its own.
func TestForkedWriter(t *testing.T) {
	w := start(t, "fork")
	parent := w.open(t)
	child, err := Open(w.path + ".child")
	if err != nil {
		t.Fatal(err)
	}
	defer child.Close()
	w.line(t) // the child's number came first
	for _, c := range []struct {
		p       *Page
		updates uint64
		word    uint64
	}{{parent, 2, 2}, {child, 1, 101}} {
		s := snapshot(t, c.p)
		if s.State != Running || s.Updates != c.updates || s.Pid != c.word {
			t.Errorf("%s: %v, %d updates, figures %d", c.p.Path(), s.State, s.Updates, s.Pid)
		}
	}
	if parent.Pid() == child.Pid() {
		t.Error("both pages are of one process")
	}
	w.stdin.Close()
	w.line(t)
	if s := snapshot(t, child); s.State != Killed {
		t.Errorf("the child is %v", s.State)
	}
	if s := snapshot(t, parent); s.State != Running {
		t.Errorf("the parent is %v", s.State)
	}
}
