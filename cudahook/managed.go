package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/stats"
)

// With TA_CUDA_MANAGED=1 segments are managed memory. Where its pages should lie is advice
// for a whole segment, so blocks for the device and for the host are in pools of their
// own: cold requests begin in that of spilled blocks, all others come there only when
// TA_CUDA_ON_HARDCAP=spill sends them (pressure.go). Charges are as those of plain memory: a
// segment that prefers the device is on the device.
//
// A device whose driver has no managed memory has plain memory from then on.

// prefer sends a cold request to the host at once.
func (h *heap) prefer(r *Request) {
	if r.Op != OpAlloc && r.Op != OpStreamAlloc || atomic.LoadUint64(&h.device.managed) == 0 {
		return
	}
	if h.poolOf(r).global != nil && r.hint() == uint64(config.HintCold) {
		r.set(spilling)
	}
}

// backToDevice sends a request on to the device for which the host has no memory. It reports
// false where that comes from there: then memory on the host was the last resort.
func (h *heap) backToDevice(r *Request) bool {
	if r.has(lastHost) {
		return false
	}
	r.unset(spilling | triedFence) // that was for another pool's blocks
	r.set(lastHost)
	return true
}

// comesBack reports whether a request that the host had no memory for may ask there again:
// when the device has none either, all work that was pending has been waited for.
func (r *Request) comesBack() bool { return r.has(lastHost) && !r.has(plainly) }

// unmanaged takes the driver's refusal of a segment, and reports whether the request goes on
// with plain memory on the device: where managed memory was asked for, and was not only
// short. That is the device's from then on where the driver says that it has none, and not
// for what a kernel's failure, a context's end or a capture that began meanwhile leads to.
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
