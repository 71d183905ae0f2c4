package manager

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A block is memory that an instance has allocated from its manager.
//
//	until it is removed, it is in its bucket of the table and on its instance's list
type block struct {
	raw.OffHeap
	chain         *block // of the same bucket
	before, after *block // of the same instance
	owner         *instance
	address       uint64
	bytes         uint64
	kind          uint64
	stream        uint64 // the stream that it was allocated for
	round         uint64 // the round that allocated it, until its instance is told; else 0
}

const (
	buckets    = 4096
	chunkBytes = 256 << 10
)

// bucketOf returns the bucket of an address, by Fibonacci hashing.
func (m *manager) bucketOf(address uint64) **block {
	return &m.table[address>>8*0x9e3779b97f4a7c15>>52&(buckets-1)]
}

// add enters a block. Precondition: it was charged.
func (m *manager) add(c *Call, i *instance) uint64 {
	b := m.newBlock()
	if b == nil {
		return noMemory
	}
	b.owner, b.address, b.bytes, b.kind, b.stream, b.round = i, c.Address, c.Bytes, c.Kind,
		c.Stream, c.Round
	at := m.bucketOf(b.address)
	b.chain = *at
	*at = b
	b.after = i.blocks
	if b.after != nil {
		b.after.before = b
	}
	i.blocks = b
	m.blocks++
	m.coming--
	i.coming--
	i.allocs++
	i.device += b.onDevice()
	i.peak = max(i.peak, i.bytes)
	i.useOn(c.Stream)
	return 0
}

// onDevice returns the bytes of device memory that a block takes.
func (b *block) onDevice() uint64 {
	if b.kind == KindDevice || b.kind == KindManaged {
		return b.bytes
	}
	return 0
}

// at returns the link to the block at an address, or the end of its bucket.
func (m *manager) at(address uint64) **block {
	at := m.bucketOf(address)
	for *at != nil && (*at).address != address {
		at = &(*at).chain
	}
	return at
}

// remove removes a block. It answers the block's size and kind, and the stream that its instance
// used last.
func (m *manager) remove(c *Call) uint64 {
	at := m.at(c.Address)
	b := *at
	if b == nil {
		return invalid
	}
	*at = b.chain
	if b.after != nil {
		b.after.before = b.before
	}
	if b.before != nil {
		b.before.after = b.after
	} else {
		b.owner.blocks = b.after
	}
	b.owner.bytes -= b.bytes
	b.owner.device -= b.onDevice()
	b.owner.frees++
	c.Bytes, c.Kind, c.Stream = b.bytes, b.kind, b.owner.stream
	m.blocks--
	b.chain = m.spareBlocks
	m.spareBlocks = b
	return 0
}

// first answers a block that an evicted instance can lose. An instance that was used since the
// search keeps its blocks. A block of a round stays until the instance is told of it.
func (c *Call) first(i *instance) uint64 {
	b := i.blocks
	for b != nil && b.round != 0 {
		b = b.after
	}
	if b == nil || i.used > c.After {
		return notThere
	}
	c.Address, c.Stream = b.address, b.stream
	return 0
}

// take returns n zero bytes for descriptors, or 0 when the kernel has no memory.
func (m *manager) take(n uintptr) uintptr {
	n = raw.RoundUp(n, 64)
	if m.left < n {
		c := raw.Map(chunkBytes)
		if c == 0 {
			return 0
		}
		m.fresh, m.left = c, chunkBytes
	}
	at := m.fresh
	m.fresh += n
	m.left -= n
	return at
}

// newBlock returns a zeroed descriptor, or nil.
func (m *manager) newBlock() *block {
	b := m.spareBlocks
	if b == nil {
		return (*block)(raw.Ptr(m.take(unsafe.Sizeof(block{}))))
	}
	m.spareBlocks = b.chain
	*b = block{}
	return b
}

// newInstance returns a zeroed instance, or nil.
func (m *manager) newInstance() *instance {
	i := m.spareInstances
	if i == nil {
		return (*instance)(raw.Ptr(m.take(unsafe.Sizeof(instance{}))))
	}
	m.spareInstances = i.next
	*i = instance{}
	return i
}

func (m *manager) spare(i *instance) {
	i.next = m.spareInstances
	m.spareInstances = i
}
