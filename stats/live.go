package stats

import (
	"sync/atomic"
	"tieralloc/internal/raw"
	"unsafe"
)

// How often a page is updated, at most: every 100 ms, and rarely enough that updates
// take a fiftieth of the time of one thread. So ten threads that allocate cost no more
// than one, and a heap that takes long to walk is not walked all the time.
const (
	liveInterval = 100_000_000 // ns
	liveShare    = 50
	liveNever    = 0
)

// live is this process's page. One thread at a time updates it: whoever sets claim.
var live struct {
	page    uintptr // address of a LivePage; 0: none
	pid     uintptr // process that opened it
	next    uint64  // when an update is due; liveNever, as in new memory: the page is off
	claim   uint32  // 1: an update is under way
	started uint64  // when that began
	file    fileID
	path    [raw.Page]byte // C string
}

// LiveOn reports whether there is a page to update.
func LiveOn() bool { return atomic.LoadUint64(&live.next) != liveNever }

// LiveDue reports whether an update is due. The clock may be any that runs on steadily
// in nanoseconds, the same for all calls.
func LiveDue(now uint64) bool { return atomic.LoadUint64(&live.next)-1 < now } // never, if 0

// LiveBegin begins an update whether it is due or not: it returns a report, all zero,
// to be filled and committed (LiveCommit) or given up (LiveDrop) by the same thread. It
// is nil when another thread, or the one that a signal handler interrupted, is at it,
// and in a process that did not open the page: a vfork child has its parent's memory,
// and a child that no fork handler saw has the parent's page still.
func LiveBegin(now uint64) *Report {
	if !LiveOn() || raw.Pid() != live.pid || !atomic.CompareAndSwapUint32(&live.claim, 0, 1) {
		return nil
	}
	live.started = now
	p := (*LivePage)(raw.Ptr(live.page))
	begun := p.Head.Published + 1
	// A swap and no store: what is written to the buffer must not overtake it.
	atomic.SwapUint64(&p.Head.Begun, begun)
	f := &p.Buffers[begun&1].Figures
	*f = Figures{}
	return (*Report)(unsafe.Pointer(f))
}

// LiveCommit publishes the report of LiveBegin.
func LiveCommit(now uint64) {
	if atomic.LoadUint32(&live.claim) == 0 {
		return // forked since, in a signal handler: the page is the parent's
	}
	p := (*LivePage)(raw.Ptr(live.page))
	begun := p.Head.Begun
	p.Buffers[begun&1].UnixNs = raw.Clock(raw.ClockReal)
	atomic.StoreUint64(&p.Head.Published, begun)
	liveDone(now)
}

// LiveDrop gives the report of LiveBegin up. The page stays as it was.
func LiveDrop(now uint64) {
	if atomic.LoadUint32(&live.claim) != 0 {
		liveDone(now)
	}
}

// liveDone ends an update, and puts the next one off.
func liveDone(now uint64) {
	wait := uint64(liveInterval)
	if took := now - live.started; now > live.started && took > liveInterval/liveShare {
		wait = took * liveShare
	}
	next := atomic.LoadUint64(&live.next)
	if next != liveNever { // if it becomes that now, the page is off and stays so
		atomic.CompareAndSwapUint64(&live.next, next, now+wait)
	}
	atomic.StoreUint32(&live.claim, 0)
}

// LiveEnd ends updates. exited marks the last report as final; unlink removes the
// file, if it is still this process's. The page stays mapped, for another thread may be
// at it.
func LiveEnd(exited, unlink bool) {
	if !LiveOn() || raw.Pid() != live.pid {
		return
	}
	atomic.StoreUint64(&live.next, liveNever)
	if exited {
		atomic.StoreUint64(&(*LivePage)(raw.Ptr(live.page)).Head.State, LiveExited)
	}
	if unlink {
		unlinkOurs()
	}
}

// LiveForked makes a forked child forget its parent's page, without touching its
// contents. The child may open its own. Where the parent's page was there is private
// memory now: a signal handler may have forked in the midst of an update, which then
// goes on in the child.
//
// Precondition: the calling thread is the process's only one.
func LiveForked() {
	atomic.StoreUint64(&live.next, liveNever)
	atomic.StoreUint32(&live.claim, 0)
	if live.page != 0 && !mapOver(live.page, LiveSize) {
		raw.Unmap(live.page, LiveSize)
	}
	live.page = 0
}
