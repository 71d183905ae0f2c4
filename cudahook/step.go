package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// Between steps a request notes in its state what it waits for:
//
//	bits 0-7    the phase: which action it has asked for, and why
//	bits 8-15   the place of its heap in the table
//	bits 16-39  what it has tried
//	bits 40-63  the heap's epoch
//
// and in its notes what the phase works on. A step takes the answer of the action, and
// then looks afresh for what is to be done: other threads have changed the heap.
const (
	phasePrimary uint64 = iota + 1
	phaseContext
	phaseQuiet
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
)

const epochBit = 40

// goOn is what functions return that have no action to ask for.
const goOn = ^uint64(0)

// act notes the phase and returns the action.
func (r *Request) act(phase, action uint64) uint64 {
	r.state = r.state&^0xff | phase
	return action
}

func (r *Request) has(flag uint64) bool { return r.state&flag != 0 }
func (r *Request) set(flag uint64)      { r.state |= flag }
func (r *Request) unset(flag uint64)    { r.state &^= flag }

// done ends a request with a result.
func (r *Request) done(result uint64) uint64 {
	r.Result = result
	return ActDone
}

// Step carries a request one step further. It returns the action that is to be carried
// out before the next step.
func Step(r *Request) uint64 {
	if atomic.LoadUint32(&off) != 0 || !wake(uintptr(r.Token)) || !settings.enabled {
		return ActPass
	}
	action := uint64(0)
	switch {
	case r.state == 0:
		action = begin(r)
	case r.state&0xff < phaseHeap:
		action = introduced(r)
	default:
		r.spoilt()
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
		if action == ActDone && (trace.on || atomic.LoadUint32(&recording) != 0) {
			traced(r)
		}
	}
	return action
}

// begin is the first step.
func begin(r *Request) uint64 {
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

// interrupted is for a signal handler that has interrupted its own thread within the heap. A
// free is lost: the driver would free a whole segment for its first block.
func interrupted(r *Request) uint64 {
	if r.Op == OpFree || r.Op == OpStreamFree {
		return r.done(Success)
	}
	return ActPass
}

// timed makes sure that the request has a time: C leaves it out where it mostly is not
// needed.
func (r *Request) timed() {
	if r.Now == 0 {
		r.Now = raw.Clock(raw.ClockMono)
	}
}

// notHere is what enter returns when another heap has the block that the request names.
const notHere = ActPass | 1<<32

// enter begins a request in a heap that is locked.
func (h *heap) enter(r *Request) uint64 {
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

// own makes the request one of the heap's.
func (h *heap) own(r *Request) {
	r.state = phaseHeap | h.slot<<8 | h.epoch<<epochBit
	r.Context, r.Device = h.context, h.ordinal
}

// called counts the driver's call that an action is.
func (h *heap) called(action uint64) uint64 {
	h.count.calls[action&31]++
	return action
}

// inOtherContexts is what shortage returns when other contexts are to give memory back: their
// locks are not taken together with that of the heap.
const inOtherContexts = ^uint64(1)

// askOtherContexts goes on with a request that returned inOtherContexts. Precondition: no lock is
// held.
func askOtherContexts(r *Request, h *heap) uint64 {
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

// introduce asks for the context that a request needs a heap for.
func introduce(r *Request) uint64 {
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
func introduced(r *Request) uint64 {
	phase := r.state & 0xff
	r.state = 0
	if phase == phaseQuiet {
		return quiet(r)
	}
	if r.Result != Success {
		if r.Op == OpAlloc || r.Op == OpForeign {
			return ActPass // the driver has something to say about it
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
	h := newHeap(uintptr(r.Token), r.Context, r.Value, r.Extra)
	if h == nil {
		return unaccounted(r)
	}
	if h.lock.Take(uintptr(r.Token)) {
		h.uuid, h.pci = r.UUID, r.PCI
		h.lock.Release()
	}
	return begin(r)
}

// unaccounted is for a context that there is no room for: the driver serves it, unless there
// is a cap, which it would not keep.
func unaccounted(r *Request) uint64 {
	if r.Op == OpStreamFree || r.Op == OpRecord { // of a block of ours
		setPeer(uintptr(r.Token), r.caller, r.caller)
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

// resume goes on with a request whose action has been carried out.
func resume(r *Request) uint64 {
	h := &heaps[r.state>>8&(heapMax-1)]
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
	action := h.answer(r, r.state&0xff)
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
