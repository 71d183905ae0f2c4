package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// Between steps a request notes in its state what it waits for:
//
//	bits 0-7    the phase: which action it has asked for, and why
//	bits 8-15   the index of its heap in the table
//	bits 16-39  what it has tried
//	bits 40-63  the heap's epoch
//
// and in its notes the data of the phase. A step takes the answer to the action, and then decides
// anew what to do next, because other threads may have changed the heap.
const (
	phasePrimary uint64 = iota + 1
	phaseContext
	phaseQuiet
	phaseUnreserve
	phaseHeap // from here on the request has a heap
	phaseMap
	phaseZero
	phaseUnmap
	phaseInfo
	phaseTold
	phaseQuery
	phaseEventCreate
	phaseFence
	phaseFenceQuery
	phaseSteal
	phaseStealWait
	phaseDriver
	phaseSync
	phaseSyncFree
	phasePendingEvent
	phasePendingRecord
	phasePendingSync
	phaseOther
	phaseYield
	phaseReserve
	phaseExpand
	phaseExpandZero
	phaseGrant
	phaseRegion
	phaseSave
	phaseFreeHost
	phaseSleep
	phaseRise
	phaseRestore
	phaseSink
	phaseForget
)

// Where these bits of a state begin.
const (
	phaseMask = 1<<slotBit - 1
	slotBit   = 8
	flagBit   = 16
	epochBit  = 40
)

// goOn is the result of functions that ask for no action: the caller continues.
const goOn = ^Action(0)

// act notes the phase and returns the action.
func (r *Request) act(phase uint64, action Action) Action {
	r.state = r.state&^phaseMask | phase
	return action
}

func (r *Request) phase() uint64 { return r.state & phaseMask }

func (r *Request) has(flag uint64) bool { return r.state&flag != 0 }
func (r *Request) set(flag uint64)      { r.state |= flag }
func (r *Request) unset(flag uint64)    { r.state &^= flag }

// done ends a request with a result.
func (r *Request) done(result uint64) Action {
	r.Result = result
	return ActDone
}

// Step takes the next step of a request. It returns the action that C carries out before the step
// after it.
func Step(r *Request) Action {
	if atomic.LoadUint32(&off) != 0 || !wake(uintptr(r.Token)) || !settings.enabled {
		return ActPass
	}
	action := ActDone
	switch {
	case r.state == 0:
		action = begin(r)
	case r.phase() < phaseHeap:
		action = introduced(r)
	default:
		r.spoilt()
		if atomic.LoadUint32(&recording) != 0 {
			rememberMapped(r)
		}
		action = resume(r)
	}
	for c := r.spoils(action); c != 0 && !r.maySpoil(c); c = r.spoils(action) {
		r.Result = errorCapture
		action = resume(r)
	}
	if action <= ActPass {
		r.state = 0
		if action == ActDone && settings.throttle && (r.Op == OpAlloc || r.Op == OpStreamAlloc) {
			throttled(r)
		}
		if action == ActDone && atomic.LoadUint32(&observed) != 0 {
			action = observe(r)
		}
		if action == ActDone && settings.snapshots {
			noteRefusal(r) // after its event: another thread may write the snapshot at once
		}
	} else if atomic.LoadUint32(&recording) != 0 {
		rememberUnmap(r, action)
	}
	return action
}

// begin is the first step.
func begin(r *Request) Action {
	c := r.current()
	h := heapOf(c)
	for ; h != nil; h = heapOf(c) {
		if !h.lock.Take(uintptr(r.Token)) {
			return interrupted(r)
		}
		if h.context == c {
			break
		}
		h.lock.Release() // it has ended meanwhile
	}
	if h != nil {
		r.timed()
		r.caller = c
		h.now = max(h.now, r.Now)
		action := h.enter(r)
		h.lock.Release()
		if action == inOtherContexts {
			return askOtherContexts(r, h)
		}
		if action != notHere {
			return action
		}
	}
	r.caller = c
	return beginOutsideHeap(r, h)
}

// interrupted answers a signal handler that interrupted its own thread's step. A freed block is
// lost. It is not passed to the driver, which would free the whole segment of a first block.
func interrupted(r *Request) Action {
	if r.Op == OpFree || r.Op == OpStreamFree {
		return r.done(Success)
	}
	return ActPass
}

// timed reads the clock if C has not: C leaves Now 0 for calls that seldom need it.
func (r *Request) timed() {
	if r.Now == 0 {
		r.Now = raw.Clock(raw.ClockMono)
	}
}

// notHere is the result of enter if this heap does not have the block that the request names.
const notHere = ActPass | 1<<32

// enter begins a request in a heap that is locked.
func (h *heap) enter(r *Request) Action {
	switch r.Op {
	case OpFree, OpStreamFree, OpRecord, OpRange, OpNonReusable:
		b := h.table.find(r.Address)
		if b == nil && (r.Op == OpRange || r.Op == OpNonReusable) {
			b = h.blockAt(r.Address)
		}
		if b == nil && r.Op != OpRange && r.Op != OpNonReusable && h.index.find(r.Address) != nil {
			return h.inside(r)
		}
		if b == nil {
			return notHere
		}
	case OpPeer, OpCapture, OpContextEnd, OpTotal, OpStreamEnd:
		return notHere
	}
	h.own(r)
	if r.caller == 0 {
		r.caller = h.context
	}
	return h.called(h.start(r))
}

