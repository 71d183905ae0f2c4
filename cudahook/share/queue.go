package share

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A queue is what an instance wants at the next allocation for its group.
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
	block   uint64 // once there is one
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

// enqueue replaces what an instance has queued for. A call that is no good changes nothing.
func (m *manager) enqueue(c *Call, i *instance) uint64 {
	if c.Bytes == 0 || c.Bytes > most || c.Count > QueueMax {
		return invalid
	}
	for k := uint64(0); k < c.Count; k++ {
		r := requestAt(c, k)
		if _, _, ok := r.size(); !ok || r.ndim > dimensions || uint64(uint32(r.kind)) >= kinds {
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
	q.runs, q.length = c.Bytes, c.Count
	for k := uint64(0); k < c.Count; k++ {
		q.wishes[k&(QueueMax-1)].copy(requestAt(c, k))
	}
	return 0
}

func (w *wish) copy(r *request) {
	w.request, w.block = *r, 0
	w.request.shape = uintptr(unsafe.Pointer(&w.lengths))
	for k := int32(0); k < r.ndim; k++ {
		w.lengths[k&(dimensions-1)] = uint64(raw.Load(r.shape + uintptr(k)*8))
	}
}

// plan finds one chunking for all that the group of an instance has queued for, of as many
// runs as the longest has.
func (m *manager) plan(c *Call, of *instance) uint64 {
	to := (*Chunking)(raw.Ptr(uintptr(c.Value)))
	runs := uint64(1)
	for i := m.first; i != nil; i = i.next {
		if i.queue != nil && i.group == of.group {
			runs = max(runs, i.queue.runs)
		}
	}
	m.begin(to, &of.group, c.Free, runs)
	for i := m.first; i != nil; i = i.next {
		if i.queue == nil || i.group != of.group {
			continue
		}
		for k := uint64(0); k < i.queue.length; k++ {
			bytes, cuttable, _ := i.queue.wishes[k&(QueueMax-1)].request.size()
			to.count(bytes, cuttable)
		}
	}
	return to.fit(c.Free, runs)
}

// member names the Count-th instance of the group of another: Value, Ready and Arg, with
// Bytes arrays that it has queued for.
func (m *manager) member(c *Call, of *instance) uint64 {
	n := c.Count
	for i := m.first; i != nil; i = i.next {
		if i.group != of.group {
			continue
		}
		if n == 0 {
			c.Value, c.Ready, c.Arg, c.Bytes = i.id, i.ready, i.readyArg, 0
			if i.queue != nil {
				c.Bytes = i.queue.length
			}
			return 0
		}
		n--
	}
	return notThere
}

// wished tells of the Count-th array that an instance has queued for, with chunks of Free
// runs, 0 for all at once: Bytes, Kind, and its block's Address. No chunk is longer than
// its axis.
func (c *Call) wished(i *instance) uint64 {
	if i.queue == nil || c.Count >= i.queue.length {
		return notThere
	}
	w := &i.queue.wishes[c.Count&(QueueMax-1)]
	r := w.request
	_, cuttable, _ := r.size()
	at := r.axis & (dimensions - 1)
	whole := w.lengths[at]
	if cuttable && c.Free != 0 {
		w.lengths[at] = min(whole, c.Free)
	}
	c.Bytes, _, _ = r.size()
	w.lengths[at] = whole
	c.Kind, c.Address = uint64(uint32(r.kind)), w.block
	return 0
}

// place notes the block of the Count-th array, or with Address 0 that it has none.
func (c *Call) place(i *instance) uint64 {
	if i.queue == nil || c.Count >= i.queue.length {
		return notThere
	}
	i.queue.wishes[c.Count&(QueueMax-1)].block = c.Address
	return 0
}

// newQueue returns an empty queue, or nil.
func (m *manager) newQueue() *queue {
	q := m.spareQueues
	if q == nil {
		return (*queue)(raw.Ptr(m.cut(unsafe.Sizeof(queue{}))))
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
