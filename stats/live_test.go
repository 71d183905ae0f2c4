package stats

import (
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/testlib"
)

// openLive is LiveOpen for this process.
func openLive(path string) syscall.Errno {
	const program = "stats.test"
	return syscall.Errno(LiveOpen(raw.Bytes(path), uintptr(len(path)), uint64(os.Getpid()), 12345,
		raw.Bytes(program), uintptr(len(program)), false))
}

// newLive makes a live page and returns its path.
func newLive(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "page")
	if errno := openLive(path); errno != 0 {
		t.Fatal(errno)
	}
	t.Cleanup(LiveForked)
	return path
}

// pageAt is a copy of the page in the file.
func pageAt(t *testing.T, path string) *LivePage {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(text) != int(LiveSize) {
		t.Fatalf("%d bytes, not %d", len(text), LiveSize)
	}
	page := raw.Map(LiveSize)
	t.Cleanup(func() { raw.Unmap(page, LiveSize) })
	copy(unsafe.Slice((*byte)(raw.Ptr(page)), LiveSize), text)
	return (*LivePage)(raw.Ptr(page))
}

// TestReportIsItsFigures: a report and what ordinary Go keeps of it are the same bytes.
func TestReportIsItsFigures(t *testing.T) {
	if unsafe.Sizeof(Report{}) != unsafe.Sizeof(Figures{}) ||
		unsafe.Offsetof(Report{}.Figures) != 0 {
		t.Error("a Report is more than its Figures")
	}
}

func TestLiveHeader(t *testing.T) {
	path := newLive(t)
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	h := &pageAt(t, path).Head
	if h.Magic != LiveMagic || h.Version != LiveVersion || h.Size != uint64(LiveSize) ||
		h.Pid != uint64(os.Getpid()) ||
		h.StartUnixNs != 12345 || h.State != LiveRunning || h.Begun != 0 || h.Published != 0 {
		t.Errorf("%+v", h)
	}
	if got := string(h.Program[:h.ProgramLen]); got != "stats.test" {
		t.Errorf("program %q", got)
	}
	want, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if got := string(h.BootID[:]); got != string(want[:36])+"\x00\x00\x00\x00" {
		t.Errorf("boot %q, not %q", got, want)
	}
	var st syscall.Stat_t
	if err := syscall.Stat("/proc/self/ns/pid", &st); err != nil || h.PidNamespace != st.Ino {
		t.Errorf("namespace %d, not %d", h.PidNamespace, st.Ino)
	}
}

// TestLiveUpdates: a committed report is published, a dropped one is not, and the
// buffers take turns.
func TestLiveUpdates(t *testing.T) {
	path := newLive(t)
	for i, commit := range []bool{true, true, false, true, false, false, true} {
		before := pageAt(t, path)
		now := uint64(i+1) * 1e9
		r := LiveBegin(now)
		if r == nil || LiveBegin(now) != nil {
			t.Fatal("not one update at a time")
		}
		if r.Figures != (Figures{}) {
			t.Error("the report is not zero")
		}
		r.Pid = now
		if !commit {
			LiveDrop(now)
		} else {
			LiveCommit(now)
			before.Head.Published++
		}
		page := pageAt(t, path)
		if page.Head.Published != before.Head.Published || page.Head.Begun-page.Head.Published > 1 {
			t.Errorf("update %d: published %d, begun %d", i, page.Head.Published, page.Head.Begun)
		}
		last := &page.Buffers[page.Head.Published&1]
		if commit && (last.Figures.Pid != now || last.UnixNs == 0) {
			t.Errorf("update %d: %d at %d", i, last.Figures.Pid, last.UnixNs)
		}
		if k := before.Head.Published & 1; !commit && page.Buffers[k] != before.Buffers[k] {
			t.Errorf("update %d: the last whole report was changed", i)
		}
	}
}

// TestLiveDue: the next update is due 100 ms after the last, or fifty times later than
// it took.
func TestLiveDue(t *testing.T) {
	if LiveOn() || LiveDue(math.MaxUint64-1) || LiveBegin(1) != nil {
		t.Fatal("there is a page before it was opened")
	}
	newLive(t)
	if !LiveOn() || !LiveDue(1) {
		t.Fatal("the first update is not due")
	}
	now := uint64(1e15)
	for _, c := range []struct {
		took int64 // ns
		wait uint64
	}{{0, 1e8}, {1e6, 1e8}, {2e6, 1e8}, {2e6 + 1, 1e8 + 50}, {1e9, 50e9}, {-5, 1e8}} {
		for _, end := range []func(uint64){LiveCommit, LiveDrop} {
			if LiveBegin(now) == nil {
				t.Fatal("no update")
			}
			now += uint64(c.took)
			end(now)
			if LiveDue(now) || LiveDue(now+c.wait-1) || !LiveDue(now+c.wait) {
				t.Errorf("after an update of %d ns the next is not due in %d", c.took, c.wait)
			}
			now += c.wait
		}
	}
}

