package faults

import (
	"debug/elf"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"tieralloc/internal/testlib"
)

// kind is a set of system calls and how the kernel may refuse them.
type kind struct {
	name   string
	calls  []uint64
	errnos []syscall.Errno
	// of reports whether a call with these arguments is one; nil: every one is.
	of func(args *[6]uint64) bool
	// late: of calls of mremap with a fixed target the kernel unmaps that before it fails.
	late bool
	seen atomic.Bool // by any test
	// never: there are none on a machine of one node, with any settings.
	never bool
}

// fault is a refusal: of the n-th call of its kind, counted over all threads and
// children, and with on set of all that follow. Without a kind none is refused.
type fault struct {
	kind  *kind
	errno syscall.Errno
	n     int
	on    bool
}

func (f fault) String() string {
	from := ""
	if f.kind == nil {
		return "no refusal"
	}
	if f.on {
		from = " on"
	}
	return fmt.Sprintf("%s: %v from call %d%s", f.kind.name, f.errno, f.n, from)
}

// outcome is how a traced program ended. Status is as testlib's, seen the number of calls of
// each kind that the library made.
type outcome struct {
	stdout, stderr string
	status         int
	seen           map[*kind]int
}

// callInfo is struct ptrace_syscall_info of Linux 5.3.
type callInfo struct {
	op     uint8
	_      [3]uint8
	arch   uint32
	ip, sp uint64
	nr     uint64 // at the beginning of a call
	args   [6]uint64
	_      [16]byte
}

const (
	getSyscallInfo = 0x420e
	infoEntry      = 1
	infoExit       = 2
	exitKill       = 0x100000 // PTRACE_O_EXITKILL
	stopOfCall     = 0x80     // PTRACE_O_TRACESYSGOOD adds it to SIGTRAP
	mremapFixed    = 2
	waitOwn        = 0x60000000 // __WALL | __WNOTHREAD: what this thread traces, of any sort
)

// code is where calls come from that may be refused: a part of a file, from the first address on
// that it is mapped to.
type code struct {
	file     string
	from, to uint64
}

// tracer follows a program, its threads and its children. Calls that the code makes
// are told from the others by the instruction pointer.
type tracer struct {
	fault
	leader   int
	known    map[int]bool
	refusing map[int]syscall.PtraceRegs // as they were when a call began that is refused
	code     code
	from, to uint64 // where it is in memory; 0 before it is loaded
	seen     map[*kind]int
}

// trace runs a program under the library with a refusal.
func trace(tb testing.TB, f fault, env []string, argv ...string) outcome {
	tb.Helper()
	env = slices.Concat(os.Environ(), env, []string{"LD_PRELOAD=" + testlib.Lib(tb)})
	return traceCode(tb, f, codeOf(tb, testlib.Lib(tb)), env, argv...)
}

// traceCode runs a program with a refusal of what the code asks for.
func traceCode(tb testing.TB, f fault, c code, env []string, argv ...string) outcome {
	tb.Helper()
	dir := tb.TempDir()
	var files [3]*os.File
	for i, name := range []string{os.DevNull, filepath.Join(dir, "out"),
		filepath.Join(dir, "err")} {
		var err error
		if files[i], err = os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0600); err != nil {
			tb.Fatal(err)
		}
		defer files[i].Close()
	}
	r := tracer{fault: f, code: c, known: map[int]bool{},
		refusing: map[int]syscall.PtraceRegs{}, seen: map[*kind]int{}}
	done := make(chan error)
	var status int
	go func() {
		runtime.LockOSThread() // ptrace knows threads
		defer runtime.UnlockOSThread()
		var err error
		status, err = r.run(argv, lastOfEach(env), files)
		done <- err
	}()
	if err := <-done; err != nil {
		tb.Fatalf("%q: %v", argv, err)
	}
	var text [2]string
	for i, file := range files[1:] {
		b, err := os.ReadFile(file.Name())
		if err != nil {
			tb.Fatal(err)
		}
		text[i] = string(b)
		os.Remove(file.Name())
	}
	return outcome{text[0], text[1], status, r.seen}
}

// lastOfEach leaves of several settings of a variable the last: a program sees the first.
func lastOfEach(env []string) (out []string) {
	seen := map[string]bool{}
	for _, v := range slices.Backward(env) {
		name, _, _ := strings.Cut(v, "=")
		if !seen[name] {
			out = append(out, v)
		}
		seen[name] = true
	}
	return out
}

// patience is how long the tasks may do nothing that the tracer sees.
const patience = 60 * time.Second

