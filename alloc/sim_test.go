package alloc

import (
	"fmt"
	"math/rand/v2"

	"tieralloc/alloc/sizeclass"
)

// choices are where a simulation gets its decisions from: random numbers, or the
// bytes of a fuzz target.
type choices interface {
	pick(n int) int // in [0, n)
	more() bool     // false at the end
}

// randomly is a seeded source that ends after so many operations.
type randomly struct {
	*rand.Rand
	left int
}

func (r *randomly) pick(n int) int { return r.IntN(n) }

func (r *randomly) more() bool {
	r.left--
	return r.left >= 0
}

// fromBytes takes one byte for a choice among up to 256, else two.
type fromBytes []byte

func (f *fromBytes) pick(n int) int {
	v := 0
	for range 1 + min(1, (n-1)>>8) {
		if len(*f) != 0 {
			v, *f = v<<8|int((*f)[0]), (*f)[1:]
		}
	}
	return v % n
}

func (f *fromBytes) more() bool { return len(*f) != 0 }

const (
	simThreads = 3
	simBlocks  = 4000      // live at most
	simBytes   = 128 << 20 // live at most; little of it is ever touched
	simEvery   = 48        // operations between two inspections
)

// sim runs operations on the heap as several threads would, one at a time, and
// knows what must come of them.
type sim struct {
	choices
	threads []*thread
	now     uint64
	m       model
	steps   int
	capped  bool // a tier has a hard cap: there may be no memory
}

// operations, by how often they come.
var operations = []func(*sim) error{
	(*sim).malloc, (*sim).malloc, (*sim).malloc, (*sim).mallocMany, (*sim).mallocMany,
	(*sim).freeOne, (*sim).freeOne, (*sim).freeOne, (*sim).freeMany, (*sim).freeMany,
	(*sim).freePage, (*sim).freePage,
	(*sim).pingPong, (*sim).pingPong, (*sim).aligned, (*sim).resize, (*sim).resize,
	(*sim).later, (*sim).later, (*sim).trim, (*sim).newThread, (*sim).fallback, (*sim).misuse,
	(*sim).freeClass, (*sim).unmapNot,
	(*sim).thin,
}

// simulate runs the choices to their end, then frees everything.
func simulate(c choices) error { return simulateOf(c, operations, false) }

func simulateOf(c choices, operations []func(*sim) error, capped bool) error {
	s := &sim{choices: c, now: 1e9, capped: capped}
	for i := range simThreads {
		h := Acquire(s.token(i))
		if h == nil {
			return fmt.Errorf("no heap")
		}
		s.threads = append(s.threads, &thread{h: h, token: s.token(i),
			now: func() uint64 { return s.now }})
	}
	for s.more() {
		op := s.pick(len(operations))
		s.steps++
		if err := operations[op](s); err != nil {
			return fmt.Errorf("operation %d (%d): %w", s.steps, op, err)
		}
		if s.steps%simEvery == 0 {
			if err := s.inspect(); err != nil {
				return fmt.Errorf("after operation %d (%d): %w", s.steps, op, err)
			}
		}
	}
	if err := s.inspect(); err != nil {
		return fmt.Errorf("at the end: %w", err)
	}
	if err := s.finish(); err != nil {
		return fmt.Errorf("freeing everything: %w", err)
	}
	return nil
}

// token is the token of thread i; that of the borrower comes after them. A token
// is a multiple of 8 and not 0.
func (s *sim) token(i int) uintptr { return uintptr(i+1) * 8 }

func (s *sim) inspect() error {
	v, err := inspected()
	if err != nil {
		return err
	}
	r := filled(s.threads[0].token)
	if r == nil {
		return fmt.Errorf("no report")
	}
	if err := v.counts(r, &s.m.classes, s.m.huge, s.m.zero); err != nil {
		return err
	}
	return s.m.check()
}

// finish frees every block from any thread, and looks at what the heap holds on to.
func (s *sim) finish() error {
	for i := 0; len(s.m.blocks) != 0; i++ {
		if err := s.freeBlock(s.threads[i%simThreads], len(s.m.blocks)-1); err != nil {
			return err
		}
	}
	rounds := 3
	if secure {
		rounds = 4 // in the first, blocks leave the quarantine of one thread for pages of another
	}
	for range rounds {
		s.now += PurgeDelay + minCollect
		for _, t := range s.threads {
			t.enter().Thread.tick()
		}
	}
	if err := s.inspect(); err != nil {
		return err
	}
	if r := filled(8); r.BlocksLive != 0 || r.BytesLive != 0 {
		return fmt.Errorf("%d blocks of %d bytes are live", r.BlocksLive, r.BytesLive)
	}
	if limit := uintptr(simThreads+1) * retireMax; pool.dirtyBytes != 0 || pool.cache.bytes != 0 ||
		pool.usedBytes > limit {
		return fmt.Errorf("after the delay %d bytes are dirty, %d cached, %d in use",
			pool.dirtyBytes, pool.cache.bytes, pool.usedBytes)
	}
	for range 2 { // what is in quarantine goes back to other threads' pages
		for _, t := range s.threads {
			Trim(t.enter())
		}
	}
	if pool.usedBytes != 0 || pool.count.committed != 0 {
		return fmt.Errorf("after Trim %d bytes are in use, %d committed", pool.usedBytes,
			pool.count.committed)
	}
	return s.inspect()
}

// anyThread is one of the threads.
func (s *sim) anyThread() *thread { return s.threads[s.pick(simThreads)] }

// freeBlock frees block i of the model from thread t.
func (s *sim) freeBlock(t *thread, i int) error {
	if err := s.m.blocks[i].intact(); err != nil {
		return err
	}
	b := s.m.remove(i)
	if why := t.free(b.addr); why != FreeOK {
		return fmt.Errorf("free of live block %#x of %d bytes says %d", b.addr, b.size, why)
	}
	return nil
}

// mallocOf allocates n bytes from thread t.
func (s *sim) mallocOf(t *thread, n uintptr) error {
	if len(s.m.blocks) >= simBlocks || s.m.bytes+n > simBytes {
		return nil
	}
	b, zero := t.malloc(n)
	if b == 0 {
		if s.capped {
			return nil
		}
		return fmt.Errorf("no memory for %d bytes", n)
	}
	return s.m.add(b, n, sizeclass.Granule, zero)
}

// someSize is a size of any order of magnitude, small ones more often.
func (s *sim) someSize() uintptr {
	switch s.pick(16) {
	case 0:
		return uintptr(s.pick(16)) << 8
	case 1, 2:
		return 1<<10 + uintptr(s.pick(1<<16))>>3
	case 3, 4:
		return 8<<10 + uintptr(s.pick(1<<16))
	case 5, 6:
		return 64<<10 + uintptr(s.pick(1<<16))*15
	case 7:
		return 1<<20 + uintptr(s.pick(1<<16))*48
	case 8:
		return sizeclass.MaxSize + 1 + uintptr(s.pick(1<<16))*128
	default:
		return uintptr(s.pick(256)) * 2
	}
}
