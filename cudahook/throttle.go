package cudahook

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// throttled charges a request that was served to the bucket of its device. With settings.sleep it
// sleeps for the waiting time. Otherwise the time is only counted, and the bucket's clock is the
// monotonic clock plus the time counted so far, as in package tiers. Precondition: no lock is held.
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
	atomic.AddUint64(&d.overshoot, raw.SleepUntil(now+ns))
}
