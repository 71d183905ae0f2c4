package main

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// A tracer follows a command and all its children, and examines each program that one of them
// executes.
type tracer struct {
	command int    // its process
	library string // the name that LD_PRELOAD is expected to contain
	images  []*image
	tracees map[int]*tracee
}

// tracee is a traced thread. The kernel reports a new one twice, in any order: its parent has
// created it, and it has stopped for the first time. It continues after both.
type tracee struct {
	image   *image // nil: its parent was killed before its report
	armed   bool   // its program has a breakpoint that it has not reached
	made    bool   // its parent's report has come
	stopped bool   // it has stopped before
}

const traceOptions = unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACECLONE |
	unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACEEXIT

// trace runs the program at path to its end, with this process's own files, and returns the
// programs that were executed, in order.
func trace(path string, args []string, env environ, library string) ([]*image, error) {
	runtime.LockOSThread() // a tracer is a thread
	defer runtime.UnlockOSThread()
	signals := catchPassed()
	pid, err := syscall.ForkExec(path, args, &syscall.ProcAttr{
		Env: env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Ptrace: true},
	})
	if err != nil {
		signal.Reset()
		return nil, err
	}
	signal.Ignore(syscall.SIGPIPE) // the table may have no reader any more
	if p, err := os.FindProcess(pid); err == nil {
		go passOn(p, signals)
	}
	t := &tracer{command: pid, library: library, tracees: map[int]*tracee{}}
	err = seize(pid)
	if errors.Is(err, unix.EPERM) {
		return []*image{newImage(pid, library)}, goOn(pid)
	}
	if err == nil {
		err = t.follow()
	}
	return t.images, err
}

// goOn resumes a process that may not be seized, and waits for its end.
func goOn(pid int) error {
	if err := unix.Kill(pid, unix.SIGCONT); err != nil {
		return os.NewSyscallError("kill", err)
	}
	for {
		if _, err := unix.Wait4(pid, nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("wait4", err)
		}
	}
}

// seize traces a process that has stopped at its exec by PTRACE_SEIZE instead of PTRACE_TRACEME. A
// seized process and its children continue when the tracer ends, stay stopped by signals as without
// a tracer, and get no SIGSTOP when they are created.
func seize(pid int) error {
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil {
		return os.NewSyscallError("wait4", err)
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(pid), 0,
		uintptr(unix.SIGSTOP), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("ptrace", errno)
	}
	return os.NewSyscallError("ptrace", unix.PtraceSeize(pid))
}

// follow handles the events of tracees until the command has ended. Tracees then continue untraced.
// follow waits for those with a breakpoint, which would kill them.
func (t *tracer) follow() error {
	for ended := false; !ended || t.anyArmed(); {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WALL, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return os.NewSyscallError("wait4", err)
		case status.Stopped():
			t.stop(pid, status)
		default:
			ended = ended || pid == t.command
			delete(t.tracees, pid)
			t.releaseOrphans()
		}
	}
	return nil
}

func (t *tracer) anyArmed() bool {
	for _, tracee := range t.tracees {
		if tracee.armed {
			return true
		}
	}
	return false
}

// releaseOrphans resumes new tracees whose parent was killed before its report.
func (t *tracer) releaseOrphans() {
	for pid, tracee := range t.tracees {
		if tracee.stopped && !tracee.made {
			tracee.made = true
			resume(pid, 0)
		}
	}
}

// resume resumes a tracee. The call fails if the tracee was killed meanwhile; its end is reported
// next.
func resume(pid, signal int) { _ = unix.PtraceCont(pid, signal) }

// stop handles a tracee that has stopped, and resumes it.
func (t *tracer) stop(pid int, status unix.WaitStatus) {
	of := t.tracees[pid]
	switch {
	case of == nil && pid == t.command: // at its exec
		of = &tracee{made: true, stopped: true}
		t.tracees[pid] = of
		_ = unix.PtraceSetOptions(pid, traceOptions)
		t.begin(pid, of)
		_ = unix.Kill(pid, unix.SIGCONT)
		resume(pid, 0)
	case of == nil:
		t.tracees[pid] = &tracee{stopped: true}
	case !of.stopped:
		of.stopped = true
		resume(pid, 0)
	case eventOf(status) == unix.PTRACE_EVENT_STOP && status.StopSignal() != unix.SIGTRAP:
		// it stays stopped
		_, _, _ = unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_LISTEN, uintptr(pid), 0, 0, 0, 0)
	default:
		resume(pid, t.event(pid, of, status))
	}
}

// event handles the event of a stopped tracee, and returns the signal to resume it with.
func (t *tracer) event(pid int, of *tracee, status unix.WaitStatus) (signal int) {
	switch cause := eventOf(status); {
	case cause == unix.PTRACE_EVENT_FORK:
		t.born(pid, of, of.armed) // a copy of the memory, with the breakpoint in it
		return 0
	case cause == unix.PTRACE_EVENT_VFORK || cause == unix.PTRACE_EVENT_CLONE:
		t.born(pid, of, false)
		return 0
	case cause == unix.PTRACE_EVENT_EXEC:
		t.begin(pid, of)
		return 0
	case cause == unix.PTRACE_EVENT_EXIT:
		if of.image != nil && of.image.pid == pid {
			of.image.ends()
		}
		return 0
	case cause == unix.PTRACE_EVENT_STOP:
		return 0
	case status.StopSignal() == unix.SIGTRAP && of.armed && of.image.arrived(pid):
		of.armed = of.image.advance(pid)
		return 0
	}
	return int(status.StopSignal())
}

// eventOf returns the ptrace event that a tracee has stopped for, 0 for a signal.
func eventOf(status unix.WaitStatus) int { return int(uint32(status) >> 16) }

// born notes that a tracee has created a process or a thread.
func (t *tracer) born(pid int, of *tracee, armed bool) {
	message, err := unix.PtraceGetEventMsg(pid)
	if err != nil {
		return
	}
	child := t.tracees[int(message)]
	switch {
	case child == nil:
		t.tracees[int(message)] = &tracee{image: of.image, armed: armed, made: true}
	case !child.made:
		child.image, child.armed, child.made = of.image, armed, true
		resume(int(message), 0)
	}
}

// begin notes that a tracee has executed another program.
func (t *tracer) begin(pid int, of *tracee) {
	of.image = newImage(pid, t.library)
	of.armed = of.image.arm()
	t.images = append(t.images, of.image)
}
