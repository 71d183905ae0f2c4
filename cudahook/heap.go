package cudahook

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// A heap is the memory of one context. Its lock guards everything in it except context and epoch,
// and is held within one step of a request only.
//
// For the blocks of either side (device or host):
//
//	local = Σ bytes of blocks in exact-size bins, and in bins of streams' caches
//	global = Σ bytes of blocks in bins of global caches
//	private = the same of stream caches of private pools
//	Σ bytes of the segments = live + local + global + private + pending + held + lost
//	                        = reserved + asleep
type heap struct {
	raw.OffHeap
	lock    raw.Lock
	context uint64 // 0: this entry of the table is free
	epoch   uint64 // rises when the context ends and makes older requests invalid
	device  *device
	ordinal uint64
	slot    uint64 // its index in the table

	uuid [2]uint64
	pci  uint64 // as in stats.Device

	clock   uint64 // rises with each free
	serial  uint64 // number of the block handed out last
	visit   uint64 // number of the request that visited stream caches last
	now     uint64 // monotonic nanoseconds, coarse, at the last step
	blind   bool   // the call under way has not read the clock: now is old
	flushed uint64 // when all exact-size bins were merged
	looked  uint64 // when the device's free memory was asked for
	pressed bool   // less than 1/16 of it was free then
	warmed  uint64 // entries of settings.warm that were mapped

	round uint64 // of warm-up: rises with each list of sizes

	lastCache *streamCache // the one used last
	allCaches *streamCache

	arena arena
	table table
	index index
	near  *nearBlocks // nil: none yet
	aged  uint64      // when no free piece was found old

	spareBlocks       *block
	spareSegments     *segment
	spareStreamEvents *streamEvent
	sparePending      *pendingFrees
	spareCaches       *streamCache

	mainPool, spillPool *pool
	pools               *pool // private ones
	active              *pool // the private pool that allocations belong to now; nil: mainPool

	idleFirst, idleLast *segment

	open        *pendingFrees // plain frees that have no event yet
	queue, tail *pendingFrees // groups whose events are recorded, oldest first
	allPending  *pendingFrees // all groups
	held        *block        // freed while a graph was captured
	idleEvents  *streamEvent  // their events may be recorded again
	withEvents  uint64        // blocks in use that have stream events

	streams *streamTable

	count counts

	// Bytes on the device and on the host that the driver has mapped but that cannot be used or
	// freed. They stay charged until the context ends, and change atomically.
	unusable [2]uint64
}

// counts are a heap's figures, under the names of stats.Device.
type counts struct {
	side [2]side // on the device, spilled to the host

	frees                         uint64
	hitLocal, hitGlobal, hitSplit uint64
	misses, foreignCalls, refused uint64
	waits, wrongFrees             uint64
	splits, merges                uint64
	asked, askedPeak, livePeak    uint64
	reserved, reservedPeak        uint64
	asleep                        uint64 // bytes of segments that sleep
	foreign, foreignBlocks        uint64
	idles                         uint64 // idle segments
	globals                       uint64 // blocks in bins of global caches
	segments, warmed              uint64
	spills, spilled               uint64
	releases, released            uint64
	driverRefused, pressures      uint64
	calls                         [32]uint64 // by action
}

// side holds the figures of the blocks on one side.
type side struct {
	allocs, frees, total, totalFreed uint64 // blocks, and their rounded bytes
	live, blocks                     uint64
	// free bytes: of one stream, of all streams, of private pools
	local, global, private uint64
	// pending: bytes of a request or a group of pending frees; held: bytes that wait for the end of
	// a capture
	pending, held uint64
	lost          uint64 // bytes of blocks that a failed driver call made unusable
}

func (s *side) all() uint64 {
	return s.live + s.local + s.global + s.private + s.pending + s.held + s.lost
}

// add adds the figures of another heap. Peaks are not added: the higher one stays.
func (c *counts) add(o *counts) {
	asked, live, reserved := max(c.askedPeak, o.askedPeak), max(c.livePeak, o.livePeak),
		max(c.reservedPeak, o.reservedPeak)
	to, from := uintptr(unsafe.Pointer(c)), uintptr(unsafe.Pointer(o))
	for at := uintptr(0); at < unsafe.Sizeof(*c); at += 8 {
		raw.Store(to+at, raw.Load(to+at)+raw.Load(from+at))
	}
	c.askedPeak, c.livePeak, c.reservedPeak = asked, live, reserved
}

const (
	heapMax          = 32
	streamCacheBytes = unsafe.Sizeof(streamCache{})
	poolBytes        = unsafe.Sizeof(pool{})
	heapBytes        = uint64(unsafe.Sizeof(heap{}))
)

// The heaps and what they share. tableLock guards the beginning and ending of heaps, and peers. It
// is taken before the lock of a heap.
var (
	heaps     [heapMax]heap
	heapsUsed uint64 // heaps from this one on were never used; see usedHeaps
	tableLock raw.Lock
	captures  uint64 // streams that capture a graph now
	off       uint32 // 1: in a forked child, where the driver does not work
)

// current returns the context that a request is made in, or 0 if it is not known yet.
func (r *Request) current() uint64 {
	switch {
	case r.Context != 0:
		return r.Context
	case r.Device >= deviceMax:
		return 0
	}
	return atomic.LoadUint64(&devices[r.Device&(deviceMax-1)].primary)
}

