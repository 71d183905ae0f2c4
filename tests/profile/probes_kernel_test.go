package profile

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"tieralloc/internal/testlib"
)

// kernelTracer attaches to probes as bpftrace and perf do: the kernel puts breakpoints into the
// file and counts in the semaphores.
type kernelTracer struct {
	ring   []byte
	places map[uint64]string // the probes by their place in a memory page
	fds    []int
}

const pageMask = 4095

// attach attaches to the library in a process. With semaphores false the kernel does not raise
// them.
func attach(t *testing.T, pid int, semaphores bool) *kernelTracer {
	t.Helper()
	const events = "/sys/bus/event_source/devices/uprobe/"
	kind, err := os.ReadFile(events + "type")
	if err == nil {
		_, err = os.Stat(events + "format/ref_ctr_offset")
	}
	if err != nil {
		t.Skipf("the kernel does not attach to probes with semaphores: %v", err)
	}
	number, err := strconv.Atoi(strings.TrimSpace(string(kind)))
	if err != nil {
		t.Fatal(err)
	}
	f, list := openLibrary(t, testlib.Lib(t))
	file, err := unix.BytePtrFromString(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	k := &kernelTracer{places: map[uint64]string{}}
	t.Cleanup(k.detach)
	for name, p := range list {
		place, err := inFile(f, p.place, elf.PF_R|elf.PF_X)
		if err != nil {
			t.Fatal(err)
		}
		semaphore, err := inFile(f, p.semaphore, elf.PF_R|elf.PF_W)
		if err != nil {
			t.Fatal(err)
		}
		a := unix.PerfEventAttr{Type: uint32(number), Sample: 1,
			Sample_type: unix.PERF_SAMPLE_IP | unix.PERF_SAMPLE_REGS_USER,
			Ext1:        uint64(uintptr(unsafe.Pointer(file))), Ext2: place,
			Sample_regs_user: 7} // RAX, RBX and RCX
		a.Size = uint32(unsafe.Sizeof(a))
		if semaphores {
			a.Config = semaphore << 32
		}
		fd, err := unix.PerfEventOpen(&a, pid, -1, -1, unix.PERF_FLAG_FD_CLOEXEC)
		runtime.KeepAlive(file)
		if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSYS) {
			t.Skipf("the kernel does not let this process attach to probes: %v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		k.fds = append(k.fds, fd)
		k.places[p.place&pageMask] = name
	}
	// Both write to one ring, so that their order is known.
	if k.ring, err = unix.Mmap(k.fds[0], 0, (1+256)<<12, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetInt(k.fds[1], unix.PERF_EVENT_IOC_SET_OUTPUT, k.fds[0]); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kernelTracer) detach() {
	for _, fd := range k.fds {
		unix.Close(fd)
	}
	k.fds = nil
	if k.ring != nil {
		unix.Munmap(k.ring)
		k.ring = nil
	}
}

// hits returns what is in the ring. Precondition: the process does not run, and the ring was large
// enough.
func (k *kernelTracer) hits(t *testing.T) (list []hit) {
	t.Helper()
	head := (*unix.PerfEventMmapPage)(unsafe.Pointer(&k.ring[0])).Data_head
	data, word := k.ring[1<<12:], binary.LittleEndian
	if head > uint64(len(data)) {
		t.Fatalf("the ring has %d bytes, %d were written", len(data), head)
	}
	for data = data[:head]; len(data) > 0; data = data[word.Uint16(data[6:]):] {
		if kind := word.Uint32(data); kind != unix.PERF_RECORD_SAMPLE {
			if kind == unix.PERF_RECORD_LOST {
				t.Fatal("the kernel has lost hits")
			}
			continue
		}
		h := hit{probe: k.places[word.Uint64(data[8:])&pageMask], addr: word.Uint64(data[24:])}
		if h.probe == "alloc" {
			h.size, h.weighted = word.Uint64(data[32:]), word.Uint64(data[40:])
		}
		list = append(list, h)
	}
	return list
}

// traced is a program that runs with a profile and waits for a byte before each round.
type traced struct {
	*exec.Cmd
	in        io.WriteCloser
	out       io.Reader
	file, log string
}

// startTraced starts the program, and calls attach before the program's file is mapped.
func startTraced(t *testing.T, rounds int, attach func(pid int)) *traced {
	t.Helper()
	runtime.LockOSThread() // the thread that traces the program lets it go
	defer runtime.UnlockOSThread()
	dir := t.TempDir()
	p := &traced{file: filepath.Join(dir, "heap.pb"), log: filepath.Join(dir, "steps")}
	p.Cmd = exec.Command(testlib.CC(t, "probes.c"), p.log, fmt.Sprint(rounds))
	p.Env = append(os.Environ(), "LD_PRELOAD="+testlib.Lib(t), "TA_PROFILE="+p.file,
		fmt.Sprint("TA_PROFILE_RATE=", probeRate))
	p.Stderr = os.Stderr
	p.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Pdeathsig: syscall.SIGKILL}
	var err error
	if p.in, err = p.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if p.out, err = p.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Skipf("the program cannot be traced: %v", err)
	}
	pid := p.Process.Pid
	t.Cleanup(func() {
		if p.ProcessState == nil {
			p.Process.Kill()
			p.Wait()
		}
	})
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil || !status.Stopped() {
		t.Fatalf("the program did not stop at its start: %v", err)
	}
	attach(pid)
	if err := syscall.PtraceDetach(pid); err != nil {
		t.Fatal(err)
	}
	return p
}

// round lets the program run for a round.
func (p *traced) round(t *testing.T) {
	t.Helper()
	var c [1]byte
	if _, err := p.in.Write(c[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(p.out, c[:]); err != nil {
		t.Fatal(err)
	}
}

// semaphores reads the semaphores of both probes in the process.
func (p *traced) semaphores(t *testing.T) (alloc, free uint16) {
	t.Helper()
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	var start, end, offset uint64
	for line := range strings.Lines(string(maps)) {
		var access string
		fmt.Sscanf(line, "%x-%x %s %x", &start, &end, &access, &offset)
		if offset == 0 && strings.HasSuffix(strings.TrimSpace(line), testlib.Lib(t)) {
			break
		}
	}
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	_, list := openLibrary(t, testlib.Lib(t))
	value := func(name string) uint16 {
		var b [2]byte
		if _, err := memory.ReadAt(b[:], int64(start+list[name].semaphore)); err != nil {
			t.Fatal(err)
		}
		return binary.LittleEndian.Uint16(b[:])
	}
	return value("alloc"), value("free")
}

func (p *traced) end(t *testing.T) {
	t.Helper()
	if err := testlib.End(p.Cmd); err != nil {
		t.Fatal(err)
	}
}

// TestProbesKernel: the kernel, attached before the library is mapped, sees what the profile has.
func TestProbesKernel(t *testing.T) {
	var k *kernelTracer
	p := startTraced(t, 1, func(pid int) { k = attach(t, pid, true) })
	p.round(t)
	p.end(t)
	hits := k.hits(t)
	compare(t, hits, readSteps(t, p.log))
	compareProfile(t, hits, read(t, p.file))
}

// TestProbesLate: a tracer attaches to a process that runs, and detaches. The semaphores tell.
func TestProbesLate(t *testing.T) {
	p := startTraced(t, 3, func(int) {})
	check := func(when string, want uint16) {
		t.Helper()
		if a, f := p.semaphores(t); a != want || f != want {
			t.Errorf("%s the semaphores are %d and %d", when, a, f)
		}
	}
	p.round(t)
	check("before a tracer attaches", 0)
	k := attach(t, p.Process.Pid, true)
	check("with a tracer", 1)
	p.round(t)
	if n := len(k.hits(t)); n < 200 {
		t.Errorf("%d hits", n)
	}
	k.detach()
	check("after a tracer has detached", 0)
	p.round(t)
	p.end(t)
}

// TestProbesUnwanted: with the semaphores at 0 the library passes no probe.
func TestProbesUnwanted(t *testing.T) {
	var k *kernelTracer
	p := startTraced(t, 1, func(pid int) { k = attach(t, pid, false) })
	p.round(t)
	p.end(t)
	if hits := k.hits(t); len(hits) > 0 {
		t.Errorf("%d hits, the first %+v", len(hits), hits[0])
	}
	if profile := read(t, p.file); profile.comment(t, "samples") < 200 {
		t.Errorf("the profile has few samples: %q", profile.Comments)
	}
}