func (r *tracer) run(argv, env []string, files [3]*os.File) (status int, err error) {
	r.leader, err = syscall.ForkExec(argv[0], argv, &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{files[0].Fd(), files[1].Fd(), files[2].Fd()},
		Sys:   &syscall.SysProcAttr{Ptrace: true, Setpgid: true},
	})
	if err != nil {
		return 0, err
	}
	timer := time.AfterFunc(patience, func() { syscall.Kill(-r.leader, syscall.SIGKILL) })
	defer timer.Stop()
	for {
		var ws syscall.WaitStatus
		timer.Reset(patience)
		// Not for any child: this thread may have started another test's, before it was this one's.
		pid, err := syscall.Wait4(-r.leader, &ws, waitOwn, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD:
			return status, nil
		case err != nil:
			return 0, err
		case ws.Stopped():
			r.stopped(pid, ws)
			continue
		}
		delete(r.known, pid) // it has ended
		delete(r.refusing, pid)
		if pid == r.leader {
			status = ws.ExitStatus()
			if ws.Signaled() {
				status = 128 + int(ws.Signal())
			}
			if status != 0 {
				syscall.Kill(-r.leader, syscall.SIGKILL) // its children
			}
		}
	}
}

// stopped deals with a stop and lets the task go on to its next.
func (r *tracer) stopped(pid int, ws syscall.WaitStatus) {
	deliver := 0
	switch sig := ws.StopSignal(); {
	case !r.known[pid]: // a new program, thread or child: the kernel stops each once
		r.known[pid] = true
		if pid == r.leader {
			syscall.PtraceSetOptions(pid, syscall.PTRACE_O_TRACESYSGOOD|syscall.PTRACE_O_TRACECLONE|
				syscall.PTRACE_O_TRACEFORK|syscall.PTRACE_O_TRACEVFORK|exitKill)
		}
	case sig == syscall.SIGTRAP|stopOfCall:
		r.call(pid)
	case sig != syscall.SIGTRAP: // those are news of a clone
		deliver = int(sig)
	}
	syscall.PtraceSyscall(pid, deliver) // it may have been killed meanwhile
}

// call sees the beginning or the end of a system call.
func (r *tracer) call(pid int) {
	var info callInfo
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PTRACE, getSyscallInfo, uintptr(pid),
		unsafe.Sizeof(info),
		uintptr(unsafe.Pointer(&info)), 0, 0)
	if errno != 0 {
		return
	}
	if r.to == 0 {
		r.findCode(pid)
	}
	switch {
	case info.op == infoEntry && info.ip >= r.from && info.ip < r.to:
		for _, k := range kinds {
			if k.has(&info) {
				r.seen[k]++
			}
		}
		n := r.seen[r.kind]
		if r.kind != nil && r.kind.has(&info) && (n == r.n || r.on && n > r.n) {
			r.refuse(pid, &info)
		}
	case info.op == infoExit:
		if regs, ok := r.refusing[pid]; ok {
			delete(r.refusing, pid)
			regs.Rax = -uint64(r.errno)
			syscall.PtraceSetRegs(pid, &regs)
		}
	}
}

// refuse makes a call that begins none, or one that unmaps the target.
func (r *tracer) refuse(pid int, info *callInfo) {
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return
	}
	r.refusing[pid] = regs
	regs.Orig_rax = ^uint64(0)
	if r.kind.late && info.args[3]&mremapFixed != 0 {
		regs.Orig_rax, regs.Rdi, regs.Rsi = syscall.SYS_MUNMAP, info.args[4], info.args[2]
	}
	syscall.PtraceSetRegs(pid, &regs)
}

func (k *kind) has(info *callInfo) bool {
	return slices.Contains(k.calls, info.nr) && (k.of == nil || k.of(&info.args))
}

// findCode looks for the file among a task's mappings. The loader reserves room for all of it at
// once, and maps its code, which is more than one segment, in several calls.
func (r *tracer) findCode(pid int) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return
	}
	for line := range strings.Lines(string(maps)) {
		if !strings.HasSuffix(line, r.code.file+"\n") {
			continue
		}
		area, _, _ := strings.Cut(line, "-")
		start, _ := strconv.ParseUint(area, 16, 64)
		r.from, r.to = start+r.code.from, start+r.code.to
		return
	}
}

// codeOf is all the code of a library.
func codeOf(tb testing.TB, library string) code {
	tb.Helper()
	f, err := elf.Open(library)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	c := code{file: "/" + filepath.Base(library), from: math.MaxUint64}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			c.from, c.to = min(c.from, p.Vaddr), max(c.to, p.Vaddr+p.Memsz)
		}
	}
	return c
}

// functionOf is the code of a function of a program.
func functionOf(tb testing.TB, program, name string) code {
	tb.Helper()
	f, err := elf.Open(program)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	base := uint64(math.MaxUint64)
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			base = min(base, p.Vaddr)
		}
	}
	symbols, err := f.Symbols()
	for _, s := range symbols {
		if strings.HasSuffix(s.Name, name) && elf.ST_TYPE(s.Info) == elf.STT_FUNC {
			return code{"/" + filepath.Base(program), s.Value - base, s.Value - base + s.Size}
		}
	}
	tb.Fatalf("%s has no %s: %v", program, name, err)
	return code{}
}
