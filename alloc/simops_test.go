package alloc

import (
	"fmt"

	"tieralloc/alloc/sizeclass"
)

func (s *sim) malloc() error { return s.mallocOf(s.anyThread(), s.someSize()) }

// mallocMany fills pages of one class.
func (s *sim) mallocMany() error {
	t, n := s.anyThread(), uintptr(s.pick(256))*16
	if s.pick(4) == 0 {
		n *= 16
	}
	for range s.pick(256) {
		if err := s.mallocOf(t, n); err != nil {
			return err
		}
	}
	return nil
}

func (s *sim) freeOne() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	return s.freeBlock(s.anyThread(), s.pick(len(s.m.blocks)))
}

func (s *sim) freeMany() error {
	t := s.anyThread()
	for range s.pick(256) {
		if len(s.m.blocks) == 0 {
			return nil
		}
		if err := s.freeBlock(t, s.pick(len(s.m.blocks))); err != nil {
			return err
		}
	}
	return nil
}

// freeWhere frees, from one thread, the blocks for which which is true.
func (s *sim) freeWhere(t *thread, which func(*block) bool) error {
	for i := len(s.m.blocks) - 1; i >= 0; i-- {
		if i < len(s.m.blocks) && which(&s.m.blocks[i]) {
			if err := s.freeBlock(t, i); err != nil {
				return err
			}
		}
	}
	return nil
}

// freePage frees all blocks of a page.
func (s *sim) freePage() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	p := Lookup(s.m.blocks[s.pick(len(s.m.blocks))].addr)
	from, to := p.Start, p.Start+p.bytes()
	return s.freeWhere(s.anyThread(), func(b *block) bool { return b.addr >= from && b.addr < to })
}

// freeClass frees all blocks of one size.
func (s *sim) freeClass() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	size := s.m.blocks[s.pick(len(s.m.blocks))].size
	return s.freeWhere(s.anyThread(), func(b *block) bool { return b.size == size })
}

