package stats

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// The event ring carries events for the log from the data plane to the control plane. Any thread
// may put an event, without a lock and without waiting. One goroutine takes them (stats/logger).
// When the ring is full an event is dropped and counted.
//
// It is Dmitry Vyukov's bounded queue: in round t, a slot is free for writing when its seq is
// t·ringSlots, and ready for reading when seq is one more.
const ringSlots = 1024

// EventKind is what happened. It determines what the arguments mean.
type EventKind uint64

// The events, with their arguments.
const (
	EventNone          EventKind = iota
	EventFork                    // none: logged in the parent, after the fork
	EventThread                  // heap's address: a thread acquired it
	EventThreadEnd               // heap's address
	EventSegment                 // address, bytes: mapped
	EventSegmentEnd              // address, bytes: unmapped
	EventPurge                   // bytes given back
	EventNoMemory                // bytes asked for
	EventReport                  // errno of writing the statistics file
	EventSoftcap                 // tier, bytes it has now: it went over its soft cap
	EventHardcap                 // tier, bytes it has now: a request would have passed its hard cap
	EventMigrate                 // tier, bytes: moved there by demotion or promotion
	EventStuck                   // tier, bytes: the kernel did not move them there
	EventDriverMissing           // none: a CUDA function was called without a driver
	EventDriverOld               // none: the CUDA driver lacks what the device heap needs
	EventDriverFails             // CUresult: cuInit has failed
	EventDeviceSoftcap           // device, bytes reserved: it went over its soft cap
	// device, bytes asked for: its hard cap or the driver refused them
	EventDeviceHardcap
	// device, CUresult: it has no managed memory, so the device heap uses plain memory
	EventDevicePlain
	EventDeviceFree // address, CUresult: it is not a block that can be freed
	EventSummary    // mallocs, frees, peak bytes, live bytes, live blocks, failed calls
)

// Event is one entry of the ring.
type Event struct {
	Kind   EventKind
	UnixNs uint64
	Tid    uint64
	Args   [6]uint64
}

type slot struct {
	seq   uint64
	event Event
}

type ring struct {
	head  uint64 // next to write
	_     [7]uint64
	tail  uint64 // next to read; only the reader uses it
	_     [7]uint64
	slots [ringSlots]slot

	dropped uint64
	begun   uint32 // 1: there is a reader
	closing uint32 // 1: the process ends; the reader takes the rest and sets done
	done    uint32 // futex: 1 when the reader has taken everything after closing
	asleep  uint32 // futex: 1 while the reader sleeps
}

var events ring

// eventLevel is up to which level events are taken (config.Log…). It lies apart from the ring,
// whose pages a process without a log never touches. Atomic.
var eventLevel uint32

// bell is the address of a futex. Whoever waits there starts the reader when there is an event.
var bell uintptr

// LogBell sets the bell. It is called once, at boot.
func LogBell(futex uintptr) { bell = futex }

// LogStart lets events up to level (config.Log…) into the empty ring.
func LogStart(level uint32) {
	if events.head != 0 { // else its pages were never touched
		events = ring{}
	}
	atomic.StoreUint32(&eventLevel, level)
}

// LogStop ends logging in this process at once: in a forked child nothing reads the ring.
func LogStop() { atomic.StoreUint32(&eventLevel, 0) }

// LogDue reports whether there are events and no reader.
func LogDue() bool {
	return Logs(config.LogError) && atomic.LoadUint64(&events.head) != 0 &&
		atomic.LoadUint32(&events.begun) == 0
}

// Logs reports whether an event of the given level would be taken.
func Logs(level uint32) bool { return atomic.LoadUint32(&eventLevel) >= level }

// Put adds an event of the given level to the ring.
func Put(level uint32, kind EventKind, args *[6]uint64) {
	r := &events
	if !Logs(level) {
		return
	}
	for try := 0; try < ringSlots; try++ {
		at := atomic.LoadUint64(&r.head)
		s := &r.slots[at&(ringSlots-1)]
		seq, round := atomic.LoadUint64(&s.seq), at&^(ringSlots-1)
		if seq < round { // not yet read in the round before: full
			break
		}
		if seq != round || !atomic.CompareAndSwapUint64(&r.head, at, at+1) {
			continue
		}
		tid, _ := raw.Sys(syscall.SYS_GETTID, 0, 0, 0, 0, 0, 0)
		s.event.Kind = kind
		s.event.UnixNs = raw.Clock(raw.ClockReal)
		s.event.Tid = uint64(tid)
		s.event.Args = *args
		atomic.StoreUint64(&s.seq, round+1)
		wake()
		return
	}
	atomic.AddUint64(&r.dropped, 1)
}

// Put1 is Put with one or two arguments.
func Put1(level uint32, kind EventKind, a, b uintptr) {
	if Logs(level) {
		args := [6]uint64{uint64(a), uint64(b)}
		Put(level, kind, &args)
	}
}

// wake wakes the reader, or whoever starts it.
func wake() {
	if atomic.LoadUint32(&events.begun) == 0 {
		ring := (*uint32)(raw.Ptr(bell))
		atomic.AddUint32(ring, 1)
		raw.Wake(ring)
	} else if atomic.SwapUint32(&events.asleep, 0) == 1 {
		raw.Wake(&events.asleep)
	}
}

// LogFinish asks the reader to take the rest and waits until it is done, for two seconds at most.
// Without an event there need be no reader.
func LogFinish() {
	r := &events
	if atomic.LoadUint32(&r.begun) != 0 || LogDue() {
		atomic.StoreUint32(&r.closing, 1)
		wake()
		for i := 0; i < 20 && Logs(config.LogError) && atomic.LoadUint32(&r.done) == 0; i++ {
			raw.WaitFor(&r.done, 0, 100e6)
		}
	}
	LogStop()
}

// Take moves the oldest event to e, and reports whether there was one. Only one thread at a time
// may call it.
func Take(e *Event) bool {
	r := &events
	s := &r.slots[r.tail&(ringSlots-1)]
	round := r.tail &^ (ringSlots - 1)
	if atomic.LoadUint64(&s.seq) != round+1 {
		return false
	}
	*e = s.event
	atomic.StoreUint64(&s.seq, round+ringSlots)
	r.tail++
	return true
}

// Dropped is the number of events that were dropped because the ring was full.
func Dropped() uint64 { return atomic.LoadUint64(&events.dropped) }

// Rest sleeps until there may be an event, and reports whether the process ends. The reader calls
// it when Take has found nothing. If the process ends, the reader takes the rest once more.
func Rest() (ends bool) {
	r := &events
	atomic.StoreUint32(&r.begun, 1)
	if atomic.LoadUint32(&r.closing) != 0 {
		return true
	}
	atomic.StoreUint32(&r.asleep, 1)
	s := &r.slots[r.tail&(ringSlots-1)]
	if atomic.LoadUint64(&s.seq) == r.tail&^(ringSlots-1)+1 || atomic.LoadUint32(&r.closing) != 0 {
		atomic.StoreUint32(&r.asleep, 0)
		return false
	}
	// The Go scheduler must know that this call blocks.
	_, _, _ = syscall.Syscall6(syscall.SYS_FUTEX, uintptr(unsafe.Pointer(&r.asleep)), raw.FutexWait,
		1, 0, 0, 0)
	return false
}

// Finished tells LogFinish that all events are written.
func Finished() {
	atomic.StoreUint32(&events.done, 1)
	raw.Wake(&events.done)
}