// TestLiveOneWriter has threads update the page, each of which must be alone at it.
func TestLiveOneWriter(t *testing.T) {
	path := newLive(t)
	var inside atomic.Int32
	var commits, refused atomic.Uint64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range uint64(2000) {
				r := LiveBegin(n)
				if r == nil {
					refused.Add(1)
					continue
				}
				if inside.Add(1) != 1 {
					t.Error("two at a time")
				}
				r.Pid = n
				inside.Add(-1)
				if i == 0 && n%2 == 0 {
					LiveDrop(n)
					continue
				}
				commits.Add(1) // before another thread may
				LiveCommit(n)
			}
		}()
	}
	wg.Wait()
	if page := pageAt(t, path); page.Head.Published != commits.Load() || commits.Load() == 0 {
		t.Errorf("%d updates published, %d made, %d refused", page.Head.Published, commits.Load(),
			refused.Load())
	}
}

// TestLiveEnd: the page is off, says so, and is removed if it is to be.
func TestLiveEnd(t *testing.T) {
	for _, c := range []struct{ exited, unlink bool }{{true, false}, {false, false}, {true, true},
		{false, true}} {
		path := newLive(t)
		r := LiveBegin(1) // an update that the end finds under way
		LiveEnd(c.exited, c.unlink)
		r.Pid = 1
		LiveCommit(2)
		if LiveOn() || LiveDue(math.MaxUint64-1) || LiveBegin(3) != nil {
			t.Error("the page is still on")
		}
		if _, err := os.Stat(path); os.IsNotExist(err) != c.unlink {
			t.Errorf("%+v: %v", c, err)
		}
		if c.unlink {
			continue
		}
		want := uint64(LiveRunning)
		if c.exited {
			want = LiveExited
		}
		if h := pageAt(t, path).Head; h.State != want || h.Published != 1 {
			t.Errorf("%+v: state %d, %d updates", c, h.State, h.Published)
		}
	}
}

// TestLiveEndLeavesOthers: a file that took the place of the page is not removed.
func TestLiveEndLeavesOthers(t *testing.T) {
	path := newLive(t)
	if err := os.Rename(path, path+".old"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	LiveEnd(true, true)
	testlib.OnlyFiles(t, filepath.Dir(path), "page", "page.old")
}

// TestLiveOtherProcess: in a process that has the page and did not open it, nothing
// happens to it.
func TestLiveOtherProcess(t *testing.T) {
	path := newLive(t)
	live.pid++
	if LiveBegin(1) != nil {
		t.Error("a child may update its parent's page")
	}
	LiveEnd(true, true)
	live.pid--
	if !LiveOn() || pageAt(t, path).Head.State != LiveRunning {
		t.Error("a child ended its parent's page")
	}
	if LiveBegin(1) == nil {
		t.Error("a child's attempt keeps its parent from updates")
	}
}

// TestLiveForkedMidway: the interrupted update goes on in the child, where it reaches
// neither the parent's page nor the child's own.
func TestLiveForkedMidway(t *testing.T) {
	path := newLive(t)
	LiveBegin(1).Pid = 1
	LiveCommit(1)
	r := LiveBegin(2)
	r.Pid = 2
	before := pageAt(t, path)
	LiveForked()
	if LiveOn() || LiveBegin(3) != nil {
		t.Fatal("the child has a page")
	}
	own := filepath.Join(t.TempDir(), "own")
	if errno := openLive(own); errno != 0 {
		t.Fatal(errno)
	}
	r.Pid = 3
	LiveCommit(3)
	LiveEnd(true, false)
	if after := pageAt(t, path); after.Head != before.Head || after.Buffers != before.Buffers {
		t.Error("the child changed its parent's page")
	}
	if h := pageAt(t, own).Head; h.Published != 0 || h.State != LiveExited {
		t.Errorf("the child published %d updates of its parent", h.Published)
	}
}
