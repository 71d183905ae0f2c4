package live

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/testlib"
	"tieralloc/stats"
)

// headAt changes words of a page's header by their offset.
type headAt map[uintptr]uint64

var (
	versionAt = unsafe.Offsetof(stats.LiveHeader{}.Version)
	sizeAt    = unsafe.Offsetof(stats.LiveHeader{}.Size)
	pidAt     = unsafe.Offsetof(stats.LiveHeader{}.Pid)
	nameAt    = unsafe.Offsetof(stats.LiveHeader{}.ProgramLen)
)

// copyOf writes a changed copy of the page to a new file.
func copyOf(t *testing.T, path string, change headAt, size int) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at, v := range change {
		copy(text[at:], words(&v))
	}
	if size > len(text) {
		text = append(text, make([]byte, size-len(text))...)
	}
	out := filepath.Join(t.TempDir(), "copy")
	if err := os.WriteFile(out, text[:size], 0o600); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestOpenRefuses has damaged pages, and pages of others.
func TestOpenRefuses(t *testing.T) {
	path, _ := ownPage(t)
	for _, c := range []struct {
		change headAt
		size   int
		want   string
	}{
		{headAt{}, whole, ""},
		{headAt{}, whole - 1, fmt.Sprintf("damaged live page: %d bytes", whole-1)},
		{headAt{}, whole + 1, fmt.Sprintf("damaged live page: %d bytes", whole+1)},
		{headAt{}, 24, "damaged live page: 24 bytes"},
		{headAt{}, 23, "not a live page"},
		{headAt{}, 0, "not a live page"},
		{headAt{0: 0}, whole, "not a live page"},
		{headAt{sizeAt: 4096}, whole, "damaged live page: "},
		{headAt{sizeAt: 64}, 64, "cut short"},
		{headAt{versionAt: 9, pidAt: 0}, whole, "no process"},
		{headAt{pidAt: 0}, whole, "no process"},
		{headAt{pidAt: 1 << 31}, whole, "no process"},
		{headAt{pidAt: 1<<64 - 1}, whole, "no process"},
		{headAt{nameAt: 256}, whole, ""},
		{headAt{nameAt: 257}, whole, "no process"},
		{headAt{nameAt: 1 << 63}, whole, "no process"},
	} {
		name := copyOf(t, path, c.change, c.size)
		p, err := Open(name)
		if err == nil {
			p.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, %d bytes: %v, not %q", c.change, c.size, err, c.want)
		}
		if err != nil && !strings.HasPrefix(err.Error(), name+": ") {
			t.Errorf("the file is not named: %v", err)
		}
	}
}

// TestOtherVersion: the figures of another version's page cannot be read. It can be removed when
// its process has ended.
func TestOtherVersion(t *testing.T) {
	path, _ := ownPage(t)
	dir := t.TempDir()
	for _, c := range []struct {
		change headAt
		size   int
		want   string
	}{
		{headAt{versionAt: 0}, whole, "format 0x0 "},
		{headAt{versionAt: 1 << 60}, whole, "use the one that was built with the library"},
		{headAt{sizeAt: 4096}, 4096, "with 4096 bytes"},
	} {
		c.change[pidAt] = 1<<22 + 1
		if err := os.Rename(copyOf(t, path, c.change, c.size),
			filepath.Join(dir, "page")); err != nil {
			t.Fatal(err)
		}
		p, err := openFolder(t, dir).Open("page")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Snapshot(); !errors.Is(err, ErrVersion) ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, not %q", c.change, err, c.want)
		}
		if err := p.Remove(); err != nil {
			t.Error(err)
		}
		p.Close()
		testlib.OnlyFiles(t, dir)
	}
}

// TestOpenOthers opens what is no regular file.
func TestOpenOthers(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		dir: ErrNotPage, fifo: ErrNotPage, "/dev/zero": ErrNotPage, "/proc/self/maps": ErrNotPage,
		filepath.Join(dir, "none"): os.ErrNotExist,
	} {
		if _, err := Open(path); !errors.Is(err, want) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestCounters: which states of the two counters can be read.
func TestCounters(t *testing.T) {
	path, _ := ownPage(t)
	for _, c := range []struct {
		published, begun uint64
		want             string
	}{
		{1, 1, ""}, {1, 2, ""}, {0, 0, ""}, {0, 1, ""}, {2, 2, ""}, {1<<64 - 1, 1<<64 - 1, ""},
		{1, 3, "does not stay still"}, {5, 7, "does not stay still"},
		{0, 1<<64 - 1, "does not stay still"},
		{2, 1, "more updates were made"}, {1<<64 - 1, 0, "more updates were made"},
	} {
		p, err := Open(copyOf(t, path, headAt{publishedAt: c.published, begunAt: c.begun},
			int(stats.LiveSize)))
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		s, err := p.Snapshot()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
		if err == nil && s.Updates != c.published {
			t.Errorf("%+v: %d", c, s.Updates)
		}
	}
}

// TestCutShort: a page that is truncated while it is open is an error.
func TestCutShort(t *testing.T) {
	path, _ := ownPage(t)
	for _, size := range []int64{int64(bufferSize), 100, 0} {
		path := copyOf(t, path, nil, int(stats.LiveSize))
		p, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Snapshot(); err == nil || !strings.Contains(err.Error(), "cut short") {
			t.Errorf("%d bytes: %v", size, err)
		}
	}
}

// FuzzPage: whatever a file holds, reading it ends, with an error or with figures that
// can be written.
func FuzzPage(f *testing.F) {
	f.Add([]byte("tierlive"), uint32(0), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint32(nameAt), true)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, uint32(publishedAt), true)
	f.Add([]byte{0xff, 0xff}, uint32(buffersAt+bufferSize-264), true)
	f.Add([]byte{0xff, 0xff}, uint32(stats.LiveSize-1), false)
	f.Fuzz(func(t *testing.T, patch []byte, at uint32, whole bool) {
		var head stats.LiveHeader
		head.Magic, head.Version, head.Size = stats.LiveMagic, stats.LiveVersion,
			uint64(stats.LiveSize)
		head.Pid, head.State, head.Begun, head.Published = 1<<22+1, stats.LiveRunning, 1, 1
		text := make([]byte, stats.LiveSize)
		copy(text, words(&head))
		if n := copy(text[int(at)%len(text):], patch); !whole {
			text = text[:int(at)%len(text)+n]
		}
		path := filepath.Join(t.TempDir(), "page")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := Open(path)
		if err != nil {
			return
		}
		defer p.Close()
		s, err := p.Snapshot()
		if err != nil {
			return
		}
		if doc, err := s.JSON(); err != nil || len(doc) == 0 || len(s.Name()) > stats.NameSize ||
			s.Age() < 0 {
			t.Errorf("%d bytes, %v, %q", len(doc), err, s.Name())
		}
	})
}
