package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// capture counts the streams that capture a graph. Before a capture begins, it waits for driver
// calls under way that would invalidate it.
func capture(r *Request) Action {
	if r.Count != 0 {
		atomic.AddUint64(&captures, 1)
		r.timed()
		r.deadline = r.Now + captureWait
		return quiet(r)
	}
	for n := atomic.LoadUint64(&captures); n != 0; n = atomic.LoadUint64(&captures) {
		if atomic.CompareAndSwapUint64(&captures, n, n-1) {
			break
		}
	}
	return r.done(Success)
}

// captureWait is how long a capture waits at most, in nanoseconds. The limit avoids a deadlock: the
// work that a driver call waits for may need the thread that captures.
const captureWait = 1_000_000_000

// quiet waits until no call is under way that would invalidate a capture in the context.
func quiet(r *Request) Action {
	if atomic.LoadUint64(spoilersOf(r.Context)) == 0 || raw.Clock(raw.ClockMono) > r.deadline {
		return r.done(Success)
	}
	return r.act(phaseQuiet, ActYield)
}

// spoilers counts the driver calls under way that would invalidate a capture, by a hash of their
// context. A call is counted before it checks for captures, and a capture is counted before it
// checks for calls, so that one of them sees the other.
var spoilers [64]uint64

func spoilersOf(context uint64) *uint64 { return &spoilers[streamPlace(context)&63] }

// spoils returns the context whose captures an action would invalidate, or 0.
func (r *Request) spoils(action Action) uint64 {
	switch action {
	case ActSynchronize, ActEventRecordContext:
		return r.OnContext
	case ActEventRecord, ActStreamWait:
		return r.Context
	}
	return 0
}

// maySpoil counts the request's next call among the spoilers. It reports false, and counts nothing,
// while a stream captures a graph.
func (r *Request) maySpoil(context uint64) bool {
	atomic.AddUint64(spoilersOf(context), 1)
	r.spoiling = context
	if capturing() {
		r.spoilt()
		return false
	}
	return true
}

// spoilt uncounts the call that maySpoil counted.
func (r *Request) spoilt() {
	if r.spoiling != 0 {
		atomic.AddUint64(spoilersOf(r.spoiling), ^uint64(0))
		r.spoiling = 0
	}
}

// anyCacheOf returns a stream cache of a stream in any pool, or nil.
func (h *heap) anyCacheOf(stream uint64) *streamCache {
	t := h.streams.caches[streamPlace(stream)&(streamPlaces-1)]
	for t != nil && t.stream != stream {
		t = t.chain
	}
	return t
}

// endCaches ends the stream caches of a stream that is about to be destroyed. Their free blocks
// become pending frees that wait for the stream's work; those of a private pool stay in the pool.
// goOn: none are left, and no request is about to pass the stream to the driver.
func (h *heap) endCaches(r *Request, stream uint64) Action {
	if r.see(h) {
		h.amendEvents(stream, 0)
	}
	if h.streams.naming[streamPlace(stream)&(streamPlaces-1)] != 0 {
		return r.act(phaseYield, ActYield)
	}
	for t := h.anyCacheOf(stream); t != nil; t = h.anyCacheOf(stream) {
		h.flush(t)
		if t.pool.global == nil || t.free == 0 {
			h.endCache(t)
			continue
		}
		p := (*pendingFrees)(nil)
		if !capturing() {
			p = h.newPending()
		}
		h.empty(t, p)
		h.endCache(t)
		if p == nil {
			continue
		}
		if !h.addStreamEvent(&p.events, h.context, stream) {
			p.wide = 1
		}
		r.object = uint64(uintptr(unsafe.Pointer(p)))
		if action := h.record(r); action != goOn {
			return action
		}
	}
	return goOn
}

// empty moves all free blocks of a stream cache to a group of pending frees, or to the held blocks
// if p is nil. Precondition: its exact-size bins are empty.
func (h *heap) empty(t *streamCache, p *pendingFrees) {
	for kind := range t.bins {
		k := &t.bins[kind]
		for i := range k.head {
			for k.head[i] != nil {
				b := k.head[i]
				h.unbin(b)
				if p != nil {
					h.join(p, b)
				} else {
					h.hold(b)
				}
			}
		}
	}
}
