package cudahook

import (
	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
	"tieralloc/stats/profile"
)

// With TA_PROFILE every block of device memory is sampled (stats/profile/device.go), the driver's
// own allocations too. Memory that the heap itself gets from the driver is none of the program's
// requests. Only C can find a stack, so an allocation ends with ActSample before the program has
// its address.
//
// The profile knows blocks by their numbers. A free asks for ActForget before it changes the block,
// so that the profile never has two blocks with the same address in use. The driver may refuse to
// free memory of its own, so such a free ends with ActSample. A context that ends does the same for
// all its blocks; an allocation in it whose sample comes later is not kept (endedBlocks).
//
// No lock of a heap is held meanwhile: a thread that has the profile may wait for one in a signal
// handler (SampleBegin).

// sampling is set at boot if blocks are sampled.
var sampling bool

// endedBlocks is for each heap its serial number when a context of it ended last.
var endedBlocks profile.Ended

// The profile knows the parts of a block's number, and how many devices there may be.
var (
	_ [profile.HeapBit]uint8 = [numberIndex]uint8{}
	_ [profile.Heaps]uint8   = [heapMax]uint8{}
	_ [profile.Devices]uint8 = [deviceMax]uint8{}
)

// StartSampling has all blocks sampled from now on. It is called once, before all requests.
func StartSampling() {
	sampling = true
	setFastPath()
}

// sampled ends a request that was served, with ActSample if the profile is to know of it.
// Precondition: no lock is held.
func sampled(r *Request) Action {
	switch r.Op {
	case OpAlloc, OpStreamAlloc, OpForeign:
		if r.Result != Success || r.Address == 0 {
			return ActDone
		}
		if !r.identify() {
			profile.Miss()
			return ActDone
		}
		return ActSample
	case OpFree, OpStreamFree:
		if r.foreign != 0 && r.Result == Success {
			return ActSample
		}
	case OpContextEnd:
		return ActSample
	}
	return ActDone
}

// identify finds the block of an allocation: its Number, its Device, and in Extra the kind of its
// memory. It reports false if the heap does not have it.
func (r *Request) identify() bool {
	h := heapOf(r.Context)
	if h == nil || !h.lock.Take(uintptr(r.Token)) {
		return false
	}
	b := h.table.find(r.Address)
	ok := h.context == r.Context && b != nil
	if ok {
		r.Number, r.Device, r.Extra = b.number, h.ordinal, uint64(profile.Device)
		if b.segment != nil && b.segment.pool.spilled != 0 {
			r.Extra = uint64(profile.Spilled)
		}
		if r.Op == OpForeign && r.Count != 0 {
			r.Extra = uint64(profile.Managed)
		}
	}
	h.lock.Release()
	return ok
}

// SampleBegin carries out ActForget or begins ActSample. For an allocation it returns the walk in
// which the caller is to find its stack before it calls SampleEnd, or nil if the sample is lost.
// wait is as for profile.Note. A signal handler that interrupted the holder of a lock of this
// package does not wait: the thread that has the profile may wait for that lock.
func SampleBegin(r *Request, wait bool) *unwind.Stack {
	token := uintptr(r.Token)
	wait = wait && !Holds(token)
	switch r.Op {
	case OpFree, OpStreamFree:
		profile.Freed(token, uintptr(r.Number), wait)
	case OpContextEnd:
		profile.ContextEnded(token, wait, raw.Clock(raw.ClockMono), &endedBlocks)
	default:
		return profile.BeginDevice(token, wait)
	}
	return nil
}

// SampleEnd ends the sample of an allocation. wait is as for SampleBegin. how is how the walk has
// ended.
func SampleEnd(r *Request, wait bool, how uintptr) {
	token := uintptr(r.Token)
	b := profile.Block{Addr: uintptr(r.Number), Size: r.Bytes, Kind: uint32(r.Extra),
		Device: uint32(r.Device), Now: raw.Clock(raw.ClockMono)}
	profile.EndDevice(token, wait && !Holds(token), &b, how, &endedBlocks)
}
