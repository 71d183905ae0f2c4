// Package sizeclass is the table of size classes and its arithmetic: which class serves a request,
// how large its blocks are, and how many slices a page of them spans. It knows nothing of pages,
// heaps or memory, and imports nothing of this project.
//
// # Classes
//
// A class is a number below [Count]. Block sizes are the multiples of 16 up to 128, then eight
// steps to each doubling, up to [MaxSize], 4 MiB. So a block is never more than 12.5% larger than
// the request, plus 15 bytes of alignment.
//
//	Size(Of(n)) >= n, and Size(Of(n)-1) < n
//
// jemalloc and mimalloc space their classes in the same way (four and eight steps).
package sizeclass

import "math/bits"

const (
	Granule     = 16 // every block size is a multiple, every block aligned to it
	linearMax   = 128
	linearCount = linearMax / Granule
	stepBits    = 3

	// Count is how many classes there are, a power of two: see Index.
	Count = 128
	// MaxSize is the block size of the last class. Requests above it are huge blocks.
	MaxSize = 4 << 20

	// DirectMax is the largest size that the fast path finds by table:
	// Heap.Direct[(n+15)/16].
	DirectMax   = 1024
	DirectCount = DirectMax/Granule + 1
)

// A slice is the unit in which pages are measured.
const (
	SliceShift = 16
	SliceSize  = 1 << SliceShift
)

// Of is the size class of a request of n bytes. Precondition: n <= MaxSize.
func Of(n uintptr) uintptr {
	if n <= linearMax {
		if n == 0 {
			return 0
		}
		return (n - 1) / Granule
	}
	m := n - 1
	b := uintptr(bits.Len64(uint64(m))) - 1 // 7 … 21
	return (b-6)<<stepBits + (m>>((b-stepBits)&63))&7
}

// Size is the block size of class c, in bytes. Precondition: c < Count.
func Size(c uintptr) uintptr {
	if c < linearCount {
		return (c + 1) * Granule
	}
	k := (c - linearCount) >> stepBits
	j := (c - linearCount) & 7
	return (9 + j) << ((k + 4) & 63)
}

// Rounded is the block size for n bytes: that of their class, and n above MaxSize.
func Rounded(n uintptr) uintptr {
	if n <= MaxSize {
		return Size(Of(n))
	}
	return n
}

// Spread reports whether the blocks of class c, above 1 KiB, are spread over the sets of the
// processor's caches: they lie Size+Line apart, an odd number of cache lines, and pages begin to
// use their span at different lines of it (LeadIn). All these sizes are even numbers of lines, and
// most are multiples of many. So blocks that lay Size apart would share a few sets, and a program
// that reads the same place in each of them in turn, as of the rows of a matrix or the columns of a
// table, would miss the caches. jemalloc begins large blocks at random lines of a memory page for
// the same reason (cache-oblivious).
func Spread(c uintptr) bool { return c >= spreadFirst }

const (
	// Line is the size of a cache line, and the alignment of blocks that are spread.
	Line = 64

	// SpreadAbove is the size in bytes above which blocks are spread.
	SpreadAbove = 1 << 10
	spreadFirst = 32 // the class above it

	// LastShort is the last class, of 32 KiB, whose pages are no longer when they are spread.
	LastShort = 71

	// LeadInMost is how many bytes lie before the first block of a span, at most.
	LeadInMost = memoryPage - Line
	// LeadInLeast is how many bytes a page leaves for them, at least: for four places to begin at.
	LeadInLeast = 3 * Line

	memoryPage = 4 << 10
)

// LeadIn returns the bytes before the first block of a span, whole lines, at most so many. Numbers
// beside each other get places far apart. Source of the factor: Knuth, The Art of Computer
// Programming, volume 3, section 6.4 (multiplicative hashing).
func LeadIn(number, most uintptr) uintptr {
	return uintptr(uint64(uint32(number)*2654435769)*uint64(most/Line+1)>>32) * Line
}

