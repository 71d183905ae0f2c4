package alloc

import "fmt"

// parted has parts of a huge block lie in two tiers, or be told apart only, as the control plane
// does. Then the block is resized or freed, by any thread, while a part of it moves or not.
func (s *sim) parted() error {
	i := s.parting()
	if i < 0 {
		return nil
	}
	b, t := s.m.blocks[i], s.anyThread()
	p, token := Lookup(b.addr), t.enter().Thread.token
	if s.pick(4) == 0 {
		s.toldApart(token, p)
	}
	for range s.pick(8) {
		tier := uintptr(s.pick(3))
		at := uintptr(s.pick(int(p.Size>>p.partsShift())+1)) << p.partsShift()
		if at < p.Size {
			Follow(token, uintptr(s.now), p.Start, p.Start+at, min(1<<p.partsShift(), p.Size-at),
				tier)
			s.now += 1e6
		}
	}
	t.leave()
	if err := inspect(); err != nil {
		return err
	}
	if err := s.m.blocks[i].intact(); err != nil {
		return fmt.Errorf("after parts of it moved: %w", err)
	}
	switch s.pick(5) {
	case 0, 1:
		n := p.Size/2 + uintptr(s.pick(int(p.Size)>>12))<<12
		if s.m.bytes+n <= simBytes {
			return s.resizeBlock(s.anyThread(), i, n)
		}
	case 2:
		return s.freeBlock(s.anyThread(), i)
	case 3:
		return s.freedWhileMoving(i)
	}
	return nil
}

// parting is a block that moves by parts, or -1.
func (s *sim) parting() int {
	n := len(s.m.blocks)
	for k, at := 0, s.pick(n+1); k < n; k++ {
		if i := (at + k) % n; Lookup(s.m.blocks[i].addr).hasParts() {
			return i
		}
	}
	return -1
}

// toldApart gives a block a part map as Distinguish does.
func (s *sim) toldApart(token uintptr, p *Page) {
	poolLock.Take(token)
	if p.moving == 0 && p.parts() == nil && p.wholeSplit() {
		p.makeParts(otherThan(p.placement))
	}
	poolLock.Release()
}

// freedWhileMoving frees a block while another thread has it pinned.
func (s *sim) freedWhileMoving(i int) error {
	p, token := Lookup(s.m.blocks[i].addr), s.token(simThreads)
	if !pinMigration(token, p) {
		return nil
	}
	if m := p.parts(); m != nil && s.pick(2) == 0 {
		poolLock.Take(token)
		p.movePart(token, m, uintptr(s.pick(int(m.index(p.Size-1))+1)))
		poolLock.Release()
	}
	err := s.freeBlock(s.anyThread(), i)
	unpinMigration(token, p)
	return err
}
