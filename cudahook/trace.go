package cudahook

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// The trace (TA_CUDA_TRACE) is a file with a line for each allocation and free that the heap has
// served. It has the columns that the replay benchmark of RMM, RAPIDS' memory manager, reads. Each
// line is written at once, so that the trace of a killed program lacks at most the last.
var trace struct {
	on     bool
	opened bool
	lock   raw.Lock
	fd     uintptr
	dev    uint64 // of the file: the program may close the descriptor and reuse its number
	ino    uint64
}

// tracePath lies apart from the memory that fork writes to.
var tracePath config.Text

const (
	traceHeader = "Thread,Action,Pointer,Size,Stream"
	traceFlags  = syscall.O_WRONLY | syscall.O_CREAT | syscall.O_TRUNC | syscall.O_APPEND
)

// SetTrace asks for a trace in the file at path, which is created with the first line. It is called
// once, before all requests.
func SetTrace(path *config.Text) {
	trace.on = tracePath.Mem(path.Addr(), path.Len())
	setFastPath()
}

// observe has a request that was served traced, recorded and sampled. Precondition: no lock is
// held.
func observe(r *Request) Action {
	if trace.on || atomic.LoadUint32(&recording) != 0 {
		traced(r)
	}
	if sampling {
		return sampled(r)
	}
	return ActDone
}

// traced writes the line of a request that was served, and keeps the event if the device records.
// Precondition: no lock is held.
func traced(r *Request) {
	kind := traceAllocate
	switch r.Op {
	case OpAlloc, OpStreamAlloc, OpForeign:
		if r.Result != Success {
			kind = traceRefused
		}
	case OpFree, OpStreamFree:
		if r.Result != Success {
			return
		}
		kind = traceFree
	default:
		return
	}
	tid, _ := raw.Sys(syscall.SYS_GETTID, 0, 0, 0, 0, 0, 0)
	e := event{thread: uint64(tid), kind: kind, address: r.Address, bytes: r.Bytes,
		stream: r.Stream}
	if atomic.LoadUint32(&recording) != 0 {
		remember(r, &e)
	}
	if trace.on && trace.lock.Take(uintptr(r.Token)) {
		if traceReady() {
			var l raw.Line
			e.format(&l)
			l.Emit(trace.fd)
		}
		trace.lock.Release()
	}
}

// An event is a line of the trace.
type event struct {
	device, thread, kind   uint64
	address, bytes, stream uint64
	time                   uint64 // in the history: monotonic, nanoseconds
	call                   uint64 // in the history: the number of its Python stack; 0: none
}

const (
	traceAllocate uint64 = iota
	traceRefused
	traceFree
	traceMap    // a segment; in the history only, as those below
	traceUnmap  // a segment
	traceExpand // a part of an expandable segment is mapped
	traceShrink // a part of an expandable segment is unmapped
)

func (e *event) format(l *raw.Line) {
	l.Dec(e.thread)
	switch e.kind {
	case traceAllocate:
		l.Text(",allocate,")
	case traceRefused:
		l.Text(",allocate failure,")
	default:
		l.Text(",free,")
	}
	l.Hex(uintptr(e.address))
	l.Text(",")
	l.Dec(e.bytes)
	l.Text(",")
	l.Hex(uintptr(e.stream))
}

func endTrace() {
	trace.on = false
	setFastPath()
}

// traceReady opens the file the first time, and reports whether it can be written.
func traceReady() bool {
	var st syscall.Stat_t
	if !trace.opened {
		trace.opened = true
		fd, errno := raw.OpenFile(tracePath.Addr(), traceFlags)
		if errno != 0 {
			var l raw.Line
			l.Text("tieralloc: cannot write TA_CUDA_TRACE ")
			l.CStr(tracePath.Addr())
			l.Text(": error ")
			l.Dec(uint64(errno))
			l.Emit(2)
			endTrace()
			return false
		}
		trace.fd = fd
		raw.Sys(syscall.SYS_FSTAT, fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
		trace.dev, trace.ino = st.Dev, st.Ino
		var l raw.Line
		l.Text(traceHeader)
		l.Emit(fd)
	}
	_, errno := raw.Sys(syscall.SYS_FSTAT, trace.fd, uintptr(unsafe.Pointer(&st)), 0, 0, 0, 0)
	if errno != 0 || st.Dev != trace.dev || st.Ino != trace.ino {
		endTrace()
	}
	return trace.on
}
