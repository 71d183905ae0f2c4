package cudahook

import (
	"math/bits"

	"tieralloc/internal/raw"
)

// bins keeps free blocks by size, in two levels: 32 bins for each power of two from 512 bytes on
// (Masmano, Ripoll, Crespo and Real, TLSF: a new dynamic memory allocator for real-time systems,
// 2004). The bitmaps give the first bin that has a block without a search. find compares a bounded
// number of blocks within a bin; the sizes in one bin differ by less than 1/32.
//
//	bit i of levels set ⇔ parts[i] != 0
//	bit j of parts[i] set ⇔ head[32·i + j] != nil
type bins struct {
	raw.OffHeap
	levels uint32
	parts  [32]uint32
	head   [1024]*block
}

const (
	partBits  = 5
	firstBit  = 9  // log2 of granule
	lookBound = 16 // blocks looked at in one bin
)

// binOf returns the number of the bin for a size of at least a granule.
func binOf(n uint64) uint {
	top := uint(bits.Len64(n|granule)) - 1
	level := min(top-firstBit, 31)
	return level<<partBits | uint(n>>((top-partBits)&63))&31
}

func (k *bins) add(b *block) {
	i := binOf(b.bytes)
	head := &k.head[i&1023]
	b.prev, b.next = nil, *head
	if b.next != nil {
		b.next.prev = b
	}
	*head = b
	k.parts[i>>partBits&31] |= 1 << (i & 31)
	k.levels |= 1 << (i >> partBits & 31)
}

func (k *bins) remove(b *block) {
	if b.next != nil {
		b.next.prev = b.prev
	}
	if b.prev != nil {
		b.prev.next = b.next
		return
	}
	i := binOf(b.bytes)
	k.head[i&1023] = b.next
	if b.next == nil {
		part := &k.parts[i>>partBits&31]
		*part &^= 1 << (i & 31)
		if *part == 0 {
			k.levels &^= 1 << (i >> partBits & 31)
		}
	}
}

// find returns a block of at least n bytes, or nil: nearly the smallest such block, or, with first,
// the first that is found.
func (k *bins) find(n uint64, first bool) *block {
	i := binOf(n)
	level, part := i>>partBits&31, i&31
	if k.parts[level]>>part&1 != 0 {
		if b := best(k.head[i&1023], n, first); b != nil {
			return b
		}
	}
	rest := k.parts[level] &^ (2<<part - 1)
	if rest == 0 {
		above := k.levels &^ (2<<level - 1)
		if above == 0 {
			return nil
		}
		level = uint(bits.TrailingZeros32(above)) & 31
		rest = k.parts[level]
	}
	return best(k.head[(level<<partBits|uint(bits.TrailingZeros32(rest)))&1023], n, first)
}

// largest returns a lower bound of the largest block's size, less than 1/32 below it.
func (k *bins) largest() uint64 {
	if k.levels == 0 {
		return 0
	}
	level := uint(bits.Len32(k.levels)) - 1
	part := uint64(bits.Len32(k.parts[level&31])) - 1
	return (32 | part) << ((level + firstBit - partBits) & 63)
}

// last returns the blocks of the highest bin that is not empty, or nil.
func (k *bins) last() *block {
	if k.levels == 0 {
		return nil
	}
	level := (uint(bits.Len32(k.levels)) - 1) & 31
	part := (uint(bits.Len32(k.parts[level])) - 1) & 31
	return k.head[(level<<partBits|part)&1023]
}

// best returns the smallest block of at least n bytes among the first lookBound of a list. With
// first it returns the first such block.
func best(b *block, n uint64, first bool) (found *block) {
	for i := 0; b != nil && i < lookBound; b = b.next {
		if b.bytes >= n && (found == nil || b.bytes < found.bytes ||
			b.bytes == found.bytes && b.address < found.address) {
			found = b
			if first {
				break
			}
		}
		i++
	}
	return found
}