// own assigns the request to the heap.
func (h *heap) own(r *Request) {
	r.state = phaseHeap | h.slot<<slotBit | h.epoch<<epochBit
	r.Context, r.Device = h.context, h.ordinal
}

// called counts an action as a driver call.
func (h *heap) called(action Action) Action {
	h.count.calls[action&31]++
	return action
}

// inOtherContexts is the result of shortage when other contexts are to return memory. The caller
// releases the heap's lock first, because no two heaps' locks are held at once.
const inOtherContexts = ^Action(1)

// askOtherContexts continues a request after inOtherContexts. Precondition: no lock is held.
func askOtherContexts(r *Request, h *heap) Action {
	action := shrinkOthers(r, h)
	if action != goOn {
		return action
	}
	if !h.lock.Take(uintptr(r.Token)) {
		return r.done(ErrorDeinitialized)
	}
	if h.ended(r) {
		action = r.done(ErrorDeinitialized)
	} else {
		action = h.called(h.proceed(r))
	}
	h.lock.Release()
	return action
}

// ended reports whether the request's context has ended since it began.
func (h *heap) ended(r *Request) bool {
	return h.epoch<<epochBit>>epochBit != r.state>>epochBit
}

// introduce asks for the context that needs a heap, and for its device.
func introduce(r *Request) Action {
	if r.Op == OpPool && r.Count == 0 || r.Op == OpPool && r.Count == 2 {
		return r.done(Success)
	}
	if r.Context == 0 {
		if r.Device >= deviceMax {
			return ActPass
		}
		if c := atomic.LoadUint64(&devices[r.Device&(deviceMax-1)].primary); c != 0 {
			r.Context = c
		} else {
			return r.act(phasePrimary, ActPrimary)
		}
	}
	r.UUID, r.PCI = [2]uint64{}, 0
	return r.act(phaseContext, ActContext)
}

// introduced takes the answer to introduce.
func introduced(r *Request) Action {
	phase := r.phase()
	r.state = 0
	switch phase {
	case phaseQuiet:
		return quiet(r)
	case phaseUnreserve:
		return unreserve(r)
	}
	if r.Result != Success {
		if r.Op == OpAlloc || r.Op == OpForeign {
			return ActPass // the driver reports the error to the program
		}
		return r.done(r.Result)
	}
	if phase == phasePrimary {
		r.Context = r.Value
		if r.Context == 0 {
			return r.done(ErrorInvalidValue)
		}
		atomic.StoreUint64(&devices[r.Device&(deviceMax-1)].primary, r.Context)
		h := heapOf(r.Context)
		if h == nil {
			return introduce(r)
		}
		atomic.StoreUint64(&h.device.slot, h.slot)
		return begin(r)
	}
	h := newHeap(uintptr(r.Token), r.Context, r.Value, r.Extra, r.UUID)
	if h == nil {
		return unaccounted(r)
	}
	if h.lock.Take(uintptr(r.Token)) {
		h.uuid, h.pci = r.UUID, r.PCI
		h.lock.Release()
	}
	return begin(r)
}

// unaccounted answers a request of a context that gets no heap, because the table is full. The
// driver serves it, unless there is a cap, which the driver would not keep.
func unaccounted(r *Request) Action {
	if r.Op == OpStreamFree || r.Op == OpRecord { // of a block of ours
		setPeer(uintptr(r.Token), r.caller, r.caller, 0)
		if isPeer(r.caller) {
			return begin(r)
		}
		return r.done(ErrorOutOfMemory)
	}
	if (r.Op == OpAlloc || r.Op == OpStreamAlloc || r.Op == OpForeign) &&
		(settings.hard != 0 || settings.part != 0) {
		return r.done(ErrorOutOfMemory)
	}
	return ActPass
}

// resume continues a request after its action.
func resume(r *Request) Action {
	if r.phase() == phaseUnmap {
		vacated(r)
	}
	h := &heaps[r.state>>slotBit&(heapMax-1)]
	if !h.lock.Take(uintptr(r.Token)) {
		return r.done(ErrorDeinitialized)
	}
	if h.ended(r) {
		h.lock.Release()
		voided(r)
		if r.Op == OpStreamEnd {
			return endStream(r)
		}
		return r.done(ErrorDeinitialized) // the context has ended meanwhile
	}
	r.Context = h.context
	h.now = max(h.now, r.Now)
	action := h.answer(r, r.phase())
	if action == goOn {
		action = h.proceed(r)
	}
	h.called(action)
	h.lock.Release()
	if action == inOtherContexts {
		return askOtherContexts(r, h)
	}
	if action == ActDone && r.Op == OpStreamEnd {
		return endStream(r)
	}
	return action
}
