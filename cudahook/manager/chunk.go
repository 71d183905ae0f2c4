package manager

import (
	"math/bits"
	"unsafe"

	"tieralloc/cudahook"
	"tieralloc/internal/raw"
)

// Chunking says how requests are chunked; ta_mm_chunking of tieralloc.h.
type Chunking struct {
	Size                   uint64
	Chunkable, Unchunkable uint64
	Available              uint64
	ChunkLength, Chunks    uint64
	FarTooLarge            uint32
	NearlyFull             uint32
}

// requestAt returns the k-th request of a call.
func requestAt(c *Call, k uint64) *request {
	return (*request)(raw.Ptr(uintptr(c.Requests) + uintptr(k)*unsafe.Sizeof(request{})))
}

// chunk divides the requests of a group along their axis of runs, so that a chunk of the chunkable
// ones fits beside the others:
//
//	room   = available - unchunkable
//	length = floor(runs · room / chunkable)
//	chunks = ceil(runs / length)
//
// These are the formulas of cubie's get_chunk_parameters, which computes chunkable / room as a
// double; here they are exact, in integers. The chunk is then shortened until its arrays fit
// (shorten).
func (m *manager) chunk(c *Call) uint64 {
	var group label
	to := (*Chunking)(raw.Ptr(uintptr(c.Out)))
	if !group.set(uintptr(c.Group)) || c.Runs == 0 || c.Runs > most || to == nil {
		return invalid
	}
	m.begin(to, &group, c.Free, c.Runs)
	for k := uint64(0); k < c.Count; k++ {
		bytes, cuttable, ok := requestAt(c, k).size(0)
		if !ok {
			return invalid
		}
		to.count(bytes, cuttable)
	}
	if why := to.fit(c.Free, c.Runs); why != 0 {
		return why
	}
	return m.shorten(to, c, nil, c.Runs)
}

// hopeless reports whether the requests would not fit even if the device's memory and the group's
// budget were unused.
func (m *manager) hopeless(of *Chunking, group *label, total, runs uint64) bool {
	alone := *of
	alone.Available = total
	if m.active != 0 {
		limit, _ := m.budget(group)
		alone.Available = min(total, limit)
	}
	return alone.fit(total, runs) != 0
}

// A load is the memory that arrays take: their bytes, and the device heap's memory for those on the
// device.
type load struct {
	bytes uint64
	heap  cudahook.Footprint
}

// add adds a request, in chunks of so many runs.
func (l *load) add(r *request, runs uint64) {
	bytes, _, _ := r.size(runs)
	l.bytes = min(l.bytes+bytes, most)
	if kind := uint64(uint32(r.kind)); kind == KindDevice || kind == KindManaged {
		l.heap.Add(bytes)
	}
}

// load returns the load of a call's requests, or of the queued requests of an instance's group, in
// chunks of so many runs (0: unchunked).
func (m *manager) load(c *Call, of *instance, runs uint64) (l load) {
	if of == nil {
		for k := uint64(0); k < c.Count; k++ {
			l.add(requestAt(c, k), runs)
		}
		return l
	}
	for i := m.first; i != nil; i = i.next {
		if i.queue == nil || i.group != of.group {
			continue
		}
		for k := uint64(0); k < i.queue.length; k++ {
			l.add(&i.queue.wishes[k&(QueueMax-1)].request, runs)
		}
	}
	return l
}

// fits reports whether chunks of so many runs fit. With rounded, they must also fit as the device
// heap rounds them.
func (m *manager) fits(to *Chunking, c *Call, of *instance, runs uint64, rounded bool) bool {
	l := m.load(c, of, runs)
	return l.bytes <= to.Available && (!rounded || l.heap.Bytes() <= c.Free)
}

// longest returns the length of the longest chunk that fits and is shorter than over, or 0 if none
// fits.
func (m *manager) longest(to *Chunking, c *Call, of *instance, over uint64,
	rounded bool) (fits uint64) {
	for over-fits > 1 {
		middle := fits + (over-fits)/2
		if m.fits(to, c, of, middle, rounded) {
			fits = middle
		} else {
			over = middle
		}
	}
	return fits
}

