package group

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
)

// A worker is another process, which joins a group and does what it is told.
type worker struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	said string // what it said when it had joined
}

const roleVariable = "TIERALLOC_GROUP_TEST"

func TestMain(m *testing.M) {
	switch role := os.Getenv(roleVariable); role {
	case "":
		os.Exit(m.Run())
	case "storm":
		storm()
	default:
		obey()
	}
}

// obey joins the group that the arguments tell and does what the lines of standard input say.
func obey() {
	var soft, hard, floor uint64
	fmt.Sscan(os.Args[2], &soft)
	fmt.Sscan(os.Args[3], &hard)
	fmt.Sscan(os.Args[4], &floor)
	if errno := joinAt(os.Args[1], soft, hard, floor); errno != 0 {
		fmt.Println(errno)
		return
	}
	soft, hard = Agreed().Caps[0].Soft, Agreed().Caps[0].Hard
	fmt.Println("slot", self.slot, "caps", soft, hard, "floor", HasFloor())
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var verb string
		var n uintptr
		fmt.Sscan(lines.Text(), &verb, &n)
		switch verb {
		case "charge":
			fmt.Println(Charge(0, n))
		case "release":
			Release(0, n)
			fmt.Println("ok")
		case "used":
			fmt.Println(Used(0))
		case "room":
			fmt.Println(Room(0))
		case "granted":
			fmt.Println(self.page.share(self.slot, 0).Granted())
		}
	}
}

// joinAt joins with caps of account 0.
func joinAt(path string, soft, hard, floor uint64) syscall.Errno {
	want := Wish{Floor: floor, Program: raw.Bytes("group.test\x00")}
	for i := range want.Caps {
		want.Caps[i] = Cap{Uncapped, Uncapped}
	}
	want.Caps[0] = Cap{soft, hard}
	return syscall.Errno(Join(raw.Bytes(strings.Clone(path+"\x00")), &want))
}

// self-exec
func role(t *testing.T, role string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stderr = os.Stderr
	return cmd
}

// start starts a worker.
func start(t *testing.T, path string, soft, hard, floor uint64) *worker {
	t.Helper()
	w := &worker{t: t, cmd: role(t, "worker", path, fmt.Sprint(soft), fmt.Sprint(hard),
		fmt.Sprint(floor))}
	w.in, _ = w.cmd.StdinPipe()
	out, _ := w.cmd.StdoutPipe()
	w.out = bufio.NewReader(out)
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.kill)
	w.said = w.line()
	return w
}

func (w *worker) line() string {
	text, _ := w.out.ReadString('\n')
	return strings.TrimSpace(text)
}

// do has the worker do something and returns its answer.
func (w *worker) do(format string, args ...any) string {
	fmt.Fprintf(w.in, format+"\n", args...)
	return w.line()
}

// want has the worker do something, which must have this answer.
func (w *worker) want(answer, format string, args ...any) {
	w.t.Helper()
	if got := w.do(format, args...); got != answer {
		w.t.Errorf("%s: %q, not %q", fmt.Sprintf(format, args...), got, answer)
	}
}

// kill ends the worker by SIGKILL.
func (w *worker) kill() {
	w.cmd.Process.Kill()
	w.cmd.Wait()
}

// pageAt maps the page of the group at path.
func pageAt(t *testing.T, path string) *Page {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := syscall.Mmap(int(f.Fd()), 0, int(Size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Munmap(data) })
	return (*Page)(unsafe.Pointer(unsafe.SliceData(data)))
}
