package alloc

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// Thread is what one thread has of the heap: a Heap for each hint that it ever
// allocated with, so that hot and cold blocks never share a page.
//
//	Base = Heaps[h] for the hint h that holds for the thread
//	kept = Σ bytes of the pages that were left empty on its heaps' lists
//
// Base serves malloc; the fast path knows it as the thread's heap.
type Thread struct {
	_ raw.OffHeap

	Base *Heap
	Busy uintptr // 1 while the owner is in the slow path
	Now  uint64  // monotonic time in nanoseconds, set on entry to the slow path

	Cache *SecureCache     // with TA_SECURE=1
	Heaps [hintSlots]*Heap // by hint; nil until the first block for it

	// What the C side has found out about callers: Libs[i] is the rules that allow the
	// object with the return address Callers[i].
	Unloads uint64
	Callers [callers]uintptr
	Libs    [callers]uintptr

	token        uintptr // the owning thread's, for locks
	retiredBytes uintptr
	collect      uint64    // when to look for empty pages next
	combed       uint64    // when they were looked for to make room
	tickerArmed  uint64    // see purgeticker.go: when current pages were set to be looked at,
	ticked       uint64    // when one was,
	tickAfter    uint64    // and how many frees of it come before the next time
	fallbackTime uint64    // see classfallback.go
	walk         uintptr   // blocks that may still be looked at for subreleased parts
	used         uintptr   // the most bytes in use when pages were asked for subreleased parts
	left         uint64    // when its own thread ended, or last borrowed it
	served       uint64    // when it was left, or looked at since: see abandoned.go
	rules        uint64    // the rules whose condition on the thread holds
	name         [2]uint64 // the thread's name when that was found out
	held         *quarantine
	running      running // with TA_SECURE=1: the call that the thread is in

	retiredHeap  *Heap // of the current page of several slices that became empty last: its heap
	retiredClass uint32

	hinted bool // hint is the thread's own, not the process's default
	capped bool // the last reserve was refused, after all had been done to make room

	pages uintptr // that its heaps have; atomic
	state uint32
	hint  uint32  // what holds where no rule decides: see SetHint
	next  *Thread // in a list of abandoned threads
	prev  *Thread
	all   *Thread // in the list of all
}

const callers = 64

const hintSlots = 8 // more than there are hints, so that an index is masked

// States of a Thread. A frozen one belonged to a thread that a fork left behind, in
// the middle of who knows what: its blocks stay readable and freeing them is
// safe, but nothing is ever allocated from it again.
const (
	heapOwned = iota
	heapAbandoned
	heapFrozen
)

// everyThread is every thread ever made, linked by all; guarded by poolLock.
var everyThread *Thread

var (
	// Background is set when the control plane calls Service.
	Background bool

	// DefaultHint is the hint of threads without one of their own (TA_DEFAULT_HINT,
	// SetDefaultHint).
	DefaultHint uint32
)

// Acquire gives the calling thread its heaps, those of a thread that ended or new
// ones, and returns the one for malloc. It returns nil when the kernel has no memory.
func Acquire(token uintptr) *Heap {
	t := adopt(token)
	if t == nil {
		t = newThread(token)
	}
	if t == nil {
		return nil
	}
	stats.Put1(logDebug, stats.EventThread, t.self(), 0)
	t.hint, t.hinted = atomic.LoadUint32(&DefaultHint), false
	t.rejuvenate()
	t.name = [2]uint64{}
	t.rules = tiers.ThreadSet(0)
	t.rename()
	t.settle()
	return t.Base
}

// newThread is a thread with the heap of the default hint, or nil.
func newThread(token uintptr) *Thread {
	if !poolLock.Take(token) {
		return emergencyThread(token)
	}
	at, heap := metaHeap(true)
	t := (*Thread)(raw.Ptr(at))
	if heap == 0 {
		t = nil // its bytes are lost; there is no memory to lose any more of
	} else {
		t.begin(token, (*Heap)(raw.Ptr(heap)))
		t.all = everyThread
		everyThread = t
		pool.threadCount++
	}
	poolLock.Release()
	return t
}

// begin makes a thread of zero memory, with its first heap.
func (t *Thread) begin(token uintptr, h *Heap) {
	t.token = token
	h.init(t, uintptr(DefaultHint))
	t.Heaps[h.Hint&(hintSlots-1)] = h
	t.Base = h
}

// heap is the thread's heap for a hint, or nil when there is no memory to make it.
func (t *Thread) heap(hint uintptr) *Heap {
	h := t.Heaps[hint&(hintSlots-1)]
	if h != nil {
		return h
	}
	if poolLock.Take(t.token) {
		_, at := metaHeap(false)
		h = (*Heap)(raw.Ptr(at))
		poolLock.Release()
	} else {
		h = (*Heap)(raw.Ptr(raw.Map(raw.RoundUp(heapBytes, raw.Page))))
	}
	if h != nil {
		h.init(t, hint)
		t.Heaps[hint&(hintSlots-1)] = h
	}
	return h
}

