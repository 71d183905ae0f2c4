package alloc

import (
	"slices"
	"testing"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

// pageState is one page of a heap with the blocks that are out.
type pageState struct {
	t       *testing.T
	p       *Page
	out     []uintptr // blocks in use
	isOut   map[uintptr]bool
	remotes uint64
	other   *Heap
}

// FuzzPage runs what can happen to one page on its own: each byte is an operation
// and, above its three low bits, which block it is about. The first two choose the
// class.
func FuzzPage(f *testing.F) {
	f.Fuzz(func(t *testing.T, ops []byte) {
		if len(ops) < 2 {
			return
		}
		newWorld(t)
		h, other := mustAcquire(t, 8), mustAcquire(t, 16)
		c := (uintptr(ops[0]) | uintptr(ops[1])<<8) % sizeclass.Count
		if !h.refill(c) {
			t.Fatal("no page")
		}
		h.Thread.retiredHeap, h.Thread.retiredClass = h, uint32(
			c,
		) // for nobody calls PageEmpty here
		s := &pageState{t: t, p: h.Cur[c], isOut: map[uintptr]bool{}, other: other}
		for _, op := range ops[2:] {
			s.step(op)
			s.check()
		}
		s.emptyOut(h)
	})
}

func (s *pageState) step(op byte) {
	p, i := s.p, int(op>>3)
	switch op & 7 {
	case 0, 1:
		b := p.pop()
		if b != 0 && raw.Load(b+8) != 0 {
			s.t.Fatalf("block %#x still has the free mark, or another second word", b)
		}
		s.handOut(b)
	case 2, 3: // carving needs an empty list, as in allocClass
		if p.Free == 0 {
			b, zero := p.carve()
			if zero && notZero(b, p.Size) != 0 {
				s.t.Fatalf("block %#x is said to be zero", b)
			}
			s.handOut(b)
		}
	case 4, 5:
		if b := s.takeBack(i); b != 0 {
			p.push(b)
		}
	case 6:
		if b := s.takeBack(i); b != 0 {
			freeRemote(nil, p, b)
			s.remotes++
		}
	case 7:
		if p.Free == 0 {
			if got, want := p.takeRemote(), s.remotes != 0; got != want {
				s.t.Fatalf("takeRemote says %v with %d blocks", got, s.remotes)
			}
			s.remotes = 0
		}
	}
}

// handOut takes note of a block, or of there being none.
func (s *pageState) handOut(b uintptr) {
	if b == 0 {
		return
	}
	if s.isOut[b] || !s.p.isBlock(b) || b+s.p.Size > s.p.Start+s.p.bytes() {
		s.t.Fatalf("page at %#x of %d-byte blocks handed out %#x; out already: %v", s.p.Start,
			s.p.Size, b, s.isOut[b])
	}
	for at := uintptr(0); at < s.p.Size; at += 8 {
		raw.Store(b+at, ^uintptr(0))
	}
	s.isOut[b] = true
	s.out = append(s.out, b)
}

// takeBack chooses one of the blocks that are out, or returns 0.
func (s *pageState) takeBack(i int) uintptr {
	if len(s.out) == 0 {
		return 0
	}
	i %= len(s.out)
	b, last := s.out[i], len(s.out)-1
	s.out[i] = s.out[last]
	s.out = s.out[:last]
	delete(s.isOut, b)
	return b
}

// check holds the page to its equations, and its idea of each block to the truth.
func (s *pageState) check() {
	s.t.Helper()
	if err := inspect(); err != nil {
		s.t.Fatal(err)
	}
	p := s.p
	if live := p.Allocs - p.Frees - p.remoteCount(); live != uint64(len(s.out)) ||
		p.remoteCount() != s.remotes {
		s.t.Fatalf("%d live, %d remote; expected %d, %d", live, p.remoteCount(), len(s.out),
			s.remotes)
	}
	if p.allFree() != (len(s.out) == 0) {
		s.t.Fatalf("allFree is %v with %d blocks out", p.allFree(), len(s.out))
	}
	stride := p.stride()
	end, step := min(uintptr(p.carved)+2*stride, p.bytes()), max(sizeclass.Granule, stride/4)
	for off := uintptr(0); off < end; off += step {
		b := p.Start + off
		if want := off%stride == 0 && off < uintptr(p.carved); p.isBlock(b) != want {
			s.t.Fatalf("isBlock at offset %d of blocks %d bytes apart is %v", off, stride, !want)
		}
		if p.isBlock(b) && p.isFree(p.Owner, b) == s.isOut[b] {
			s.t.Fatalf("isFree at offset %d is %v", off, !s.isOut[b])
		}
	}
}

// emptyOut frees the rest and gives the page back.
func (s *pageState) emptyOut(h *Heap) {
	for b := s.takeBack(0); b != 0; b = s.takeBack(0) {
		s.p.push(b)
	}
	s.remotes = s.p.remoteCount()
	s.check()
	Trim(h)
	if err := inspect(); err != nil || pool.usedBytes != 0 {
		s.t.Fatalf("after Trim %d bytes are in use: %v", pool.usedBytes, err)
	}
}

// TestCarveUsed: in memory that has been in use before no more blocks of a memory page or more are
// put on a page's list than have been handed out, and eight at most: some of that memory may be
// untouched.
func TestCarveUsed(t *testing.T) {
	newWorld(t)
	h := mustAcquire(t, 8)
	c := sizeclass.Of(4608)
	if !h.refill(c) {
		t.Fatal("no page")
	}
	p := h.Cur[c]
	p.zero = 0
	var carved []uint32
	for p.carved < p.blocks*uint32(p.stride()) {
		p.Free = 0
		p.carve()
		carved = append(carved, p.carved/uint32(p.stride()))
		p.Allocs = uint64(carved[len(carved)-1]) // as if all had been taken
	}
	if want := []uint32{1, 3, 7, 8, 9, 10, 11, 12, 13}; !slices.Equal(carved, want) {
		t.Errorf("blocks carved: %v, want %v", carved, want)
	}
}
