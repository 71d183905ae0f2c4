package alloc

import (
	"sync/atomic"

	"tieralloc/internal/cgroup"
	"tieralloc/internal/group"
)

// Memory is short if the control group would have less than 1/32 of its limit left even without
// the free spans and cached huge blocks of this heap, if threads wait for memory for more than a
// tenth of the time (the kernel's pressure stall information), or if another process under the same
// caps (TA_GROUP) was refused memory. Then what is freed goes back to the kernel at once, as with
// TA_PURGE_DELAY=0, no memory is prefaulted and no more huge pages are asked for, until the signs
// have been gone for pressureCalm. The signs that end it are weaker than those that begin it, so a
// figure at a threshold changes nothing.
//
// This is the last resort, because each span freed then costs a system call and page faults. A
// program that fills most of its limit is not short: limit.go bounds what it caches, and returns
// that first.
//
// The look at the limit (limit.go) reads the figures: never before the heap has had limitFirst, at
// most once in pressureAgain unless the heap grows, and by a step of a thread that is slow anyway,
// or by the control plane.
const (
	pressureAgain = 1e9 // nanoseconds
	pressureCalm  = 5e9
)

// pressure is written by the thread that has limit.busy.
var pressure struct {
	on      uint32 // 1: memory is short; atomic
	since   uint64 // the last sign
	again   uint64 // when the kernel's figure is read again
	stalled uint64 // that figure
	answer  uint64 // when another process's refusal is answered again; atomic
}

// pressed reports whether memory is short.
func pressed() bool { return atomic.LoadUint32(&pressure.on) != 0 }

// purgeDelay is PurgeDelay, and nothing while memory is short.
func purgeDelay() uint64 {
	if pressed() {
		return 0
	}
	return PurgeDelay
}

// nextPressure returns the state that follows at now, and the time of the last sign.
func nextPressure(on bool, since, now uint64, sign bool) (nextOn bool, nextSince uint64) {
	if sign {
		return true, now
	}
	return on && now < since+pressureCalm, since
}

// weigh sets the state by the figures. Precondition: limit.busy is the caller's.
func weigh(now uint64, m *cgroup.Memory) {
	setPressure(now, m.Short(uint64(unused()), pressure.stalled, pressed()))
}

// setPressure sets the state that follows at now. Precondition: limit.busy is the caller's.
func setPressure(now uint64, sign bool) {
	was := pressed()
	on, since := nextPressure(was, pressure.since, now, sign)
	pressure.since = since
	switch {
	case on && !was:
		atomic.AddUint64(&pool.count.pressures, 1)
		atomic.StoreUint32(&pressure.on, 1)
	case was && !on:
		atomic.StoreUint32(&pressure.on, 0)
	}
}

// countPressed counts n bytes that were returned while memory is short.
func countPressed(n uintptr) {
	if n != 0 && pressed() {
		atomic.AddUint64(&pool.count.pressureBytes, uint64(n))
	}
}

// serveLimit looks at the control group, and at the group of processes under the same caps, for the
// control plane, which has no heap to empty.
func serveLimit(token uintptr, now uint64) {
	if !limitOld(now) && !group.On() || !atomic.CompareAndSwapUint32(&limit.busy, 0, 1) {
		return
	}
	if groupShort(now) || limitOld(now) && lookAtLimit(now, 0) {
		returnFree(token, now)
	}
	atomic.StoreUint32(&limit.busy, 0)
}

// groupShort reports, once for each time, whether another process under the same caps was refused
// memory. That is a sign that memory is short. Precondition: limit.busy is the caller's.
func groupShort(now uint64) bool {
	short := group.Wanted(now)
	if short {
		setPressure(now, true)
	}
	return short
}

// returnFree returns free spans and cached huge blocks to the kernel.
func returnFree(token uintptr, now uint64) uintptr {
	done := hugeExpire(token, now, anyPlacement, true)
	for placement := uintptr(0); placement < placementSlots; placement++ {
		done += purgePlacement(token, now, placement, 0, purgeForRoom)
	}
	return done
}
