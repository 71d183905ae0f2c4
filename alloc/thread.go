package alloc

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/group"
	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// Thread is one thread's part of the heap: a Heap for each hint that it ever allocated with, so
// that hot and cold blocks never share a page.
//
//	Base = Heaps[h] for the thread's hint h
//	retiredBytes = Σ bytes of the retired pages of its heaps
//
// Base serves malloc; the fast path knows it as the thread's heap.
type Thread struct {
	_ raw.OffHeap

	Base *Heap
	Busy uintptr // 1 while the owner is in the slow path
	Now  uint64  // monotonic time in nanoseconds, set on entry to the slow path

	Sampled      uintptr // a block whose stack is to be noted (sampled.go), or 0
	sampledBytes uintptr // what the program asked for

	Cache *SecureCache // with TA_SECURE=1
	// By hint, and from sampledSlot on those of sampled blocks (sampled.go); nil until the first
	// block for it.
	Heaps [heapSlots]*Heap

	// C's cache of callers: Allowed[i] is the set of rules that allow the caller Callers[i], which
	// is a return address and in the two highest bits the depth.
	Unloads uint64
	Callers [callers]uintptr
	Allowed [callers]uintptr

	stack *unwind.Stack // of the walk that the thread is at, or nil

	heaps        *Heap   // all of its heaps, linked by sibling
	token        uintptr // the owning thread's, for locks
	retiredBytes uintptr
	collect      uint64    // when to collect empty pages next
	combed       uint64    // when they were collected to make room
	tickerArmed  uint64    // see purgeticker.go: when triggers were set on current pages,
	ticked       uint64    // when a trigger was reached,
	tickAfter    uint64    // and the number of frees until the next
	fallbackTime uint64    // see spanalloc.go
	walk         uintptr   // blocks that may still be examined for subrelease in this call
	used         uintptr   // the largest bytes in use at an occasion of subrelease
	left         uint64    // when its program's thread ended, or last borrowed it
	served       uint64    // when it was abandoned or last served: see abandoned.go
	rules        uint64    // the rules whose condition on the thread holds
	name         [2]uint64 // the thread's name when rules was determined
	held         *quarantine
	running      running // with TA_SECURE=1: the call that the thread is in

	retiredHeap  *Heap // of the current page of several slices that became empty last: its heap
	retiredClass uint32
	retiredRun   uint8 // pages of one block that it gave up in a row, up to steadyRun
	sampledLevel uint8 // at which Sampled was drawn: see thinning

	hinted bool // hint is the thread's own, not the process's default
	capped bool // the last reserve was refused after all attempts to make room

	pages uintptr // that its heaps have; atomic
	state uint32
	hint  uint32  // the hint if no rule decides: see SetHint
	next  *Thread // in a list of abandoned threads
	prev  *Thread
	all   *Thread // in the list of all
}

const callers = 64

const heapSlots = 2 * hintSlots

// States of a Thread. A frozen one belonged to a thread of the parent that does not exist in a
// forked child, and may be in the middle of any operation. Its blocks stay readable and may be
// freed, but nothing is allocated from it again.
const (
	heapOwned = iota
	heapAbandoned
	heapFrozen
)

// everyThread is every thread ever made, linked by all; guarded by poolLock.
var everyThread *Thread

var (
	// Background is set while the control plane calls Service.
	Background bool
	// Watching is set when the control plane measures how hot regions are, and Following, too, when
	// it moves them between tiers by that (follow.go), or Paging when it has the coldest paged out.
	Watching, Following, Paging bool

	// DefaultHint is the hint of threads without one of their own (TA_DEFAULT_HINT,
	// SetDefaultHint).
	DefaultHint uint32
)

// Acquire gives the calling thread its heaps, adopted or new, and returns the one for malloc. It
// returns nil if the kernel has no memory.
func Acquire(token uintptr) *Heap {
	t := adopt(token)
	if t == nil {
		t = newThread(token)
	}
	if t == nil {
		return nil
	}
	stats.Put1(config.LogDebug, stats.EventThread, t.self(), 0)
	t.hint, t.hinted = atomic.LoadUint32(&DefaultHint), false
	t.rejuvenate()
	t.name = [2]uint64{}
	t.rules = tiers.ThreadSet(0)
	t.rename()
	t.setBase()
	return t.Base
}

// newThread returns a thread with the heap of the default hint, or nil.
func newThread(token uintptr) *Thread {
	if !poolLock.Take(token) {
		return emergencyThread(token)
	}
	at, heap := metaHeap(true)
	t := (*Thread)(raw.Ptr(at))
	if heap == 0 {
		t = nil // its bytes are lost
	} else {
		t.begin(token, (*Heap)(raw.Ptr(heap)))
		t.all = everyThread
		everyThread = t
		pool.threadCount++
	}
	poolLock.Release()
	return t
}

// begin initialises a thread in zero memory, with its first heap.
func (t *Thread) begin(token uintptr, h *Heap) {
	t.token = token
	h.init(t, uintptr(DefaultHint))
	t.Heaps[h.Hint&(hintSlots-1)] = h
	t.heaps = h
	t.Base = h
}

// heap returns the thread's heap for a hint, or nil if there is no memory for it.
func (t *Thread) heap(hint uintptr) *Heap { return t.heapIn(hint&(hintSlots-1), hint) }

