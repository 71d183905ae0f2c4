package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/pystack"
	"tieralloc/internal/raw"
)

// The history holds the last events of the devices that record (ConfigTrace). A program reads it by
// History, and a snapshot has them. The events are those of the trace, and memory that the driver
// maps and unmaps.
//
//	event i is at place i mod historyMax, for next - historyMax <= i < next
var history struct {
	raw.OffHeap
	lock raw.Lock
	base uintptr // 0: nothing was ever recorded
	next uint64

	stacks *pystack.Table // the Python stacks of the events; nil: none was ever noted
}

const (
	historyMax = 1 << 17
	eventBytes = unsafe.Sizeof(event{})
)

// recording is 1 while some device records.
var recording uint32

func setRecording() {
	on := uint32(0)
	for i := range devices {
		on |= uint32(devices[i].record & 1)
	}
	atomic.StoreUint32(&recording, on)
	setFastPath()
}

func eventAt(i uint64) *event {
	return (*event)(raw.Ptr(history.base + uintptr(i%historyMax)*eventBytes))
}

// remember keeps the event of a request. Precondition: no lock is held.
func remember(r *Request, e *event) {
	e.device = r.Device
	if h := heapOf(r.current()); h != nil {
		e.device = h.ordinal
	}
	if e.device >= deviceMax || devices[e.device&(deviceMax-1)].record == 0 ||
		!history.lock.Take(uintptr(r.Token)) {
		return
	}
	if history.base == 0 {
		history.base = raw.Map(historyMax * eventBytes)
	}
	if history.base != 0 {
		e.time = raw.Clock(raw.ClockMono)
		e.call = noteStack(r)
		*eventAt(history.next) = *e
		history.next++
	}
	history.lock.Release()
}

// rememberMapped keeps that the driver has mapped memory for a request, before the heap knows.
// Precondition: no lock is held.
func rememberMapped(r *Request) {
	e := event{kind: traceMap, address: r.Value, bytes: r.OnBytes}
	switch phase := r.phase(); {
	case r.Result != Success:
		return
	case phase == phaseExpand:
		e.kind, e.address = traceExpand, r.OnAddress
	case phase != phaseMap:
		return
	}
	remember(r, &e)
}

// rememberUnmap keeps that the driver is about to unmap memory. Afterwards another thread may get
// its address before this one continues. Precondition: no lock is held.
func rememberUnmap(r *Request, action Action) {
	e := event{kind: traceUnmap, address: r.OnAddress, bytes: r.OnBytes}
	switch action {
	case ActUnmap:
	case ActUnmapAt:
		e.kind = traceShrink
	default:
		return
	}
	remember(r, &e)
}

// noteStack returns the number of the Python stack of the request's thread, or 0. When there is no
// room for more stacks, the events so far lose theirs. Precondition: history.lock is held.
func noteStack(r *Request) uint64 {
	if r.Python == 0 {
		return 0
	}
	if history.stacks == nil {
		history.stacks = (*pystack.Table)(raw.Ptr(raw.Map(pystack.Size)))
		if history.stacks == nil {
			return 0
		}
	}
	call := history.stacks.Note(uintptr(r.Python), uintptr(r.PythonMinor))
	if history.stacks.Full() {
		history.stacks.Clear()
		for i := range min(history.next, historyMax) {
			eventAt(i).call = 0
		}
		call = history.stacks.Note(uintptr(r.Python), uintptr(r.PythonMinor))
	}
	return uint64(call)
}

// beginHistory starts a device's history with the next event.
func (d *device) beginHistory(token uintptr) {
	if history.lock.Take(token) {
		d.recordedFrom = history.next
		history.lock.Release()
	}
}

// History writes the recorded events of a device as text to buf, oldest first, in the trace's
// columns. As snprintf does, it writes at most n bytes, the last of them 0, and returns the length
// of the whole text.
func History(token uintptr, device uint64, buf, n uintptr) (size uintptr) {
	if device >= deviceMax || !history.lock.Take(token) {
		return 0
	}
	var l raw.Line
	l.Text(traceHeader)
	size = l.Copy(buf, 0, n)
	i := devices[device&(deviceMax-1)].recordedFrom
	if history.next > historyMax {
		i = max(i, history.next-historyMax)
	}
	for ; i < history.next; i++ {
		if e := eventAt(i); e.device == device && e.kind <= traceFree {
			l.Clear()
			e.format(&l)
			size = l.Copy(buf, size, n)
		}
	}
	history.lock.Release()
	if n != 0 {
		raw.StoreByte(buf+min(size, n-1), 0)
	}
	return size
}
