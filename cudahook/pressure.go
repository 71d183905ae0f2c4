package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/group"
	"tieralloc/stats"
	"tieralloc/tiers"
)

// Rules by which the cache shrinks. Times are in nanoseconds.
const (
	decay      = 10_000_000_000 // an idle segment is unmapped after this time
	recently   = 100_000_000    // the same under pressure
	lookEvery  = 100_000_000    // interval at which the driver is asked for the free memory
	nearlyFull = 16             // less than 1/16 of the device free is pressure
)

// hint returns the hint of a request: that of the first rule that matches, else the thread's, else
// TA_DEFAULT_HINT.
func (r *Request) hint() uint64 {
	if tiers.RulesOn() {
		allowed := uintptr(r.Allowed)
		if allowed == 0 { // the caller's object was not looked up, or no rule matches
			allowed = uintptr(tiers.CallerSet(0, 0, 0))
		}
		if hint := tiers.Match(tiers.ThreadSet(0)&uint64(allowed),
			uintptr(r.Bytes)); hint != tiers.NoHint {
			return uint64(hint)
		}
	}
	if r.Hint != 0 {
		return r.Hint - 1
	}
	return settings.hint
}

// maySpill reports whether a request may get memory on the host: not with the hints hot and
// pin_fast.
func (r *Request) maySpill() bool {
	hint := r.hint()
	return settings.spill && hint != uint64(config.HintHot) && hint != uint64(config.HintPinFast)
}

// shrink unmaps idle segments before so many bytes are mapped: segments not used for long, and
// segments that must make room because of the soft cap or a nearly full device. goOn: there are no
// more.
func (h *heap) shrink(r *Request, bytes uint64) Action {
	if capturing() {
		return goOn
	}
	if !r.has(triedInfo) && h.now-h.looked >= lookEvery {
		r.set(triedInfo)
		h.looked = h.now
		return r.act(phaseInfo, ActInfo)
	}
	if action := h.giveBack(r); action != goOn {
		return action
	}
	if h.device.over(bytes) {
		if s := h.idleOn(0, bytes); s != nil {
			return h.unmap(r, s)
		}
		if h.anyPiece() != nil && !r.has(triedSync) {
			return h.syncAll(r)
		}
		if !r.has(softCounted) {
			r.set(softCounted)
			atomic.AddUint64(&h.device.softExceeded, 1)
			h.logged(stats.EventDeviceSoftcap, atomic.LoadUint64(&h.device.reserved))
		}
	}
	return goOn
}

// giveBack unmaps an idle segment, or free pieces, that are not worth keeping. goOn: there are
// none.
func (h *heap) giveBack(r *Request) Action {
	if s := h.surplus(); s != nil {
		return h.unmap(r, s)
	}
	b := h.surplusPiece()
	switch {
	case b == nil:
	case b.cache != h.mainPool.global:
		if !r.has(triedSync) {
			return h.syncAll(r)
		}
	default:
		if s := h.carve(b, ^uint64(0)); s != nil {
			return h.unmap(r, s)
		}
	}
	return goOn
}

// surplusPiece returns a free block with pieces that are not worth keeping, or nil.
func (h *heap) surplusPiece() *block {
	if h.mainPool.addresses.base == 0 {
		return nil
	}
	if h.cached() > h.cacheLimit() {
		return h.anyPiece()
	}
	age := uint64(decay)
	if h.pressed {
		age = recently
	}
	if h.now-h.aged < age/4 {
		return nil
	}
	b := h.pieceUnused(age)
	if b == nil {
		h.aged = h.now
	}
	return b
}

// surplus returns an idle segment to unmap now, or nil.
func (h *heap) surplus() *segment {
	s := h.idleFirst
	if s == nil {
		return nil
	}
	if s.since == 0 {
		s.since = h.now
	}
	if s.nonReusable != 0 || h.now-s.since >= decay && h.now > s.since {
		return s
	}
	if h.pressed && h.now-s.since >= recently && h.now > s.since {
		return s
	}
	if h.count.globals > h.device.globals {
		if s := h.idleGlobal(); s != nil {
			return s
		}
	}
	if limit := h.cacheLimit(); h.cached() > limit {
		return h.idleOn(0, h.cached()-limit)
	}
	return nil
}

// cacheLimit returns how many bytes of free blocks the heap may keep now: none while another
// process of the group (TA_GROUP) is refused memory of the device.
func (h *heap) cacheLimit() uint64 {
	if d := h.device; d.account != 0 && group.Short(uintptr(d.account), h.now) {
		return 0
	}
	return h.device.cacheLimit
}

// idleOn returns the segment that has been idle longest on a side (0: the device, 1: the host), or
// else free pieces of an expandable segment, at most so many bytes or one piece, or nil.
func (h *heap) idleOn(side, most uint64) *segment {
	s := h.idleFirst
	for s != nil && s.pool.spilled != side {
		s = s.next
	}
	if s == nil && side == 0 {
		return h.carve(h.globalPiece(), most)
	}
	return s
}

// idleGlobal returns the segment that has been idle longest whose block is in a global cache, or
// nil. Unmapping it reduces the number of global blocks by one.
func (h *heap) idleGlobal() *segment {
	s := h.idleFirst
	for s != nil && s.first.cache != s.pool.global {
		s = s.next
	}
	return s
}

// informed takes the driver's answer about free memory. Until the next answer, a nearly full device
// keeps only segments that were used recently.
func (h *heap) informed(r *Request) {
	h.pressed = r.Result == Success && r.Value < r.Extra/nearlyFull
	if h.pressed {
		h.count.pressures++
	}
}