// shorten shortens the chunk until its arrays fit. They may take more than their proportion,
// because arrays with fewer runs are not divided and the device heap rounds. If no chunk fits as
// the device heap rounds, the rounding is ignored: the free memory may be in segments that are
// mapped already.
func (m *manager) shorten(to *Chunking, c *Call, of *instance, runs uint64) uint64 {
	whole, heap := uint64(0), c.FreeOfHeap != 0
	if to.Chunks > 1 {
		whole = to.ChunkLength
	}
	if to.Chunkable == 0 || m.fits(to, c, of, whole, heap) {
		return 0
	}
	length := m.longest(to, c, of, to.ChunkLength, heap)
	if length == 0 {
		if m.fits(to, c, of, whole, false) {
			return 0
		}
		length = m.longest(to, c, of, to.ChunkLength, false)
	}
	if length == 0 {
		to.ChunkLength, to.Chunks = runs, 1
		return noSpace
	}
	to.ChunkLength, to.Chunks = length, (runs-1)/length+1
	return 0
}

// begin resets a chunking: no requests, one chunk.
func (m *manager) begin(to *Chunking, group *label, free, runs uint64) {
	available, full := m.available(group, free)
	*to = Chunking{Size: uint64(unsafe.Sizeof(*to)), Available: available, ChunkLength: runs,
		Chunks: 1}
	if full {
		to.NearlyFull = 1
	}
}

// count adds an array.
func (to *Chunking) count(bytes uint64, cuttable bool) {
	if cuttable {
		to.Chunkable = min(to.Chunkable+bytes, most)
	} else {
		to.Unchunkable = min(to.Unchunkable+bytes, most)
	}
}

// fit computes the length of a chunk.
func (to *Chunking) fit(free, runs uint64) uint64 {
	all := to.Chunkable + to.Unchunkable
	if all < to.Available {
		return 0
	}
	if all/20 > free || all/20 == free && all%20 != 0 {
		to.FarTooLarge = 1
	}
	switch {
	case to.Chunkable == 0:
		return unchunked
	case to.Unchunkable != 0 && to.Unchunkable >= to.Available:
		return tooLarge
	}
	length := mulDiv(runs, min(to.Available-to.Unchunkable, to.Chunkable), to.Chunkable)
	if length == 0 {
		return noSpace
	}
	to.ChunkLength, to.Chunks = length, (runs-1)/length+1
	return 0
}

// size returns the bytes of a request, at most most, in chunks of so many runs (0: unchunked), and
// whether it can be chunked. No chunk is longer than its axis. ok is false if the request is
// invalid.
func (r *request) size(runs uint64) (bytes uint64, cuttable, ok bool) {
	if r.ndim < 0 || r.ndim > 0 && r.shape == 0 {
		return 0, false, false
	}
	bytes = min(r.itemsize, most)
	cuttable = r.axis >= 0 && r.axis < r.ndim && r.unchunkable == 0 && r.length(r.axis) != 1
	for i := int32(0); i < r.ndim; i++ {
		length := r.length(i)
		if i == r.axis && cuttable && runs != 0 {
			length = min(length, runs)
		}
		hi, lo := bits.Mul64(bytes, length)
		if bytes = min(lo, most); hi != 0 {
			bytes = most
		}
		if length == 0 {
			return 0, cuttable, true
		}
	}
	return bytes, cuttable, true
}

// length returns the length of an axis.
func (r *request) length(i int32) uint64 { return uint64(raw.Load(r.shape + uintptr(i)*8)) }

// mulDiv returns floor(a · b / c), by long division. Precondition: b <= c, 0 < c <= most.
func mulDiv(a, b, c uint64) (q uint64) {
	rest := uint64(0)
	for i := bits.Len64(a); i > 0; i-- {
		q <<= 1
		rest <<= 1 // < 2·most
		if a>>uint(i-1)&1 != 0 {
			rest += b // < 3·most
		}
		for rest >= c {
			rest -= c
			q++
		}
	}
	return q
}
