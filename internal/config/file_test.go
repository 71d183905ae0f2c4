package config

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tieralloc/internal/raw"
	"tieralloc/internal/testlib"
)

// readBack is what ReadFile makes of the file at path and of an environment.
func readBack(t *testing.T, path string, env []string, secure bool) ([]string, FileFlaw) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	e := newEnviron(t, env)
	defer e.clobber()
	m := ReadFile(uintptr(fd), e.addr(), secure)
	defer m.Drop()
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != unix.EBADF {
		t.Errorf("the file is still open: %v", err)
	}
	var list []string
	for at := m.Envp; at != 0 && raw.Load(at) != 0; at += 8 {
		var text []byte
		for p := raw.Load(at); raw.LoadByte(p) != 0; p++ {
			text = append(text, raw.LoadByte(p))
		}
		list = append(list, string(text))
	}
	return list, m.Flaw
}

func rootOnly(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		testlib.Lacks(t, "root's files")
	}
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conf")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFile(t *testing.T) {
	rootOnly(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"\n\n \n", nil},
		{"TA_LOG=info", []string{"TA_LOG=info"}},
		{"# TA_LOG=info\n\t# more\r\nTA_A=1\r\n", []string{"TA_A=1"}},
		{" TA_A = 1 \n\tTA_B=2 # no comment", []string{"TA_A=1", "TA_B=2 # no comment"}},
		{"TA_A='a b; c:d'\nTA_B=\" x \"\nTA_C='\nTA_D=\"x'\nTA_E=''",
			[]string{"TA_A=a b; c:d", "TA_B= x ", "TA_C='", "TA_D=\"x'", "TA_E="}},
		{"no setting\nTA_A=b=c\n=x\nTA_A=2", []string{"no setting", "TA_A=b=c", "=x", "TA_A=2"}},
	} {
		got, flaw := readBack(t, fileOf(t, c.text), []string{"X=1", "TA_B=0"}, false)
		if want := append([]string{"X=1", "TA_B=0"}, c.want...); !slices.Equal(got, want) ||
			flaw != FileGood {
			t.Errorf("%q: %q, %d", c.text, got, flaw)
		}
	}
	got, _ := readBack(t,
		fileOf(t, "TA_LOG=info\nTA_ONLY=sh\nTA_STATS_FILE=/x\nTA_DISABLE=1\nPATH=/"),
		nil, true)
	if !slices.Equal(got, []string{"TA_ONLY=sh", "TA_DISABLE=1"}) {
		t.Errorf("in a program with more rights: %q", got)
	}
}

// TestFileFull: the shortest lines there can be fill the vector, and nothing is lost.
func TestFileFull(t *testing.T) {
	rootOnly(t)
	for _, text := range []string{strings.Repeat("=\n", FileMax/2),
		strings.Repeat("a\n", FileMax/2-1) + "aa",
		strings.Repeat("\n", FileMax), "TA_LOG=" + strings.Repeat("x", FileMax-7)} {
		got, flaw := readBack(t, fileOf(t, text), nil, false)
		if flaw != FileGood || !slices.Equal(got, strings.FieldsFunc(text,
			func(c rune) bool { return c == '\n' })) {
			t.Errorf("%.10s…: %d entries, %d", text, len(got), flaw)
		}
	}
}

// TestFileFlaws: what another than root could have written, or what is no text, is passed over.
func TestFileFlaws(t *testing.T) {
	rootOnly(t)
	const text = "TA_LOG=info\n"
	change := func(with func(path string) error) string {
		path := fileOf(t, text)
		if err := with(path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mode := func(mode os.FileMode) string {
		return change(func(path string) error { return os.Chmod(path, mode) })
	}
	for _, c := range []struct {
		what, path string
		want       FileFlaw
	}{
		{"a good file", mode(0o600), FileGood},
		{"a link to one", change(func(path string) error {
			return errors.Join(os.Rename(path, path+"2"), os.Symlink(path+"2", path))
		}), FileGood},
		{"a folder", t.TempDir(), FileNotRegular},
		{"a fifo", change(func(path string) error {
			return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o644))
		}), FileNotRegular},
		{"a device", "/dev/zero", FileNotRegular},
		{"another's", change(func(path string) error { return os.Chown(path, 1, 0) }), FileOwner},
		{"all may write", mode(0o646), FileWritable},
		{"the group may write", mode(0o664), FileWritable},
		{"too long", fileOf(t, strings.Repeat("#", FileMax+1)), FileTooBig},
		{"10 MB", fileOf(t, strings.Repeat("TA_LOG=info\n", 1<<20)), FileTooBig},
		{"a zero byte", fileOf(t, "TA_LOG=info\nTA_\x00=1\n"), FileNotText},
		{"an endless one without a size", "/proc/kallsyms", FileTooBig},
	} {
		got, flaw := readBack(t, c.path, []string{"A=1"}, false)
		if flaw != c.want || (flaw == FileGood) != (len(got) == 2) {
			t.Errorf("%s: %d, %q", c.what, flaw, got)
		}
	}
}
