package manager

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A queue is what an instance wants at the next allocation for its group, and does not change
// while that goes on (round.go).
//
//	length <= QueueMax
type queue struct {
	raw.OffHeap
	next   *queue // of the spare ones
	runs   uint64
	length uint64
	wishes [QueueMax]wish
}

// A wish is one array: ta_mm_request, with its shape in memory of our own.
//
//	bytes = itemsize · Π shape, once the axis that can be cut has a chunk's length
type wish struct {
	request request
	lengths [dimensions]uint64
	block   uint64
	placed  uint64 // 1: block is its block, 0 for one without bytes
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

// enqueue replaces what an instance has queued for, unless that is being allocated. A call
// that is no good changes nothing.
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

// dequeue forgets what an instance has queued for.
func (m *manager) dequeue(i *instance) {
	if i.queue != nil {
		i.queue.next = m.spareQueues
		m.spareQueues = i.queue
		i.queue = nil
	}
}
