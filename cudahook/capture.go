package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// capture counts the streams that capture a graph. Calls of the driver that would spoil a
// capture, and are under way, end before it begins.
func capture(r *Request) uint64 {
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

// captureWait is how long a capture waits, in nanoseconds: what the device does before
// a wait ends may need the thread that captures.
const captureWait = 1_000_000_000

// quiet waits until no call is under way that would spoil a capture in the context.
func quiet(r *Request) uint64 {
	if atomic.LoadUint64(spoilersOf(r.Context)) == 0 || raw.Clock(raw.ClockMono) > r.deadline {
		return r.done(Success)
	}
	return r.act(phaseQuiet, ActYield)
}

// spoilers is the number of driver calls under way that must not overlap a capture, by the
// context that they are about: some share a place. Each is counted before it looks for
// captures, and each capture before it looks for them.
var spoilers [64]uint64

func spoilersOf(context uint64) *uint64 { return &spoilers[streamPlace(context)&63] }

// spoils is the context whose capture an action would spoil, or 0.
func (r *Request) spoils(action uint64) uint64 {
	switch action {
	case ActSynchronize, ActEventRecordContext:
		return r.OnContext
	case ActEventRecord, ActStreamWait:
		return r.Context
	}
	return 0
}

// maySpoil counts the request's next call, or reports false: a stream captures a graph.
func (r *Request) maySpoil(context uint64) bool {
	atomic.AddUint64(spoilersOf(context), 1)
	r.spoiling = context
	if capturing() {
		r.spoilt()
		return false
	}
	return true
}

// spoilt ends what maySpoil began.
func (r *Request) spoilt() {
	if r.spoiling != 0 {
		atomic.AddUint64(spoilersOf(r.spoiling), ^uint64(0))
		r.spoiling = 0
	}
}

// anyCacheOf is a stream cache of a stream in any pool, or nil.
func (h *heap) anyCacheOf(stream uint64) *streamCache {
	t := h.caches[streamPlace(stream)&(streamPlaces-1)]
	for t != nil && t.stream != stream {
		t = t.chain
	}
	return t
}

// endCaches ends the stream caches of a stream that is about to be destroyed, one with each round
// of a request. Its free blocks wait for what the stream has been given; those of a private pool
// stay in that. goOn: there are none left, and nobody is about to name the stream.
func (h *heap) endCaches(r *Request, stream uint64) uint64 {
	if r.see(h) {
		h.amendEvents(stream, 0)
	}
	if h.naming[streamPlace(stream)&(streamPlaces-1)] != 0 {
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

// empty takes all free blocks from a stream cache whose exact-size bins are empty: into a group of
// pending frees, or without one to those that are held.
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
