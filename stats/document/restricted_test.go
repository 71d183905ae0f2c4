package document

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/testlib"
	"tieralloc/stats"
)

// restricted are states of a process that a test cannot enter without spoiling the tests after it.
// Each function brings its process there and returns the error that a write to s.json in the
// directory dir must then give. live is the error of making s.json a live page before. left names
// the files that are there in the end.
var restricted = map[string]struct {
	enter func(dir string) (want, err error)
	live  syscall.Errno
	left  string
}{
	"unprivileged": {unprivileged, syscall.EACCES, ""},
	"sticky":       {sticky, syscall.EEXIST, "s.json"},
	"small files":  {smallFiles, syscall.EFBIG, ""},
	"closed":       {closed, 0, "s.json"},
}

// TestWriteRestricted runs the test binary again for each state.
func TestWriteRestricted(t *testing.T) {
	for name, state := range restricted {
		if name == "sticky" && os.Getuid() != 0 {
			continue // takes a second user
		}
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0], "-test.run=^TestHelper$")
		cmd.Env = append(os.Environ(), "TA_TEST_HELPER="+name, "TA_TEST_DIR="+dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		testlib.OnlyFiles(t, dir, strings.Fields(state.left)...)
	}
}

// TestHelper is the other process of TestWriteRestricted.
func TestHelper(t *testing.T) {
	dir := os.Getenv("TA_TEST_DIR")
	if dir == "" {
		return // the other process of a test, not one of its own
	}
	r := newReport(t)
	state := restricted[os.Getenv("TA_TEST_HELPER")]
	want, err := state.enter(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.json")
	live := syscall.Errno(stats.LiveOpen(raw.Bytes(path), uintptr(len(path)), uint64(os.Getpid()),
		12345, raw.Bytes(path), 1, false))
	if live != state.live {
		fmt.Printf("live: %v, not %v\n", live, state.live)
		os.Exit(1)
	}
	stats.LiveEnd(true, true)
	got := write(path, r)
	if err := limitFiles(math.MaxUint64); err != nil { // for the coverage data at exit
		t.Fatal(err)
	}
	if got != want {
		fmt.Printf("%v, not %v\n", got, want) // standard error may be closed
		os.Exit(1)
	}
	if want == nil {
		wantFile(t, path, r)
	}
}

// becomeNobody gives up root's rights; without them it does nothing.
func becomeNobody(dir string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(os.Chmod(filepath.Dir(dir), 0o755), syscall.Setgroups(nil),
		syscall.Setgid(65534), syscall.Setuid(65534))
}

// unprivileged: the directory cannot be written to.
func unprivileged(dir string) (want, err error) {
	return syscall.EACCES, errors.Join(os.Chmod(dir, 0o555), becomeNobody(dir))
}

// sticky: a new file can be made there, but not renamed over another user's. This is the failure
// that leaves a temporary file to clean up.
func sticky(dir string) (want, err error) {
	return syscall.EPERM, errors.Join(os.WriteFile(filepath.Join(dir, "s.json"), nil, 0o600),
		os.Chmod(dir, 0o777|os.ModeSticky), becomeNobody(dir))
}

// smallFiles: a write past the limit would end the process, as it ends a program that is not
// written in Go.
func smallFiles(string) (want, err error) {
	var act [4]uintptr // struct kernel_sigaction, all zero: SIG_DFL
	_, errno := raw.Sys(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGXFSZ),
		uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	if errno != 0 {
		return nil, syscall.Errno(errno)
	}
	return syscall.EFBIG, limitFiles(100)
}

// limitFiles sets the size that files may grow to, up to what it may be set to.
func limitFiles(n uint64) error {
	const rlimitFsize = 1
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(rlimitFsize, &limit); err != nil {
		return err
	}
	limit.Cur = min(n, limit.Max)
	return syscall.Setrlimit(rlimitFsize, &limit)
}

// closed: the next descriptors are 0 and 2, which the report must not get.
func closed(dir string) (want, err error) {
	if err := errors.Join(syscall.Close(0), syscall.Close(2)); err != nil {
		return nil, err
	}
	temp := make([]byte, pathRoom)
	folder, errno := raw.OpenFolder(raw.Bytes(dir), uintptr(len(dir)))
	if errno != 0 {
		return nil, syscall.Errno(errno)
	}
	fd, errno := createTemp(folder, raw.Bytes("s.json\x00"), uintptr(unsafe.Pointer(&temp[0])))
	if fd < 3 || errno != 0 {
		return nil, fmt.Errorf("descriptor %d, errno %d", fd, errno)
	}
	made, _, _ := bytes.Cut(temp, []byte{0})
	return nil, os.Remove(filepath.Join(dir, string(made)))
}
