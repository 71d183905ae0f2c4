package document

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/internal/testlib"
	"tieralloc/stats"
)

// write calls WriteFile from ordinary Go.
func write(path string, r *stats.Report) error {
	if errno := WriteFile(raw.Bytes(path), uintptr(len(path)), r, nil); errno != 0 {
		return syscall.Errno(errno)
	}
	return nil
}

func wantFile(t *testing.T, path string, r *stats.Report) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != 0o600 {
		t.Errorf("%s has mode %v", path, info.Mode())
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, text(t, r)) {
		t.Errorf("%s: %v\n%s", path, err, got)
	}
}

func TestWriteFile(t *testing.T) {
	r := fullReport(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	// none there; over one; over a read-only one
	for _, mode := range []os.FileMode{0, 0o644, 0o444} {
		if mode != 0 {
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(path, r); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, r)
		testlib.OnlyFiles(t, dir, "s.json")
	}
}

// TestWriteRelative writes into the working directory by a name without a slash.
func TestWriteRelative(t *testing.T) {
	r := newReport(t)
	t.Chdir(t.TempDir())
	if err := write("s", r); err != nil {
		t.Fatal(err)
	}
	wantFile(t, "s", r)
	testlib.OnlyFiles(t, ".", "s")
}

// TestWriteSymlink shows that a link is replaced and what it names is not touched.
func TestWriteSymlink(t *testing.T) {
	r := newReport(t)
	for _, target := range []string{"victim", "nowhere", "s.json", testlib.Null(t)} {
		dir, path := t.TempDir(), ""
		path = filepath.Join(dir, "s.json")
		victim := filepath.Join(dir, "victim")
		if err := errors.Join(os.WriteFile(victim, []byte("v"), 0o600),
			os.Symlink(target, path)); err != nil {
			t.Fatal(err)
		}
		if err := write(path, r); err != nil {
			t.Fatalf("link to %s: %v", target, err)
		}
		wantFile(t, path, r)
		if got, _ := os.ReadFile(victim); string(got) != "v" {
			t.Errorf("link to %s: the victim holds %q", target, got)
		}
		testlib.OnlyFiles(t, dir, "s.json", "victim")
	}
}

// TestWriteRefused has the targets that cannot or must not be replaced.
func TestWriteRefused(t *testing.T) {
	r := newReport(t)
	dir, null := t.TempDir(), testlib.Null(t)
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := errors.Join(os.Mkdir(in("dir"), 0o700), syscall.Mkfifo(in("fifo"), 0o600),
		os.Symlink("dir", in("link")), os.WriteFile(in("file"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		want syscall.Errno
	}{
		{"", syscall.ENOENT},
		{in("dir"), syscall.EISDIR},
		{in("dir") + "/", syscall.EISDIR},
		{in("link") + "/", syscall.EISDIR},
		{".", syscall.EISDIR},
		{"/", syscall.EISDIR},
		{in("fifo"), syscall.EINVAL},
		{null, syscall.EINVAL},
		{"/proc/self/mem/x", syscall.ENOTDIR},
		{"/proc/none", syscall.ENOENT},
		{in("none/s"), syscall.ENOENT},
		{in("none") + "/", syscall.ENOENT},
		{in("file/s"), syscall.ENOTDIR},
		{in("a\x00b"), syscall.EINVAL},
		{in(strings.Repeat("x", 256)), syscall.ENAMETOOLONG},
		{in(strings.Repeat("x/", 2000)) + "y", syscall.ENAMETOOLONG},
	} {
		if err := write(c.path, r); !errors.Is(err, c.want) {
			t.Errorf("%.60q: %v, not %v", c.path, err, c.want)
		}
	}
	testlib.OnlyFiles(t, dir, "dir", "fifo", "file", "link")
	testlib.OnlyFiles(t, in("dir"))
	if info, err := os.Lstat(null); err != nil || info.Mode()&os.ModeCharDevice == 0 {
		t.Fatalf("%s: %v %v", null, info, err)
	}
}

// TestWriteLongNames has the longest last part and the longest path there are.
func TestWriteLongNames(t *testing.T) {
	r := newReport(t)
	dir := t.TempDir()
	name := strings.Repeat("é", 127) + "x"
	if err := write(filepath.Join(dir, name), r); err != nil {
		t.Error(err)
	}
	wantFile(t, filepath.Join(dir, name), r)
	testlib.OnlyFiles(t, dir, name)

	path := dir + strings.Repeat("/.", (config.PathMax-len(dir)-2)/2) + "/"
	path += strings.Repeat("y", config.PathMax-len(path))
	if err := write(path, r); err != nil || len(path) != config.PathMax {
		t.Errorf("a path of %d bytes: %v", len(path), err)
	}
	if err := write(path+"y", r); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("a path of %d bytes: %v", len(path)+1, err)
	}
}

// TestWriteAtOnce lets threads and readers meet: a reader sees only whole reports,
// and no temporary file stays.
func TestWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	var reports [4]*stats.Report
	whole := map[string]bool{}
	for i := range reports {
		reports[i] = newReport(t)
		setProgram(reports[i], strings.Repeat("p", i*50))
		whole[string(text(t, reports[i]))] = true
	}
	if err := write(path, reports[0]); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for _, r := range reports {
		writers.Go(func() {
			for range 100 {
				if err := write(path, r); err != nil {
					t.Error(err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { writers.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if got, err := os.ReadFile(path); err != nil || !whole[string(got)] {
			t.Fatalf("%v\n%s", err, got)
		}
	}
	testlib.OnlyFiles(t, dir, "s.json")
}
