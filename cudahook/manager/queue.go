package manager

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A queue holds the requests of an instance for its group's next round. It does not change during
// the round (round.go).
//
//	length <= QueueMax
type queue struct {
	raw.OffHeap
	next   *queue // in the list of spare queues
	runs   uint64
	length uint64
	wishes [QueueMax]wish
}

// A wish is one queued array: a copy of the program's ta_mm_request and its shape.
//
//	bytes = itemsize · Π shape, where the chunkable axis has the length of a chunk
type wish struct {
	request request
	lengths [dimensions]uint64
	block   uint64
	placed  uint64 // 1: block is set; it is 0 if the array has no bytes
}

// A request is ta_mm_request of tieralloc.h.
type request struct {
	itemsize    uint64
	shape       uintptr // ndim lengths
	ndim        int32
	axis        int32
	unchunkable int32
	kind        int32
}

// How many arrays an instance can queue for, and how many dimensions one can have.
const (
	QueueMax   = 64
	dimensions = 32
)

// enqueue replaces the queued requests of an instance, except during a round. An invalid call
// changes nothing.
func (m *manager) enqueue(c *Call, i *instance) uint64 {
	if i.round != 0 {
		return busy
	}
	if c.Runs == 0 || c.Runs > most || c.Count > QueueMax {
		return invalid
	}
	for k := uint64(0); k < c.Count; k++ {
		r := requestAt(c, k)
		if _, _, ok := r.size(0); !ok || r.ndim > dimensions || uint64(uint32(r.kind)) >= kinds {
			return invalid
		}
	}
	q := i.queue
	if q == nil {
		if q = m.newQueue(); q == nil {
			return noMemory
		}
		i.queue = q
	}
	q.runs, q.length = c.Runs, c.Count
	for k := uint64(0); k < c.Count; k++ {
		q.wishes[k&(QueueMax-1)].copy(requestAt(c, k))
	}
	return 0
}

func (w *wish) copy(r *request) {
	w.request, w.block, w.placed = *r, 0, 0
	w.request.shape = uintptr(unsafe.Pointer(&w.lengths))
	for k := int32(0); k < r.ndim; k++ {
		w.lengths[k&(dimensions-1)] = uint64(raw.Load(r.shape + uintptr(k)*8))
	}
}

// newQueue returns an empty queue, or nil.
func (m *manager) newQueue() *queue {
	q := m.spareQueues
	if q == nil {
		return (*queue)(raw.Ptr(m.take(unsafe.Sizeof(queue{}))))
	}
	m.spareQueues = q.next
	q.next = nil
	return q
}

// dequeue drops the queued requests of an instance.
func (m *manager) dequeue(i *instance) {
	if i.queue != nil {
		i.queue.next = m.spareQueues
		m.spareQueues = i.queue
		i.queue = nil
	}
}
