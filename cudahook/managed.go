package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// With TA_CUDA_MANAGED=1 segments are managed memory. The preferred location is advice for a whole
// segment, so blocks for the device and blocks for the host are in separate pools. Cold requests
// use the spill pool first. Other requests use it only when TA_CUDA_ON_HARDCAP=spill sends them
// there (pressure.go). Segments are charged as plain memory is: one that prefers the device is
// charged to the device.
//
// If a device has no managed memory, its heaps use plain memory from then on.

// prefer sends a cold request to the spill pool.
func (h *heap) prefer(r *Request) {
	if r.Op != OpAlloc && r.Op != OpStreamAlloc || atomic.LoadUint64(&h.device.managed) == 0 {
		return
	}
	if h.poolOf(r).global != nil && r.hint() == uint64(config.HintCold) {
		r.set(spilling)
	}
}

// backToDevice sends a request to the device because the host has no memory for it. It reports
// false if the request came from the device: then host memory was its last resort.
func (h *heap) backToDevice(r *Request) bool {
	if r.has(lastHost) {
		return false
	}
	r.unset(spilling | triedFence) // fence tried the blocks of the spill pool
	r.set(lastHost)
	return true
}

// comesBack reports whether a request that the host had no memory for may try the host again. By
// the time that the device has none either, all pending work was waited for, and that may have
// freed host memory.
func (r *Request) comesBack() bool { return r.has(lastHost) && !r.has(plainly) }

// unmanaged takes the driver's refusal of a segment, and reports whether the request continues with
// plain memory on the device. It does if the segment was managed and the driver was not merely out
// of memory. If the driver says that the device has no managed memory, the device uses plain memory
// from then on. Other errors (a kernel's failure, the end of a context, a capture that began
// meanwhile) affect this request only.
func (h *heap) unmanaged(r *Request, s *segment) bool {
	if s.managed == 0 || r.Result == ErrorOutOfMemory || s.pool.spilled != 0 && !h.backToDevice(r) {
		return false
	}
	r.set(plainly)
	if (r.Result == errorNotSupported || r.Result == ErrorInvalidValue) &&
		atomic.CompareAndSwapUint64(&h.device.managed, 1, 0) {
		stats.Put1(config.LogWarn, stats.EventDevicePlain, uintptr(h.ordinal), uintptr(r.Result))
	}
	return true
}
