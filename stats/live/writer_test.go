package live

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// The tests run their own binary again as the process that writes a page. It prints a
// line when the page is there, and ends when its standard input does.
const (
	modeVar = "TA_TEST_MODE"
	pathVar = "TA_TEST_PATH"
)

var modes = map[string]func(path string){
	"idle":    idle,
	"exit":    exit,
	"numbers": numbers,
	"exec":    replaced,
	"leader":  leader,
	"fork":    forks,
}

func init() {
	if os.Getenv(modeVar) == "leader" {
		runtime.LockOSThread() // main then runs on the process's first thread
	}
}

func TestMain(m *testing.M) {
	if mode, ok := modes[os.Getenv(modeVar)]; ok {
		mode(os.Getenv(pathVar))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// writer is a process with a live page.
type writer struct {
	cmd    *exec.Cmd
	stdin  io.Closer
	stdout *bufio.Reader
	path   string
}

// start runs a mode until it has said that its page is there.
func start(t *testing.T, mode string) *writer {
	t.Helper()
	w := &writer{path: filepath.Join(t.TempDir(), "tieralloc."+mode)}
	w.cmd = exec.Command(os.Args[0])
	w.cmd.Env = append(os.Environ(), modeVar+"="+mode, pathVar+"="+w.path)
	w.cmd.Stderr = os.Stderr
	stdin, err1 := w.cmd.StdinPipe()
	stdout, err2 := w.cmd.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	w.stdin, w.stdout = stdin, bufio.NewReader(stdout)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.kill() })
	w.line(t)
	return w
}

// line is the next that the process prints.
func (w *writer) line(t *testing.T) string {
	t.Helper()
	s, err := w.stdout.ReadString('\n')
	if err != nil {
		t.Fatalf("the writer ended: %v", err)
	}
	return s
}

// kill ends the process by a signal and waits for it.
func (w *writer) kill() {
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
}

// open opens the process's page.
func (w *writer) open(t *testing.T) *Page {
	t.Helper()
	p, err := Open(w.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

func snapshot(t *testing.T, p *Page) *Snapshot {
	t.Helper()
	s, err := p.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const testStart = 1_000_000_007

func openPage(path string) {
	const program = "writer"
	errno := stats.LiveOpen(raw.Bytes(path), uintptr(len(path)), uint64(raw.Pid()), testStart,
		raw.Bytes(program), uintptr(len(program)), false)
	if errno != 0 {
		fmt.Println("no page:", syscall.Errno(errno))
		os.Exit(1)
	}
}

// setWords gives every word of a report the same number.
func setWords(r *stats.Report, v uint64) {
	for i := range figureWords(&r.Figures) {
		figureWords(&r.Figures)[i] = v
	}
}

func figureWords(f *stats.Figures) []uint64 {
	return unsafe.Slice((*uint64)(unsafe.Pointer(f)), unsafe.Sizeof(*f)/8)
}

// update publishes a report of one number.
func update(v uint64) {
	if r := stats.LiveBegin(1); r != nil {
		setWords(r, v)
		stats.LiveCommit(1)
	}
}

// hold says that the page is there and waits for the end.
func hold() {
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

func idle(path string) {
	openPage(path)
	update(1)
	hold()
}

func exit(path string) {
	idle(path)
	update(2)
	stats.LiveEnd(true, false)
}

// replaced becomes another program, with its number and start, that has no page.
func replaced(path string) {
	idle(path)
	_ = syscall.Exec("/bin/sleep", []string{"sleep", "60"}, nil)
}

// leader ends its first thread; the others go on.
func leader(path string) {
	openPage(path)
	update(1)
	go hold()
	for { // returns only on an error
		_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
	}
}

// numbers updates the page again and again, slowly enough that most of the time it is in
// the midst of it.
func numbers(path string) {
	openPage(path)
	update(1)
	fmt.Println("ready")
	for n := uint64(2); ; n++ {
		r := stats.LiveBegin(n)
		for i := range figureWords(&r.Figures) {
			figureWords(&r.Figures)[i] = n
			for range 50 {
				raw.Load(uintptr(unsafe.Pointer(&pause)))
			}
		}
		stats.LiveCommit(n)
	}
}

var pause uintptr

// forks has a child with a page of its own, at path.child, and prints its number.
func forks(path string) {
	openPage(path)
	update(1)
	own := path + ".child"
	growStack()
	pid, _, errno := syscall.RawSyscall(syscall.SYS_FORK, 0, 0, 0)
	if pid == 0 {
		forked(own)
	}
	if errno != 0 {
		fmt.Println("no child:", errno)
		os.Exit(1)
	}
	for _, err := os.Stat(own + ".done"); err != nil; _, err = os.Stat(own + ".done") {
		time.Sleep(time.Millisecond)
	}
	update(2)
	fmt.Println(pid)
	hold()
	_ = syscall.Kill(int(pid), syscall.SIGKILL)
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(int(pid), &status, 0, nil)
	fmt.Println("reaped")
	select {}
}

// forked runs in the child, where there is no Go runtime any more: it may call only what
// is made for that.
func forked(own string) {
	update(100) // must be refused: the page is the parent's
	stats.LiveEnd(true, true)
	stats.LiveForked()
	openPage(own)
	update(101)
	done := [...]byte{'.', 'd', 'o', 'n', 'e', 0}
	var name [4096]byte
	n := copy(name[:], own)
	copy(name[n:], done[:])
	raw.Sys(syscall.SYS_MKNOD, uintptr(unsafe.Pointer(&name)), syscall.S_IFREG|0o600, 0, 0, 0, 0)
	for {
		raw.Sys(syscall.SYS_PAUSE, 0, 0, 0, 0, 0, 0)
	}
}

// growStack makes room on the stack that the child cannot get any more.
//
//go:noinline
func growStack() {
	var room [64 << 10]byte
	for i := range room {
		room[i] = byte(i)
	}
	runtime.KeepAlive(&room)
}