// usedHeaps returns the heaps that were ever used. Their table is large, and a process without CUDA
// must not touch it: at fork each page would cost parent and child a page fault.
func usedHeaps() []heap {
	return heaps[:min(atomic.LoadUint64(&heapsUsed), heapMax)]
}

// heapOf returns the heap of a context, or nil. The caller checks the context again once it holds
// the lock.
func heapOf(context uint64) *heap {
	if context == 0 {
		return nil
	}
	for i := range usedHeaps() {
		if atomic.LoadUint64(&heaps[i].context) == context {
			return &heaps[i]
		}
	}
	return nil
}

// newHeap returns the heap of a context, a new one if it has none. It returns nil if the table is
// full.
func newHeap(token uintptr, context, ordinal, memory uint64, uuid [2]uint64) (h *heap) {
	if context == 0 || ordinal >= deviceMax || !tableLock.Take(token) {
		return nil
	}
	devices[ordinal&(deviceMax-1)].register(memory, uuid)
	for i := range heaps {
		switch atomic.LoadUint64(&heaps[i].context) {
		case context:
			tableLock.Release()
			return &heaps[i]
		case 0:
			if h == nil {
				h = &heaps[i]
			}
		}
	}
	if h != nil && !h.use(token, context, ordinal) {
		h = nil
	}
	tableLock.Release()
	return h
}

// use makes an unused heap that of a context. Precondition: tableLock is held.
func (h *heap) use(token uintptr, context, ordinal uint64) (ok bool) {
	slot := uint64(uintptr(unsafe.Pointer(h))-uintptr(unsafe.Pointer(&heaps))) / heapBytes
	atomic.StoreUint64(&heapsUsed, max(heapsUsed, slot+1)) // a fork from now on takes its lock
	if !h.lock.Take(token) {
		return false
	}
	if ok = h.begin(ordinal); ok {
		h.slot = slot
		atomic.StoreUint64(&h.context, context)
		if atomic.LoadUint64(&h.device.primary) == context {
			atomic.StoreUint64(&h.device.slot, slot)
		}
	}
	h.lock.Release()
	return ok
}

// begin prepares a heap for a context. Precondition: the heap is zero or was wiped.
func (h *heap) begin(ordinal uint64) bool {
	h.ordinal = ordinal
	h.device = &devices[ordinal&(deviceMax-1)]
	h.clock = 1
	h.mainPool, h.spillPool = h.newPool(0, 0), h.newPool(0, 0)
	h.streams = (*streamTable)(raw.Ptr(h.arena.take(unsafe.Sizeof(streamTable{}))))
	if h.mainPool == nil || h.spillPool == nil || h.streams == nil {
		h.wipe()
		return false
	}
	h.spillPool.spilled = 1
	for i, p := range [2]*pool{h.mainPool, h.spillPool} {
		t := h.newCache(streamEvery, p)
		if t == nil {
			h.wipe()
			return false
		}
		p.global, t.counted = t, uintptr(unsafe.Pointer(&h.count.side[i&1].global))
	}
	return true
}

func (h *heap) newPool(id0, id1 uint64) *pool {
	p := (*pool)(raw.Ptr(h.arena.take(poolBytes)))
	if p != nil {
		p.id0, p.id1 = id0, id1
	}
	return p
}

// wipe drops all blocks and segments: the driver has freed the context's memory. The device keeps
// the figures. Precondition: tableLock is held.
func (h *heap) wipe() {
	h.arena.rewind()
	h.table.clear()
	h.index.clear()
	for p := h.pools; p != nil; p = p.next {
		p.addresses.clear()
	}
	if h.mainPool != nil {
		h.mainPool.addresses.clear()
	}
	h.lastCache, h.allCaches = nil, nil
	h.spareBlocks, h.spareSegments, h.spareCaches = nil, nil, nil
	h.spareStreamEvents, h.sparePending = nil, nil
	h.mainPool, h.spillPool, h.pools, h.active = nil, nil, nil, nil
	h.idleFirst, h.idleLast = nil, nil
	h.open, h.queue, h.tail, h.allPending = nil, nil, nil, nil
	h.held, h.idleEvents, h.withEvents = nil, nil, 0
	h.near = nil
	h.warmed = 0
	c := &h.count
	c.asked, c.reserved, c.foreign, c.foreignBlocks, c.asleep = 0, 0, 0, 0, 0
	c.idles, c.globals, c.segments = 0, 0, 0
	for i := range c.side {
		s := &c.side[i]
		s.live, s.blocks, s.local, s.global, s.private, s.pending, s.held, s.lost = 0, 0, 0, 0, 0,
			0, 0, 0
	}
	h.device.past.add(c)
	*c = counts{}
	h.streams = nil
	atomic.AddUint64(&h.epoch, 1)
}

// cached returns the bytes on the device that some stream could get at once.
func (h *heap) cached() uint64 { return h.count.side[0].local + h.count.side[0].global }

// capturing reports whether any stream captures a graph. Meanwhile the heap waits for nothing,
// records no events and unmaps no segments.
func capturing() bool { return atomic.LoadUint64(&captures) != 0 }
