package share

import (
	"math/bits"
	"unsafe"

	"tieralloc/internal/raw"
)

// Chunking is how requests are cut; ta_mm_chunking of tieralloc.h.
type Chunking struct {
	Size                   uint64
	Chunkable, Unchunkable uint64
	Available              uint64
	ChunkLength, Chunks    uint64
	FarTooLarge            uint32
	NearlyFull             uint32
}

// requestAt is the k-th request of a call.
func requestAt(c *Call, k uint64) *request {
	return (*request)(raw.Ptr(uintptr(c.Address) + uintptr(k)*unsafe.Sizeof(request{})))
}

// chunk cuts the requests of a group along their axis of runs, so that what is cut and what
// is not fit together:
//
//	room   = available - unchunkable
//	length = floor(runs · room / chunkable)
//	chunks = ceil(runs / length)
//
// These are the formulas of cubie's get_chunk_parameters, which has chunkable / room as a
// double; here they are of whole numbers, and exact.
func (m *manager) chunk(c *Call) uint64 {
	var group label
	to := (*Chunking)(raw.Ptr(uintptr(c.Value)))
	if !group.set(uintptr(c.Group)) || c.Bytes == 0 || c.Bytes > most || to == nil {
		return invalid
	}
	m.begin(to, &group, c.Free, c.Bytes)
	for k := uint64(0); k < c.Count; k++ {
		bytes, cuttable, ok := requestAt(c, k).size()
		if !ok {
			return invalid
		}
		to.count(bytes, cuttable)
	}
	return to.fit(c.Free, c.Bytes)
}

// begin starts the chunking of nothing, in one chunk.
func (m *manager) begin(to *Chunking, group *label, free, runs uint64) {
	available, full := m.available(group, free)
	*to = Chunking{Size: uint64(unsafe.Sizeof(*to)), Available: available, ChunkLength: runs, Chunks: 1}
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

// fit finds the length of a chunk.
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
	case to.Unchunkable >= to.Available:
		return tooLarge
	}
	length := mulDiv(runs, min(to.Available-to.Unchunkable, to.Chunkable), to.Chunkable)
	if length == 0 {
		return noSpace
	}
	to.ChunkLength, to.Chunks = length, (runs-1)/length+1
	return 0
}

// size is the bytes of a request, at most most, and whether it can be cut; not ok: it is none.
func (r *request) size() (bytes uint64, cuttable, ok bool) {
	if r.ndim < 0 || r.ndim > 0 && r.shape == 0 {
		return 0, false, false
	}
	bytes = min(r.itemsize, most)
	cuttable = r.axis >= 0 && r.axis < r.ndim && r.unchunkable == 0
	for i := int32(0); i < r.ndim; i++ {
		length := uint64(raw.Load(r.shape + uintptr(i)*8))
		if i == r.axis && length == 1 {
			cuttable = false
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

// mulDiv is floor(a · b / c), by long division. Precondition: b <= c, 0 < c <= most.
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
