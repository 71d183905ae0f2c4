package manager

import (
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// A manager is one ta_mm. A destroyed one stays mapped, so that calls with its address fail. The
// next manager reuses it.
//
//	bytes of an instance = Σ bytes of its blocks + what it has from other sources
//	cap of an instance   = floor(proportion · total)
//	Σ manual proportions <= 1; an automatic one is (1 - Σ manual proportions) / automatic instances
type manager struct {
	raw.OffHeap
	next    *manager // the list of all
	live    uint64   // 0: destroyed
	device  uint64
	context uint64
	total   uint64
	active  uint64 // 1: caps are enforced
	name    label

	first, last *instance // in the order of their registration
	count       uint64
	blocks      uint64
	coming      uint64 // blocks that are charged and not yet added
	rounds      uint64 // rounds begun so far

	table [buckets]*block

	spareInstances *instance
	spareBlocks    *block
	spareQueues    *queue
	fresh, left    uintptr // of the newest chunk
}

// An instance is one component of the program.
type instance struct {
	raw.OffHeap
	next       *instance
	id         uint64
	name       label
	group      label
	proportion float64
	manual     uint64
	cap        uint64

	bytes, peak        uint64
	external           uint64 // part of bytes
	device             uint64 // part of bytes: blocks that take device memory
	allocs, frees      uint64
	refused, evictions uint64

	used   uint64 // time of its last use, by the clock
	stream uint64 // the stream of its last use
	evict  uint64 // what C calls; 0: its blocks are freed
	arg    uint64
	blocks *block
	coming uint64
	held   uint64 // number of allocations under way for it: above 0, it is not evicted

	queue           *queue
	round           uint64 // the round that it takes part in; 0: none
	ready, readyArg uint64 // what C calls when the round has succeeded
}

// Info is the answer to OpGet; ta_mm_info of tieralloc.h.
type Info struct {
	Size               uint64
	Proportion         uint64 // the bits of a double
	Cap                uint64
	BytesLive          uint64
	BytesPeak          uint64
	Allocs, Frees      uint64
	Refused, Evictions uint64
	LastUsed           uint64
	Manual             uint64
	Name, Group        label
}

var managers *manager // newest first

// clock counts uses. All managers share it, because those of one device evict each other's
// instances.
var clock uint64

func create(c *Call) uint64 {
	m := managers
	for m != nil && m.live != 0 {
		m = m.next
	}
	if m == nil {
		m = (*manager)(raw.Ptr(raw.Map(raw.RoundUp(unsafe.Sizeof(manager{}), 4096))))
		if m == nil {
			return noMemory
		}
		m.next = managers
		managers = m
	}
	if c.Bytes == 0 || c.Bytes > most || !m.name.set(uintptr(c.Name)) {
		return invalid
	}
	m.live, m.device, m.context, m.total, m.active = 1, c.Device, c.Context, c.Bytes, 0
	c.Manager = uint64(uintptr(unsafe.Pointer(m)))
	return 0
}

// destroy ends a manager that has no blocks and no charges.
func (m *manager) destroy() uint64 {
	if m.blocks != 0 || m.coming != 0 {
		return busy
	}
	for m.first != nil {
		m.drop(m.first)
	}
	m.live = 0
	return 0
}

// find returns an instance, or nil.
func (m *manager) find(id uint64) *instance {
	i := m.first
	for i != nil && i.id != id {
		i = i.next
	}
	return i
}

func (m *manager) register(c *Call) uint64 {
	if m.find(c.Instance) != nil {
		return known
	}
	i := m.newInstance()
	if i == nil {
		return noMemory
	}
	i.id, i.evict, i.arg = c.Instance, c.Evict, c.Arg
	if !i.name.set(uintptr(c.Name)) || !i.group.set(uintptr(c.Group)) {
		m.spare(i)
		return invalid
	}
	why := m.admit(i, c.Proportion)
	if why > Warned {
		m.spare(i)
		return why
	}
	if m.last == nil {
		m.first = i
	} else {
		m.last.next = i
	}
	m.last = i
	m.count++
	m.rebalance()
	i.use()
	return why
}

// unregister removes an instance that has no blocks.
func (m *manager) unregister(i *instance) uint64 {
	if i.blocks != nil || i.coming != 0 {
		return busy
	}
	m.drop(i)
	m.rebalance()
	return 0
}

func (m *manager) drop(i *instance) {
	var before *instance
	at := &m.first
	for *at != i {
		before = *at
		at = &before.next
	}
	*at = i.next
	if m.last == i {
		m.last = before
	}
	m.count--
	m.dequeue(i)
	m.spare(i)
}

// use notes that an instance uses its memory.
func (i *instance) use() {
	clock++
	i.used = clock
}

// useOn is use, on a stream.
func (i *instance) useOn(stream uint64) {
	i.use()
	i.stream = stream
}

// hold counts the allocations under way for an instance: 1 begins one, 0 ends one.
func (i *instance) hold(on uint64) uint64 {
	switch {
	case on > 1 || on == 0 && i.held == 0:
		return invalid
	case on == 1:
		i.held++
	default:
		i.held--
	}
	return 0
}

// streamEnds forgets a stream whose handle is about to become invalid or to be reused.
func streamEnds(stream uint64) {
	if stream == 0 {
		return
	}
	for m := managers; m != nil; m = m.next {
		for i := m.first; i != nil; i = i.next {
			if i.stream == stream {
				i.stream = StreamGone
			}
			for b := i.blocks; b != nil; b = b.after {
				if b.stream == stream {
					b.stream = StreamGone
				}
			}
		}
	}
}

// contextEnds forgets the blocks and streams of a context that has ended.
func contextEnds(context uint64) {
	var c Call
	for m := managers; m != nil; m = m.next {
		if m.live == 0 || m.context != context {
			continue
		}
		for i := m.first; i != nil; i = i.next {
			for i.blocks != nil {
				c.Address = i.blocks.address
				m.remove(&c)
			}
			i.stream = 0
		}
	}
}

// tell fills in the figures of an instance.
func (i *instance) tell(to *Info) {
	to.Proportion, to.Cap, to.Manual = bitsOf(i.proportion), i.cap, i.manual
	to.BytesLive, to.BytesPeak = i.bytes, i.peak
	to.Allocs, to.Frees, to.Refused, to.Evictions, to.LastUsed = i.allocs, i.frees, i.refused,
		i.evictions, i.used
	to.Name, to.Group = i.name, i.group
}

// Report fills in the figures of all instances, up to the size of the array, and returns how many
// they are. In a signal handler that interrupted a call of this package, the figures may be
// inconsistent. Without wait it reports none while another thread holds the lock. Precondition: to
// is zero.
func Report(token uintptr, wait bool, to *[stats.ShareMax]stats.Share) (n uint64) {
	mine := lock.TakeIf(token, wait)
	if !mine && !lock.HeldBy(token) {
		return 0
	}
	number := uint64(0)
	for m := managers; m != nil; m = m.next {
		if m.live == 0 {
			continue
		}
		number++
		for i := m.first; i != nil && n < stats.ShareMax; i = i.next {
			s := &to[n&(stats.ShareMax-1)]
			n++
			s.Manager, s.Instances, s.ManagerName = number, m.count, m.name
			s.Device, s.Mode, s.BytesTotal = m.device, m.active, m.total
			s.Id, s.Name, s.Group = i.id, i.name, i.group
			s.Manual, s.Proportion, s.BytesCap = i.manual, millionths(i.proportion), i.cap
			s.BytesLive, s.BytesPeak = i.bytes, i.peak
			s.AllocCalls, s.FreeCalls, s.Refused, s.Evictions = i.allocs, i.frees, i.refused,
				i.evictions
		}
	}
	if mine {
		lock.Release()
	}
	return n
}