// pingPong frees and allocates in turn in the size of some block, by its owner or
// another thread: the pattern that the thread-cache free list is for.
func (s *sim) pingPong() error {
	t := s.anyThread()
	for range s.pick(64) {
		if len(s.m.blocks) == 0 {
			return nil
		}
		i := s.pick(len(s.m.blocks))
		n := s.m.blocks[i].n
		if err := s.freeBlock(t, i); err != nil {
			return err
		}
		if s.pick(4) != 0 {
			if err := s.mallocOf(t, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *sim) aligned() error {
	t, align, n := s.anyThread(), uintptr(16)<<s.pick(15), s.someSize()
	if len(s.m.blocks) >= simBlocks || s.m.bytes+n+align > simBytes {
		return nil
	}
	b := t.aligned(align, n)
	if b == 0 && s.capped {
		return nil
	}
	if b == 0 {
		return fmt.Errorf("no memory for %d bytes aligned to %d", n, align)
	}
	return s.m.add(b&^ZeroBit, n, align, b&ZeroBit != 0)
}

// resize does what realloc does with a block of InPlaceMin or more.
func (s *sim) resize() error {
	t, n := s.anyThread(), InPlaceMin+uintptr(s.pick(1<<16))*256>>s.pick(8)
	if s.m.bytes+n > simBytes {
		return nil
	}
	start := s.pick(len(s.m.blocks) + 1)
	for i := start; i < len(s.m.blocks); i++ {
		if s.m.blocks[i].size >= InPlaceMin {
			return s.resizeBlock(t, i, n)
		}
	}
	return s.mallocOf(t, n)
}

func (s *sim) resizeBlock(t *thread, i int, n uintptr) error {
	old := s.m.remove(i)
	addr := Resize(t.enter(), old.addr, n)
	if addr == 0 { // the block is as it was
		s.m.count(&old, 1)
		s.m.blocks = append(s.m.blocks, old)
		if err := old.intact(); err != nil {
			return err
		}
		last := len(s.m.blocks) - 1
		if err := s.mallocOf(t, n); err != nil {
			return err
		}
		return s.freeBlock(t, last)
	}
	moved := block{addr: addr, size: min(old.size, n&^7), mark: old.mark}
	if n < old.size { // the last word is gone; the first two tell
		moved.size = 16
	}
	if err := moved.intact(); err != nil {
		return fmt.Errorf("resized from %#x, %d bytes, to %d: %w", old.addr, old.size, n, err)
	}
	return s.m.add(addr, n, sizeclass.Granule, false)
}

// later lets time pass.
func (s *sim) later() error {
	s.now += []uint64{1e6, 20e6, minCollect, PurgeDelay + 1}[s.pick(4)]
	return nil
}

func (s *sim) trim() error {
	Trim(s.anyThread().enter())
	return nil
}

// newThread ends one or more threads and starts others, which get their heaps in
// another order.
func (s *sim) newThread() error {
	first, n := s.pick(simThreads), 1+s.pick(simThreads)
	for i := range n {
		Abandon(s.threads[(first+i)%simThreads].enter())
	}
	for i := range n {
		t := s.threads[(first+i)%simThreads]
		if t.h = Acquire(t.token); t.h == nil {
			return fmt.Errorf("no heap for a new thread")
		}
	}
	return nil
}

// fallback is a call of a thread near its end: it takes a heap and leaves it as it
// is.
func (s *sim) fallback() error {
	token := s.token(simThreads)
	h := Acquire(token)
	if h == nil {
		return fmt.Errorf("no heap to borrow")
	}
	t := &thread{h: h, token: token, now: func() uint64 { return s.now }}
	for range s.pick(32) {
		var err error
		if s.pick(2) == 0 || len(s.m.blocks) == 0 {
			err = s.mallocOf(t, s.someSize())
		} else {
			err = s.freeBlock(t, s.pick(len(s.m.blocks)))
		}
		if err != nil {
			return err
		}
	}
	Leave(t.enter())
	return nil
}

// thin frees most blocks of a page, has it give back what can be had, and frees one of them again.
func (s *sim) thin() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	p := Lookup(s.m.blocks[s.pick(len(s.m.blocks))].addr)
	from, to, last := p.Start, p.Start+p.bytes(), uintptr(0)
	err := s.freeWhere(s.anyThread(), func(b *block) bool {
		if b.addr < from || b.addr >= to || s.pick(16) == 0 {
			return false
		}
		last = b.addr
		return true
	})
	for _, t := range s.threads {
		h := t.enter()
		h.collectPages(false)
		if s.pick(2) == 0 {
			h.Thread.rest(true)
		} else {
			h.Thread.rest(false)
			h.Thread.rest(false)
		}
		t.leave()
	}
	if err != nil || last == 0 {
		return err
	}
	if why := s.anyThread().free(last); why == FreeOK {
		return fmt.Errorf("a second free of %#x is accepted", last)
	}
	return nil
}

// misuse frees what is no block: nothing may change.
func (s *sim) misuse() error {
	if len(s.m.blocks) == 0 {
		return nil
	}
	i := s.pick(len(s.m.blocks))
	b := s.m.blocks[i]
	t := s.anyThread()
	if b.size > sizeclass.Granule {
		if why := t.free(b.addr + sizeclass.Granule); why != FreeInside {
			return fmt.Errorf("free of %#x in the block %#x of %d bytes says %d",
				b.addr+sizeclass.Granule, b.addr, b.size, why)
		}
	}
	if why := t.free(uintptr(s.pick(1<<16)) << 3); why != FreeForeign {
		return fmt.Errorf("free of a small number says %d", why)
	}
	if err := s.freeBlock(s.anyThread(), i); err != nil {
		return err
	}
	if why := t.free(b.addr); why == FreeOK {
		return fmt.Errorf("a second free of %#x of %d bytes is accepted", b.addr, b.size)
	}
	return nil
}
