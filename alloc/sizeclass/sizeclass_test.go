package sizeclass

import "testing"

const (
	maxSpanSlices = MaxSize / SliceSize
	maxPageBlocks = SliceSize / Granule // the remote count has 16 bits
)

func TestClassesCoverEverySize(t *testing.T) {
	if got := Size(Count - 1); got != MaxSize {
		t.Fatalf("largest class is %d, want %d", got, MaxSize)
	}
	for c := uintptr(0); c < Count; c++ {
		size := Size(c)
		if size%Granule != 0 || Of(size) != c {
			t.Fatalf("class %d: size %d maps to class %d", c, size, Of(size))
		}
		if c > 0 && Of(Size(c-1)+1) != c {
			t.Fatalf("class %d does not begin above %d", c, Size(c-1))
		}
		slices := PageSlices(c)
		blocks := slices * SliceSize / size
		if blocks == 0 || slices > maxSpanSlices || blocks > maxPageBlocks {
			t.Fatalf("class %d: %d slices, %d blocks", c, slices, blocks)
		}
		if rest := slices*SliceSize - blocks*size; rest*8 > slices*SliceSize {
			t.Errorf("class %d (%d bytes): page of %d slices wastes %d", c, size, slices, rest)
		}
	}
}

// TestDensePageSlices: a page that is to leave over little does, where 16 slices are enough for
// that.
func TestDensePageSlices(t *testing.T) {
	const most = 16
	for c := uintptr(0); c < Count; c++ {
		size, n := Size(c), DensePageSlices(c)
		rest := func(n uintptr) uintptr { return n * SliceSize % size * 64 }
		if n < PageSlices(c) || n > max(most, PageSlices(c)) || n*SliceSize/size > maxPageBlocks {
			t.Fatalf("class %d (%d bytes): %d slices", c, size, n)
		}
		for other := PageSlices(c); other <= most; other++ {
			if rest(other) <= other*SliceSize && (rest(n) > n*SliceSize || other < n) {
				t.Errorf("class %d (%d bytes): %d slices, not %d", c, size, n, other)
			}
		}
	}
	if n := DensePageSlices(Of(100 << 10)); n != 13 {
		t.Errorf("%d slices for blocks of 100 KiB", n)
	}
}

func FuzzOf(f *testing.F) {
	for _, n := range []uint32{0, 1, 16, 17, 128, 129, 1024, 1025, 8192, 8193, 65536, 65537, 262145,
		MaxSize} {
		f.Add(n, uint32(0))
	}
	f.Fuzz(func(t *testing.T, n, off uint32) {
		size := uintptr(n) % (MaxSize + 1)
		c := Of(size)
		block := Size(c)
		if block < size || c >= Count || c > 0 && Size(c-1) >= size {
			t.Fatalf("size %d: class %d of %d", size, c, block)
		}
		if size > linearMax && (block-size)*8 >= block {
			t.Fatalf("size %d wastes %d of %d", size, block-size, block)
		}
		magic := DivMagic(block)
		if got, want := uint64(off)*magic < magic, uintptr(off)%block == 0; got != want {
			t.Fatalf("DivMagic(%d) at %d says %v", block, off, got)
		}
	})
}

// TestSpread: the blocks that are spread lie an odd number of cache lines apart, and fit into a
// page wherever they begin; at most an eighth of it is wasted, and pages begin at many places.
func TestSpread(t *testing.T) {
	for c := uintptr(0); c < Count; c++ {
		if Spread(c) != (Size(c) > SpreadAbove) {
			t.Errorf("class %d of %d bytes: spread is %v", c, Size(c), Spread(c))
		}
		if (c <= LastShort) != (Size(c) <= 32<<10) {
			t.Errorf("class %d of %d bytes: the last short one is %d", c, Size(c), LastShort)
		}
		if !Spread(c) {
			continue
		}
		n, starts, stride := PageSlices(c), map[uintptr]bool{}, Size(c)+Line
		if c > LastShort {
			n = SpreadSlices(c)
		}
		blocks := (n<<SliceShift - LeadInLeast) / stride
		used := blocks * stride
		end := (used + memoryPage - 1) &^ (memoryPage - 1)
		if blocks == 1 {
			end = n << SliceShift
		}
		for slice := range uintptr(1000) {
			lead := PageLeadIn(slice, blocks, used)
			if lead%Line != 0 || lead+used > end {
				t.Fatalf("class %d: %d bytes of blocks behind %d", c, used, lead)
			}
			starts[lead] = true
		}
		rest := n<<SliceShift - used
		if stride/Line%2 == 0 || len(starts) < 4 || rest*8 > n<<SliceShift && blocks != 1 ||
			blocks == 1 && (len(starts) != memoryPage/Line || rest > SliceSize+memoryPage ||
				Size(c) <= 256<<10) {
			t.Errorf("class %d: %d slices, stride %d, %d bytes wasted, %d places to begin at", c, n,
				stride, rest, len(starts))
		}
	}
}