// PageLeadIn is LeadIn for the page of which the first slice has the given number and whose blocks
// take so many bytes. The blocks touch no further memory page, unless there is one block alone.
func PageLeadIn(slice, blocks, bytes uintptr) uintptr {
	most := -bytes & (memoryPage - 1)
	if blocks == 1 {
		most = LeadInMost
	}
	return LeadIn(slice, most)
}

// Index returns c, masked for a table of Count entries: the mask tells the compiler that c is
// within bounds, so that no bounds check, which could panic, remains. It does not change a valid
// class.
func Index(c uintptr) uintptr { return c & (Count - 1) }

// Aligned is the first class from c on whose size is a multiple of align, a power of two, or the
// last class.
func Aligned(c, align uintptr) uintptr {
	for c < Count-1 && Size(c)&(align-1) != 0 {
		c++
	}
	return c
}

// PageSlices returns the number of slices of a page of class c: one for blocks up to 8 KiB, enough
// for seven blocks up to 32 KiB, and up to 256 KiB the fewest that hold two blocks and waste at
// most an eighth. Above that a page holds one block. Pages of large blocks hold few blocks because
// a program that grows an array passes through all of these classes with one or two blocks of each.
// They do not hold one block up to 256 KiB, because such a page would be split for other classes
// while the array grows and shrinks.
func PageSlices(c uintptr) uintptr {
	size := Size(c)
	switch {
	case size <= 8<<10:
		return 1
	case size <= 16<<10:
		return 2
	case size <= 32<<10:
		return 4
	}
	n := (size + SliceSize - 1) / SliceSize
	for size <= 256<<10 && n < 16 && (n<<SliceShift < 2*size ||
		n<<SliceShift%size*8 > n<<SliceShift) {
		n++
	}
	return n
}

// SpreadSlices is PageSlices for a page whose blocks are spread, of a class above LastShort.
func SpreadSlices(c uintptr) uintptr {
	size := Size(c)
	if size > 256<<10 {
		return (size + memoryPage + SliceSize - 1) >> SliceShift
	}
	stride, n := size+Line, uintptr(2) // stride is never 0, which the compiler wants to see
	for n < 16 && stride != 0 && (n<<SliceShift < 2*stride+LeadInLeast ||
		((n<<SliceShift-LeadInLeast)%stride+LeadInLeast)*8 > n<<SliceShift) {
		n++
	}
	return n
}

// Alone reports whether a page of one block of class c wastes at most an eighth of it.
func Alone(c uintptr) bool {
	size := Size(c)
	return size >= SliceSize && (AloneSlices(c)<<SliceShift-size)*8 <= size
}

// AloneSlices returns the number of slices of a page of one block of class c.
func AloneSlices(c uintptr) uintptr { return (Size(c) + SliceSize - 1) >> SliceShift }

// DensePageSlices is PageSlices for dense pages: the fewest slices, up to 16, of which at most a
// 64th is wasted. If there is no such number it returns PageSlices.
func DensePageSlices(c uintptr) uintptr {
	least, size := PageSlices(c), Size(c)
	for n := least; n <= 16 && size != 0; n++ {
		if n<<SliceShift%size*64 <= n<<SliceShift {
			return n
		}
	}
	return least
}

// CarveCount returns the number of blocks of size bytes that are put on a page's list at a time:
// about one memory page, so that the unused end of a page is not touched.
func CarveCount(size uintptr) uintptr {
	switch {
	case size != 0 && size <= 1024:
		return 4096 / size
	case size < 4096:
		return 2
	default:
		return 1
	}
}

// DivMagic is M such that, for 0 <= off < 2^32, off is a multiple of size
// exactly when off*M (mod 2^64) < M. Source: Lemire, Kaser, Kurz, "Faster
// remainder by direct computation", 2019, section 3.2.
func DivMagic(size uintptr) uint64 {
	return ^uint64(0)/uint64(size) + 1
}
