package cudahook

import (
	"unsafe"

	"tieralloc/internal/raw"
)

// A table finds a block by its address: open addressing with linear probing, and
// deletion by moving entries back (Knuth, The Art of Computer Programming, volume 3,
// 6.4, algorithm R). It is in a mapping of its own, which doubles.
//
//	used <= 3/4 · (mask + 1), mask + 1 a power of two
//	no empty entry is between an entry's home and its index
type table struct {
	base uintptr
	mask uintptr
	used uintptr
}

type entry struct {
	raw.OffHeap
	key   uint64 // 0: empty
	block *block
}

const (
	entryBytes   = unsafe.Sizeof(entry{})
	firstEntries = 4096
)

func (t *table) at(i uintptr) *entry { return (*entry)(raw.Ptr(t.base + i&t.mask*entryBytes)) }

// home returns the first index that find examines for an address (Fibonacci hashing).
func home(address uint64) uintptr {
	return uintptr(address / granule * 0x9e3779b97f4a7c15 >> 24)
}

// find returns the block at an address, or nil.
func (t *table) find(address uint64) *block {
	if t.base == 0 || address == 0 {
		return nil
	}
	for i := home(address); ; i++ { // ends, because at least one entry is empty
		e := t.at(i)
		if e.key == address {
			return e.block
		}
		if e.key == 0 {
			return nil
		}
	}
}

// reserve ensures that n more entries fit. It reports false if there is no memory.
func (t *table) reserve(n uintptr) bool {
	size := t.mask + 1
	if t.base != 0 && t.used+n <= size/2 {
		return true
	}
	if t.base == 0 {
		size = firstEntries / 2
	}
	if t.grow(size * 2) {
		return true
	}
	return t.base != 0 && t.used+n <= size/4*3
}

// grow moves all entries to a mapping of size entries.
func (t *table) grow(size uintptr) bool {
	base := raw.Map(size * entryBytes)
	if base == 0 {
		return false
	}
	old := *t
	t.base, t.mask, t.used = base, size-1, 0
	for i := uintptr(0); old.base != 0 && i <= old.mask; i++ {
		if e := old.at(i); e.key != 0 {
			t.put(e.key, e.block)
		}
	}
	if old.base != 0 {
		raw.Unmap(old.base, (old.mask+1)*entryBytes)
	}
	return true
}

// add enters a block. It reports false, and enters nothing, when there is no memory.
// Precondition: no block has its address.
func (t *table) add(b *block) bool {
	if !t.reserve(1) {
		return false
	}
	t.put(b.address, b)
	return true
}

func (t *table) put(key uint64, b *block) {
	i := home(key)
	for t.at(i).key != 0 {
		i++
	}
	e := t.at(i)
	e.key, e.block = key, b
	t.used++
}

// remove takes a block out. Precondition: it is there.
func (t *table) remove(b *block) {
	i := home(b.address)
	for t.at(i).key != b.address {
		i++
	}
	t.used--
	for j := i + 1; ; j++ {
		e := t.at(j)
		if e.key == 0 {
			break
		}
		// e may fill the gap at i unless its home lies behind the gap.
		if (j-home(e.key))&t.mask >= (j-i)&t.mask {
			*t.at(i) = *e
			i = j
		}
	}
	e := t.at(i)
	e.key, e.block = 0, nil
}

// clear removes all entries and unmaps the table.
func (t *table) clear() {
	if t.base != 0 {
		raw.Unmap(t.base, (t.mask+1)*entryBytes)
	}
	t.base, t.mask, t.used = 0, 0, 0
}
