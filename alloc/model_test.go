package alloc

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// block is a live block of the model.
type block struct {
	addr  uintptr
	n     uintptr // bytes asked for
	size  uintptr // bytes that may be used
	class uintptr // bytes that are counted
	mark  uint64  // what its first and last words hold
}

// model is what a program knows: its blocks, and what it wrote into them.
type model struct {
	blocks  []block
	classes [sizeclass.Count]uint64
	huge    uint64
	zero    uint64 // blocks of 0 bytes
	bytes   uintptr
	serial  uint64
}

// add takes a new block of n bytes into the model, after a look at what the heap
// promises of it, and writes marks at its ends.
func (m *model) add(addr, n, align uintptr, zero bool) error {
	if addr&(max(align, sizeclass.Granule)-1) != 0 {
		return fmt.Errorf("block %#x of %d bytes is not aligned to %d", addr, n, align)
	}
	p := Lookup(addr)
	if p == nil || p.Size < n && p.usable(addr) < n ||
		secure && n == 0 && p.Owner != OwnerZero && align <= zeroMaxAlign {
		return fmt.Errorf("block %#x of %d bytes has page %p", addr, n, p)
	}
	if zero {
		if at := notZero(addr, p.usable(addr)); at != 0 {
			return fmt.Errorf("block %#x of %d bytes is said to be zero, but not at %#x", addr, n,
				at)
		}
	}
	b := block{addr: addr, n: n, size: p.usable(addr), class: p.Size}
	if p.isNursery() {
		b.class = b.size
	}
	if secure && b.size != max(n, min(b.size, 1)) {
		return fmt.Errorf("block %#x of %d bytes has %d", addr, n, b.size)
	}
	m.count(&b, 1)
	m.mark(&b)
	m.blocks = append(m.blocks, b)
	return nil
}

// count adds d to what the model has of b's kind. The heap must still have b.
func (m *model) count(b *block, d int) {
	switch {
	case b.size == 0:
		m.zero += uint64(d)
	case Lookup(b.addr).Owner == OwnerHuge:
		m.huge += uint64(d)
	default:
		m.classes[sizeclass.Of(b.class)] += uint64(d)
	}
	m.bytes += uintptr(d) * b.class
}

// mark writes to both ends of the block. Now and then its second word is the very
// key that free blocks have: a program may write that.
func (m *model) mark(b *block) {
	if b.size < 2*8 {
		return
	}
	m.serial++
	b.mark = m.serial * 0x9e3779b97f4a7c15
	if m.serial%64 == 0 {
		b.mark = FreeKey
	}
	raw.Store(b.addr, uintptr(b.mark))
	raw.Store(b.addr+8, uintptr(b.mark))
	raw.Store(b.addr+b.size&^7-8, uintptr(b.mark))
}

// intact reports whether the block has what mark wrote.
func (b *block) intact() error {
	if b.size < 2*8 {
		return nil
	}
	for _, at := range []uintptr{0, 8, b.size&^7 - 8} {
		if got := uint64(raw.Load(b.addr + at)); got != b.mark {
			return fmt.Errorf("block %#x of %d bytes: at %d there is %#x, not %#x", b.addr, b.size,
				at, got, b.mark)
		}
	}
	return nil
}

// remove takes block i out of the model.
func (m *model) remove(i int) block {
	b := m.blocks[i]
	m.count(&b, -1)
	last := len(m.blocks) - 1
	m.blocks[i] = m.blocks[last]
	m.blocks = m.blocks[:last]
	return b
}

// check looks at every block: none overlap, all are intact, the heap knows them.
func (m *model) check() error {
	sorted := slices.Clone(m.blocks)
	slices.SortFunc(sorted, func(a, b block) int { return cmp.Compare(a.addr, b.addr) })
	end := uintptr(0)
	for i := range sorted {
		b := &sorted[i]
		if b.addr < end {
			return fmt.Errorf("blocks overlap at %#x", b.addr)
		}
		end = b.addr + max(b.size, sizeclass.Granule)
		if err := b.intact(); err != nil {
			return err
		}
		if p := Lookup(b.addr); p.usable(b.addr) != b.size {
			return fmt.Errorf("block %#x has %d bytes, had %d", b.addr, p.usable(b.addr), b.size)
		}
		if why := Check(b.addr); why != FreeOK {
			return fmt.Errorf("Check of live block %#x says %d", b.addr, why)
		}
	}
	return nil
}

// notZero is the address of a word that is not zero, or 0. Of larger blocks it reads only the pages
// that were ever touched: the others are zero, and reading them would make them resident.
func notZero(addr, n uintptr) uintptr {
	end := addr + n&^7
	touched := func(uintptr) bool { return true }
	if n > 2*raw.Page {
		touched = touchedPages(addr, n)
	}
	for at := addr; at < end; {
		next := min(at&^(raw.Page-1)+raw.Page, end)
		if touched(at) {
			for ; at < next; at += 8 {
				if raw.Load(at) != 0 {
					return at
				}
			}
		}
		at = next
	}
	return 0
}

var pagemap = sync.OnceValue(func() *os.File {
	file, _ := os.Open("/proc/self/pagemap")
	return file
})

// touchedPages tells which pages of n bytes at addr are in memory or swapped out. Where the kernel
// does not say, it is all of them.
func touchedPages(addr, n uintptr) func(at uintptr) bool {
	const entry, present, swapped = 8, 1 << 63, 1 << 62
	first := addr / raw.Page
	entries := make([]byte, entry*((addr+n-1)/raw.Page-first+1))
	if _, err := pagemap().ReadAt(entries, int64(entry*first)); err != nil {
		return func(uintptr) bool { return true }
	}
	return func(at uintptr) bool {
		i := entry * (at/raw.Page - first)
		return binary.LittleEndian.Uint64(entries[i:])&(present|swapped) != 0
	}
}
