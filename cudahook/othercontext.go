package cudahook

import "sync/atomic"

// beginOutsideHeap begins a request that concerns no known heap, or not the one that was tried.
func beginOutsideHeap(r *Request, tried *heap) Action {
	switch r.Op {
	case OpAlloc, OpStreamAlloc, OpForeign, OpWarmup, OpPool, OpInfo, OpSleep, OpWake:
		return introduce(r)
	case OpFree, OpStreamFree, OpRecord, OpRange, OpNonReusable:
		return find(r, tried)
	case OpStreamEnd:
		return endStream(r)
	case OpPeer:
		if r.Count != 0 && r.Device < deviceMax {
			setPeer(uintptr(r.Token), r.Context, r.Address, 1<<r.Device)
			return grantPeer(r)
		}
		setPeer(uintptr(r.Token), r.Context, r.Address, 0)
	case OpCapture:
		return capture(r)
	case OpContextEnd:
		endContext(uintptr(r.Token), r.Context)
		return unreserve(r)
	case OpTotal:
		r.Extra = min(r.Extra, capOf(r.Extra))
	}
	return r.done(Success)
}

// find looks for the block of a request in all heaps except the one that was tried.
func find(r *Request, tried *heap) Action {
	mine := false
	for i := range usedHeaps() {
		h := &heaps[i]
		if h == tried || atomic.LoadUint64(&h.context) == 0 {
			continue
		}
		if !h.lock.Take(uintptr(r.Token)) {
			mine = true
			continue
		}
		action := notHere
		switch {
		case h.context == 0:
		case r.stranger() && h.table.find(r.Address) != nil:
			r.Context = r.caller
			action = introduce(r)
		default:
			h.now = max(h.now, r.Now)
			action = h.enter(r)
		}
		h.lock.Release()
		if action == inOtherContexts {
			return askOtherContexts(r, h)
		}
		if action != notHere {
			return action
		}
	}
	if mine {
		return interrupted(r)
	}
	if r.Op == OpFree || r.Op == OpStreamFree {
		atomic.AddUint64(&freesUnknown, 1)
	}
	return ActPass
}

// stranger reports whether the request makes a block wait for a stream of a context that has no
// heap. That context first gets a heap or is noted as a peer, because only such contexts are waited
// for.
func (r *Request) stranger() bool {
	return (r.Op == OpStreamFree || r.Op == OpRecord) && r.caller != 0 && heapOf(r.caller) == nil &&
		!isPeer(r.caller)
}

// endStream ends the caches of a stream that is about to be destroyed, in all heaps.
func endStream(r *Request) Action {
	stream := ordered(r.Stream)
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) == 0 || !h.lock.Take(uintptr(r.Token)) {
			continue
		}
		action := goOn
		if h.context != 0 {
			h.now = max(h.now, r.Now)
			h.own(r)
			action = h.called(h.endCaches(r, stream))
		}
		h.lock.Release()
		if action != goOn {
			return action
		}
	}
	return r.done(Success)
}

// freesUnknown counts frees of addresses that no heap knows.
var freesUnknown uint64
