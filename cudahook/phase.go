package cudahook

// start begins a request in its heap.
func (h *heap) start(r *Request) Action {
	r.notes = notes{}
	h.visit++
	r.visit = h.visit
	switch r.Op {
	case OpFree, OpStreamFree:
		return h.startFree(r)
	case OpRecord:
		return h.recordStream(r)
	case OpNonReusable:
		if b := h.blockAt(r.Address); b != nil && b.segment != nil {
			b.segment.nonReusable = 1
			h.flushAll() // exact-size bins ignore nonReusable
		}
		return r.done(Success)
	case OpRange:
		return h.rangeOf(r)
	case OpInfo:
		return r.act(phaseTold, ActInfo)
	case OpPool:
		return h.startPool(r)
	case OpPoolFigures:
		return h.poolFigures(r)
	case OpCoalesce:
		h.flushAll()
		return r.done(Success)
	}
	if r.Op == OpForeign {
		r.set(triedSteal)
	}
	if r.Op == OpAlloc && capturing() {
		r.set(direct | triedSteal)
	}
	h.prefer(r)
	return h.proceed(r)
}

// proceed takes the next step of a request.
func (h *heap) proceed(r *Request) Action {
	switch r.Op {
	case OpAlloc, OpStreamAlloc:
		return h.serve(r)
	case OpFree, OpStreamFree:
		return h.freeOn(r)
	case OpForeign:
		return h.serveForeign(r)
	case OpTrim:
		return h.trim(r)
	case OpWarmup:
		return h.warmup(r)
	case OpPool:
		return h.poolGone(r)
	case OpSleep, OpWake:
		return h.startSleep(r)
	}
	return r.done(Success)
}

// answer takes the driver's answer to the last action. goOn: the request proceeds.
func (h *heap) answer(r *Request, phase uint64) Action {
	switch phase {
	case phaseMap:
		return h.mapped(r)
	case phaseZero:
		return h.zeroed(r)
	case phaseReserve:
		poolIn(r.object).addresses.begin(r)
		r.object = 0
	case phaseExpand:
		return h.expanded(r)
	case phaseExpandZero:
		return h.expandedZero(r)
	case phaseGrant:
		return h.grant(r)
	case phaseSave:
		return h.saved(r)
	case phaseFreeHost:
		if r.region != 0 {
			return h.fallAsleep(r, poolIn(r.region))
		}
	case phaseForget:
		if h.table.find(r.Address) == nil {
			return h.wrongFree(r) // another thread has freed it meanwhile
		}
		return h.startFree(r)
	case phaseSleep:
		return h.unmappedAsleep(r)
	case phaseRise:
		return h.risen(r)
	case phaseRestore:
		return h.restored(r)
	case phaseSink:
		return h.sunk(r)
	case phaseUnmap:
		h.unmapped(r)
	case phaseOther:
		return h.otherSynced(r)
	case phaseTold:
		return h.informedOf(r)
	case phaseInfo:
		h.informed(r)
	case phaseQuery:
		h.queried(r)
	case phaseEventCreate:
		h.eventMade(r)
	case phaseFence, phaseFenceQuery:
		h.unname(r)
		return h.fenceAnswer(r, phase)
	case phaseSteal, phaseStealWait:
		h.unname(r)
		return h.stealAnswer(r, phase)
	case phaseDriver:
		return h.driven(r)
	case phaseSync:
		return h.synced(r)
	case phaseSyncFree:
		return h.syncedFree(r)
	case phasePendingEvent, phasePendingRecord, phasePendingSync:
		h.unname(r)
		h.recorded(r, phase)
		return h.record(r)
	}
	return goOn
}
