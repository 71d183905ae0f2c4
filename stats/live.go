package stats

import (
	"sync/atomic"
	"tieralloc/internal/raw"
	"unsafe"
)

// A page is updated every 100 ms at most, and rarely enough that updates take a fiftieth of one
// thread's time. The limit holds for the process: ten threads that allocate cost no more than one,
// and a heap that takes long to walk is walked less often.
const (
	liveInterval = 100_000_000 // ns
	liveShare    = 50
	liveNever    = 0
)

// live is this process's page. One thread at a time updates it: the one that set claim.
var live struct {
	page    uintptr // address of a LivePage; 0: none
	size    uintptr // of the file and the mapping
	pid     uintptr // process that opened it
	next    uint64  // when an update is due; liveNever: the page is off
	claim   uint32  // 1: an update is under way
	started uint64  // when that began
	file    fileID
}

// livePath is the page's file, a C string. It lies apart from what every process reads.
var livePath [raw.Page]byte

// LiveOn reports whether there is a page to update.
func LiveOn() bool { return atomic.LoadUint64(&live.next) != liveNever }

// LiveDue reports whether an update is due. now is in nanoseconds of any monotonic clock, the same
// for all calls.
func LiveDue(now uint64) bool { return atomic.LoadUint64(&live.next)-1 < now } // never, if 0

// LiveBegin begins an update, whether it is due or not. It returns a report, all zero, which the
// same thread fills and then commits (LiveCommit) or drops (LiveDrop). It returns nil while another
// thread updates the page, or the one that this signal handler interrupted. It also returns nil in
// a process that did not open the page: a vfork child has its parent's memory, and a child made
// without the fork handlers still has its parent's page.
func LiveBegin(now uint64) *Report {
	if !LiveOn() || raw.Pid() != live.pid || !atomic.CompareAndSwapUint32(&live.claim, 0, 1) {
		return nil
	}
	live.started = now
	p := (*LivePage)(raw.Ptr(live.page))
	begun := p.Head.Published + 1
	// A swap rather than a store: writes to the buffer must not become visible before it.
	atomic.SwapUint64(&p.Head.Begun, begun)
	f := &p.Buffers[begun&1].Figures
	*f = Figures{}
	return (*Report)(unsafe.Pointer(f))
}

// LiveCommit publishes the report of LiveBegin.
func LiveCommit(now uint64) {
	if atomic.LoadUint32(&live.claim) == 0 {
		return // a signal handler forked meanwhile, and this is the child: the page is the parent's
	}
	p := (*LivePage)(raw.Ptr(live.page))
	begun := p.Head.Begun
	p.Buffers[begun&1].UnixNs = raw.Clock(raw.ClockReal)
	atomic.StoreUint64(&p.Head.Published, begun)
	liveDone(now)
}

// LiveDrop ends the update without publishing the report of LiveBegin. Readers keep the report
// before it.
func LiveDrop(now uint64) {
	if atomic.LoadUint32(&live.claim) != 0 {
		liveDone(now)
	}
}

// liveDone ends an update and sets the time of the next.
func liveDone(now uint64) {
	wait := uint64(liveInterval)
	if took := now - live.started; now > live.started && took > liveInterval/liveShare {
		wait = took * liveShare
	}
	next := atomic.LoadUint64(&live.next)
	if next != liveNever { // once the page is off, it stays off
		atomic.CompareAndSwapUint64(&live.next, next, now+wait)
	}
	atomic.StoreUint32(&live.claim, 0)
}

// LiveEnd ends updates. exited marks the last report as final. unlink removes the file if it is
// still this process's. The page stays mapped, because another thread may be writing to it.
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

// LiveForked makes a forked child forget its parent's page without changing its contents. The child
// may open its own. Private memory replaces the mapping of the parent's page: if a signal handler
// forked in the middle of an update, the update continues in the child.
//
// Precondition: the calling thread is the process's only one.
func LiveForked() {
	atomic.StoreUint64(&live.next, liveNever)
	atomic.StoreUint32(&live.claim, 0)
	if live.page != 0 && !mapOver(live.page, live.size) {
		raw.Unmap(live.page, live.size)
	}
	live.page = 0
}