// SetHint makes hint the own one of the thread that owns h and returns the one before;
// tiers.NoHint stands for none, and the process's default. The next call of malloc that no rule
// decides goes by it.
func SetHint(h *Heap, hint uintptr) (before uintptr) {
	t := h.Thread
	before = tiers.NoHint
	if t.hinted {
		before = uintptr(t.hint)
	}
	t.hinted = hint != tiers.NoHint
	if !t.hinted {
		hint = uintptr(atomic.LoadUint32(&DefaultHint))
	}
	t.goBy(uint32(hint))
	return before
}

// SetDefaultHint makes hint the process's default. The thread of h goes by it at once, others
// from their next call on that the fast path cannot serve.
func SetDefaultHint(h *Heap, hint uint32) {
	atomic.StoreUint32(&DefaultHint, hint)
	h.Thread.follow()
}

// follow notices that the process's default has changed. It is inlined, and what follows from
// that is not.
func (t *Thread) follow() {
	if hint := atomic.LoadUint32(&DefaultHint); t.hint != hint && !t.hinted {
		t.goBy(hint)
	}
}

//go:noinline
func (t *Thread) goBy(hint uint32) {
	t.hint = hint
	t.settle()
}

// Renamed looks at the thread's name again, which a rule may go by.
func Renamed(h *Heap) {
	h.Thread.rename()
}

// rename finds out which rules hold for the thread by its name, which it may have
// changed.
func (t *Thread) rename() {
	if !tiers.NeedsThread() {
		return
	}
	var name [3]uint64 // 16 bytes and a zero
	raw.Sys(syscall.SYS_PRCTL, prGetName, uintptr(unsafe.Pointer(&name)), 0, 0, 0, 0)
	if name[0] == t.name[0] && name[1] == t.name[1] {
		return
	}
	t.name[0], t.name[1] = name[0], name[1]
	t.rules = tiers.ThreadSet(uintptr(unsafe.Pointer(&name)))
	t.settle()
}

const prGetName = 16

// settle makes the heap of the hint that holds for the thread the base. Where its
// heap cannot be had the base stays.
func (t *Thread) settle() {
	hint := uintptr(t.hint)
	if tiers.RulesOn() {
		hint = tiers.Base(t.rules, hint)
	}
	h := t.heap(hint)
	if h == nil {
		return
	}
	if h != t.Base {
		t.release() // the secure mode's cache is of blocks of the base
	}
	if tiers.RulesOn() && (h.ruledBy != t.rules || h.ruledHint != t.hint) {
		h.rule()
		h.ruledBy, h.ruledHint = t.rules, t.hint
	}
	t.Base = h
}

// Abandon gives back what the thread of h does not need and leaves the rest to the
// next thread that wants heaps.
func Abandon(h *Heap) {
	t := h.Thread
	stats.Put1(logDebug, stats.EventThreadEnd, t.self(), 0)
	t.running = running{}
	t.release()
	t.collectPages(true)
	purgeDue(t.token, t.Now)
	t.leave()
}

// Leave is Abandon without the tidying: for a thread that only borrowed the heap.
func Leave(h *Heap) { h.Thread.leave() }

func (t *Thread) leave() {
	if !takeHeaps(t.token) {
		return
	}
	t.left = t.Now
	t.abandon()
	heapsLock.Release()
}

// collectPages is Heap.collectPages for all heaps of the thread.
func (t *Thread) collectPages(all bool) {
	t.walk = walkMost
	for _, h := range t.Heaps {
		if h != nil {
			h.collectPages(all)
		}
	}
}

// tick does the work that is due now and then: purging, looking for empty pages,
// taking back what was freed into heaps without a thread, moving spans between
// tiers, keeping the live statistics fresh.
func (t *Thread) tick() {
	if t.collect == 0 {
		t.collect = t.Now + collectEvery()
	}
	if t.Now >= t.collect {
		t.collect = t.Now + collectEvery()
		t.rename()
		t.release() // its blocks are few, but may hold a page each
		t.collectPages(false)
		hugeExpire(t.token, t.Now, anyPlacement, false)
	}
	if abandoned.due(t.Now) {
		serveAbandoned(t.token, t.Now, abandonedStep, true)
	}
	if limitOld(t.Now) {
		t.heed(0)
	}
	purgeDue(t.token, t.Now)
	t.armTicker()
	t.noteMoves()
	t.migrate()
}

// migrate moves spans between tiers unless the control plane does.
func (t *Thread) migrate() {
	if !Background {
		migrate(t.token, t.Now)
	}
}

const minCollect = 50e6 // nanoseconds

// collectEvery is how long after a look for empty pages the next one is due.
func collectEvery() uint64 { return max(PurgeDelay, minCollect) }

// Token is the owning thread's name for locks.
func (t *Thread) Token() uintptr { return t.token }

func (t *Thread) self() uintptr { return uintptr(unsafe.Pointer(t)) }
