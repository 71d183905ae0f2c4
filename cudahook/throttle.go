package cudahook

import (
	"sync/atomic"
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// throttled charges a request that has been served to the bucket of its device, and
// sleeps as long as that wants where settings.sleep says so. Else the buckets' clock is
// the monotonic clock plus what was counted so far, as in package tiers.
// Precondition: no lock is held.
func throttled(r *Request) {
	if r.Result != Success || r.Device >= deviceMax {
		return
	}
	d := &devices[r.Device&(deviceMax-1)]
	r.timed()
	now := r.Now
	ns := d.bucket.Charge(now+atomic.LoadUint64(&d.waited), uintptr(r.Bytes))
	if ns == 0 {
		return
	}
	atomic.AddUint64(&d.waitNs, ns)
	if !settings.sleep {
		atomic.AddUint64(&d.waited, ns)
		return
	}
	atomic.AddUint64(&d.sleeps, 1)
	atomic.AddUint64(&d.overshoot, sleepUntil(now+ns))
}

// sleepUntil sleeps until the monotonic clock shows deadline, whatever signals come, and
// returns by how many nanoseconds it woke too late.
func sleepUntil(deadline uint64) (late uint64) {
	const (
		absolute = 1 // TIMER_ABSTIME
		second   = 1_000_000_000
	)
	ts := [2]uint64{deadline / second, deadline % second}
	errno := uintptr(syscall.EINTR)
	for errno == uintptr(syscall.EINTR) {
		_, errno = raw.Sys(syscall.SYS_CLOCK_NANOSLEEP, raw.ClockMono, absolute, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	}
	if now := raw.Clock(raw.ClockMono); now > deadline {
		return now - deadline
	}
	return 0
}