// heapIn returns the heap in one of the thread's slots.
func (t *Thread) heapIn(slot, hint uintptr) *Heap {
	h := t.Heaps[slot&(heapSlots-1)]
	if h == nil {
		sampled := slot >= hintSlots
		h = t.newHeap(hint, sampled, sampled)
		t.Heaps[slot&(heapSlots-1)] = h
	}
	return h
}

// unspreadHeap returns the heap for aligned blocks with the hint of h whose pages are not spread,
// or nil if there is no memory for it.
func (h *Heap) unspreadHeap() *Heap {
	if h.AlignedHeap == nil {
		h.AlignedHeap = h.Thread.newHeap(uintptr(h.Hint), false, true)
	}
	return h.AlignedHeap
}

// newHeap makes a heap of the thread, or returns nil.
func (t *Thread) newHeap(hint uintptr, sampled, unspread bool) (h *Heap) {
	if poolLock.Take(t.token) {
		_, at := metaHeap(false)
		h = (*Heap)(raw.Ptr(at))
		poolLock.Release()
	} else {
		h = (*Heap)(raw.Ptr(raw.Map(raw.RoundUp(heapBytes, raw.Page))))
	}
	if h != nil {
		h.sampled, h.unspread, h.sibling = sampled, unspread, t.heaps
		h.init(t, hint)
		t.heaps = h // from now on other threads may find it
	}
	return h
}

// SetHint sets the hint of the thread that owns h and returns the one before. tiers.NoHint means
// that the thread uses the process's default. It holds from the next allocation for which no rule
// decides.
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

// SetDefaultHint sets the process's default hint. The thread of h uses it at once, others from
// their next slow step on.
func SetDefaultHint(h *Heap, hint uint32) {
	atomic.StoreUint32(&DefaultHint, hint)
	h.Thread.follow()
}

// follow applies a change of the process's default hint. The check is inlined; goBy, which applies
// the change, is not.
func (t *Thread) follow() {
	if hint := atomic.LoadUint32(&DefaultHint); t.hint != hint && !t.hinted {
		t.goBy(hint)
	}
}

//go:noinline
func (t *Thread) goBy(hint uint32) {
	t.hint = hint
	t.setBase()
}

// Renamed reads the thread's name again, because a rule may depend on it.
func Renamed(h *Heap) {
	h.Thread.rename()
}

// rename determines the rules that match the thread's name, which may have changed. A filter of
// system calls may forbid to ask for it.
func (t *Thread) rename() {
	if !tiers.NeedsThread() || filtered() {
		return
	}
	var name [3]uint64 // 16 bytes and a zero
	raw.Sys(syscall.SYS_PRCTL, prGetName, uintptr(unsafe.Pointer(&name)), 0, 0, 0, 0)
	if name[0] == t.name[0] && name[1] == t.name[1] {
		return
	}
	t.name[0], t.name[1] = name[0], name[1]
	t.rules = tiers.ThreadSet(uintptr(unsafe.Pointer(&name)))
	t.setBase()
}

const prGetName = 16

// setBase makes the heap of the thread's hint the base heap. If there is no memory for that heap,
// the base stays.
func (t *Thread) setBase() {
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

// Abandon returns the memory that the thread of h does not need, and abandons the thread's heaps,
// which the next new thread adopts.
func Abandon(h *Heap) {
	t := h.Thread
	stats.Put1(config.LogDebug, stats.EventThreadEnd, t.self(), 0)
	t.running = running{}
	t.release()
	t.collectPages(true)
	purgeDue(t.token, t.Now)
	t.leave()
}

// Leave is Abandon without returning memory, for a thread that only borrowed the heap.
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
	for h := t.heaps; h != nil; h = h.sibling {
		h.collectPages(all)
	}
}

// tick does periodic work if it is due: collecting empty pages, answering refusals in the group of
// processes, serving abandoned heaps, following the control group's limit, purging, sampling the
// kernel's moves, and moving spans between tiers.
func (t *Thread) tick() {
	if t.collect == 0 {
		t.collect = t.Now + collectEvery()
	}
	if pressed() {
		t.collect = min(t.collect, t.Now+minCollect)
	}
	if t.Now >= t.collect {
		t.collect = t.Now + collectEvery()
		t.rename()
		t.release() // its blocks are few, but each may keep a page
		t.collectPages(false)
		hugeExpire(t.token, t.Now, anyPlacement, false)
	}
	if group.On() {
		t.answerGroup()
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

// answerGroup returns all that nobody uses where another process of the group (TA_GROUP) was
// refused memory, at most once in minCollect.
//
//go:noinline
func (t *Thread) answerGroup() {
	if t.Now < atomic.LoadUint64(&pressure.answer) ||
		!atomic.CompareAndSwapUint32(&limit.busy, 0, 1) {
		return
	}
	if groupShort(t.Now) {
		atomic.StoreUint64(&pressure.answer, t.Now+minCollect)
		purgeAll(t)
	}
	atomic.StoreUint32(&limit.busy, 0)
}

// migrate moves spans between tiers, unless the control plane does.
func (t *Thread) migrate() {
	if !Background {
		migrate(t.token, t.Now)
	}
}

const minCollect = 50e6 // nanoseconds

// collectEvery returns the time between two collections of empty pages.
func collectEvery() uint64 { return max(purgeDelay(), minCollect) }

// Token returns the owning thread's token.
func (t *Thread) Token() uintptr { return t.token }

func (t *Thread) self() uintptr { return uintptr(unsafe.Pointer(t)) }