// shortage makes room when bytes cannot be charged or mapped. It tries, in this order: blocks of
// other streams, idle segments, waiting for the device, idle segments of other contexts, a segment
// as small as possible, and memory on the host. goOn: a block may be free or a segment may fit now.
func (h *heap) shortage(r *Request, n, kind, bytes uint64) Action {
	idle := !capturing()
	if idle && !r.has(triedSteal) {
		return h.steal(r, n, kind)
	}
	if r.has(short) && r.returned >= bytes {
		r.returned = 0
		r.unset(short)
		return goOn
	}
	if idle {
		if s := h.idleOn(0, bytes); s != nil {
			return h.unmap(r, s)
		}
	}
	// fewer bytes, but they may be contiguous with free memory of the driver
	if r.has(short) && r.returned != 0 {
		r.returned = 0
		r.unset(short)
		return goOn
	}
	if idle && !r.has(triedSync) {
		return h.syncAll(r)
	}
	if idle && !r.has(triedOthers) {
		return inOtherContexts
	}
	if kind == kindLarge && !r.has(tight) {
		r.set(tight)
		r.unset(short)
		return goOn
	}
	if idle && r.renewed < renewals && h.device.awaited() >= n {
		r.renewed++
		r.seen = 0
		r.unset(triedSync | triedOthers | short)
		return r.act(phaseYield, ActYield)
	}
	atomic.AddUint64(&h.device.violations, 1)
	if r.Op != OpForeign && !r.has(direct) && h.poolOf(r).global != nil &&
		(r.maySpill() || r.comesBack()) {
		r.set(spilling | lastHost)
		r.unset(short)
		return goOn
	}
	atomic.AddUint64(&h.device.refused, 1)
	h.logged(stats.EventDeviceHardcap, r.Bytes)
	return h.refuse(r)
}

// renewals is how often a request that would be refused waits again for what other threads have
// freed since it waited. Each time others have allocated what its wait made free.
const renewals = 8

// awaited returns the bytes that the device's heaps have freed and can use once the device has been
// waited for. The heaps are read without their locks, so it is an estimate.
func (d *device) awaited() (n uint64) {
	for i := range usedHeaps() {
		h := &heaps[i]
		if atomic.LoadUint64(&h.context) == 0 || h.device != d {
			continue
		}
		s := &h.count.side[0]
		n += atomic.LoadUint64(&s.pending) + atomic.LoadUint64(&s.held) +
			atomic.LoadUint64(&s.local)
	}
	return n
}

func (h *heap) logged(kind stats.EventKind, bytes uint64) {
	stats.Put1(config.LogWarn, kind, uintptr(h.ordinal), uintptr(bytes))
}

// shrinkOthers makes room in the other heaps on the device of h. It waits for their pending work,
// and then unmaps their idle segments, one per call. goOn: there are none left. Precondition: no
// lock is held; r is in h.
func shrinkOthers(r *Request, h *heap) Action {
	for i := range usedHeaps() {
		o := &heaps[i]
		if o == h || atomic.LoadUint64(&o.context) == 0 || !o.lock.Take(uintptr(r.Token)) {
			continue
		}
		action := goOn
		if o.device == h.device && o.context != 0 {
			action = o.called(o.shrinkFor(r))
		}
		o.lock.Release()
		if action != goOn {
			return action
		}
	}
	r.set(triedOthers)
	return goOn
}

// shrinkFor makes room for a request of another heap. goOn: there is no more.
func (h *heap) shrinkFor(r *Request) Action {
	if r.has(othersPassed) && r.other == h.place() {
		r.unset(othersPassed)
		h.makeReusable(r.until)
		h.dissolveGone(r.until)
	}
	h.flushAll()
	if r.see(h) && (h.open != nil || h.queue != nil || h.held != nil ||
		h.count.side[0].local != 0 || h.anyGone()) {
		r.other, r.nextContext, r.until = h.place(), 0, h.clock-1
		return h.syncNext(r, phaseOther, true)
	}
	if s := h.idleOn(0, rounded(min(r.Bytes, maxRequest))); s != nil {
		r.Context = h.context
		return h.unmap(r, s)
	}
	return goOn
}

// place identifies the heap: its index in the table, and the epoch.
func (h *heap) place() uint64 { return h.epoch<<8 | h.slot }

// see notes that the request has seen a heap, and reports whether that is new.
func (r *Request) see(h *heap) bool {
	bit := uint64(1) << (h.slot & 63)
	if r.seen&bit != 0 {
		return false
	}
	r.seen |= bit
	return true
}

// otherSynced takes the driver's answer to one wait on behalf of another heap.
func (h *heap) otherSynced(r *Request) Action {
	if !h.idle(r) {
		r.nextContext = 0
		return inOtherContexts
	}
	// The contexts of the other heap, which include this one's own.
	if action := heaps[r.other&(heapMax-1)].syncNext(r, phaseOther, true); action != goOn {
		return action
	}
	r.set(othersPassed)
	return inOtherContexts
}

// syncAll waits for all work that may use the heap's blocks, one context after the other. After
// that every stream may use all blocks freed before.
func (h *heap) syncAll(r *Request) Action {
	r.set(triedSync)
	if !r.has(waited) {
		r.set(waited)
		h.count.waits++
	}
	r.nextContext, r.until = 0, h.clock-1
	return h.syncNext(r, phaseSync, true)
}

// synced takes the driver's answer to one wait of syncAll.
func (h *heap) synced(r *Request) Action {
	if !h.idle(r) {
		r.nextContext = 0
		if captureError(r.Result) && !r.has(triedAgain) {
			r.unset(triedSync)
			r.set(triedAgain)
		}
		return goOn
	}
	if action := h.syncNext(r, phaseSync, true); action != goOn {
		return action
	}
	h.makeReusable(r.until)
	h.dissolveGone(r.until)
	return goOn
}
