package cudahook

import (
	"fmt"
	"sort"
)

// valid checks all that the comments of a heap's types promise.
func (h *heap) valid() error {
	var sides [2]side
	var asked, idles, globals, reserved, segments, foreign, withEvents, asleep uint64
	blocks := uintptr(0)
	last := uint64(0)
	live := map[*streamCache]uint64{}
	freeOf := map[*streamCache]uint64{}
	exacts := map[*streamCache]uint64{}
	for i := uintptr(0); i < h.index.n; i++ {
		s := h.index.at(i)
		if s.address < last {
			return fmt.Errorf("segment %#x overlaps the one before or is out of order", s.address)
		}
		last = s.address + s.bytes
		if s.first == nil && s.addresses != nil {
			continue // about to be mapped, or to be returned
		}
		segments++
		at := s.address
		before := (*block)(nil)
		for b := s.first; b != nil; before, b = b, b.after {
			blocks++
			if b.address != at || b.before != before || b.segment != s || b.bytes == 0 ||
				b.bytes%granule != 0 {
				return fmt.Errorf("block %#x of segment %#x is out of place", b.address, s.address)
			}
			if h.table.find(b.address) != b {
				return fmt.Errorf("block %#x is not in the table", b.address)
			}
			if inside := b.address + b.bytes/3; h.blockAt(inside) != b {
				return fmt.Errorf("%#x is not found to be in block %#x", inside, b.address)
			}
			at += b.bytes
			k := &sides[s.pool.spilled]
			switch b.state {
			case stateInUse:
				k.live += b.bytes
				k.blocks++
				asked += b.asked
				live[b.cache]++
				if b.asked > b.bytes {
					return fmt.Errorf("block %#x has %d bytes for %d", b.address, b.bytes, b.asked)
				}
				if b.events != nil {
					withEvents++
				}
			case stateExact, stateFree:
				switch s.pool.global {
				case b.cache:
					k.global += b.bytes
				case nil:
					k.private += b.bytes
				default:
					k.local += b.bytes
				}
				if b.cache.pool != s.pool {
					return fmt.Errorf("free block %#x is in the cache of another pool", b.address)
				}
				freeOf[b.cache] += b.bytes
				if b.state == stateFree && b.cache == s.pool.global {
					globals++
				}
				if b.state == stateExact {
					exacts[b.cache]++
				} else if c := b.after; c != nil && c.state == stateFree && c.cache == b.cache {
					return fmt.Errorf("block %#x and the next one are not merged", b.address)
				}
			case stateHeld:
				k.held += b.bytes
			case stateLost:
				k.lost += b.bytes
			case stateFreeing, statePending, stateTaken:
				k.pending += b.bytes
			default:
				return fmt.Errorf("block %#x in state %d", b.address, b.state)
			}
		}
		if at != s.address+s.bytes {
			return fmt.Errorf("the blocks of segment %#x have %d of %d bytes", s.address,
				at-s.address, s.bytes)
		}
		whole := s.first.after == nil && s.first.state == stateFree
		whole = whole && s.pool.global != nil && s.addresses == nil
		if err := h.validPieces(s); err != nil {
			return err
		}
		if whole != (s.idle != 0) {
			return fmt.Errorf("segment %#x: idle %d", s.address, s.idle)
		}
		if whole {
			idles++
		}
		if s.asleep != 0 {
			asleep += s.bytes
		} else if s.pool.spilled == 0 {
			reserved += s.bytes
		}
	}
	for i := uintptr(0); h.table.base != 0 && i <= h.table.mask; i++ {
		if e := h.table.at(i); e.key != 0 && e.block.state == stateForeign {
			foreign += e.block.bytes
			blocks++
		}
	}
	if blocks != h.table.used {
		return fmt.Errorf("%d blocks, %d in the table", blocks, h.table.used)
	}
	return h.validFigures(&sides, live, freeOf, exacts,
		[]uint64{asked, idles, globals, reserved, segments, foreign, withEvents, asleep})
}

// validPieces checks that an expandable segment consists of whole pieces.
func (h *heap) validPieces(s *segment) error {
	end := s.last
	for b := s.first; b != nil; b = b.after {
		end = b
	}
	if s.last != end {
		return fmt.Errorf("segment %#x: its last block is %#x, not %#x", s.address, end.address,
			s.last.address)
	}
	if s.addresses == nil {
		return nil
	}
	v := s.addresses
	if s.asleep != 0 {
		return nil
	}
	if !v.contains(s.address) || v.first(s.address, s.address+s.bytes) != s.address {
		return fmt.Errorf("segment %#x does not begin with a piece", s.address)
	}
	return nil
}

func (h *heap) validFigures(sides *[2]side, live, freeOf, exacts map[*streamCache]uint64,
	sums []uint64) error {
	c := &h.count
	for i, want := range []uint64{c.asked, c.idles, c.globals, c.reserved, c.segments, c.foreign,
		h.withEvents, c.asleep} {
		if sums[i] != want {
			return fmt.Errorf("figure %d is %d, counted %d", i, want, sums[i])
		}
	}
	for i := range sides {
		a, b := &sides[i], &c.side[i]
		if a.live != b.live || a.blocks != b.blocks || a.local != b.local || a.global != b.global ||
			a.private != b.private ||
			a.pending != b.pending || a.held != b.held || a.lost != b.lost {
			return fmt.Errorf("side %d: counted %+v, not %+v", i, *a, *b)
		}
	}
	if s := &c.side[0]; c.reserved+c.asleep != s.all() {
		return fmt.Errorf("%d bytes are reserved; %+v", c.reserved, *s)
	}
	seen := map[*streamCache]bool{}
	for t := h.allCaches; t != nil; t = t.all {
		seen[t] = true
		if t.live != live[t] || t.free != freeOf[t] || t.exacts != exacts[t] {
			return fmt.Errorf("cache of stream %#x: live %d free %d exact %d; counted %d %d %d",
				t.stream, t.live, t.free, t.exacts, live[t], freeOf[t], exacts[t])
		}
		if err := t.validBins(); err != nil {
			return err
		}
	}
	for t := range live {
		if !seen[t] {
			return fmt.Errorf("a block in use has a stream cache that was recycled")
		}
	}
	return nil
}

func (t *streamCache) validBins() error {
	for kind := range t.bins {
		k := &t.bins[kind]
		for i, b := range k.head {
			set := k.parts[i/32]>>(i%32)&1 != 0
			if set != (b != nil) || (k.parts[i/32] != 0) != (k.levels>>(i/32)&1 != 0) {
				return fmt.Errorf("the bitmap is wrong at bin %d", i)
			}
			for prev := (*block)(nil); b != nil; prev, b = b, b.next {
				if b.prev != prev || binOf(b.bytes) != uint(i) || b.cache != t ||
					b.state != stateFree || b.segment.kind != uint64(kind) {
					return fmt.Errorf("block %#x is in the wrong bin", b.address)
				}
			}
		}
	}
	return nil
}

// checkAll checks all heaps, and what their devices are charged with.
func checkAll(f *fake, settled bool) error {
	reserved, segments := map[uint64]uint64{}, map[uint64]uint64{}
	for i := range heaps {
		h := &heaps[i]
		if h.context == 0 {
			continue
		}
		if err := h.valid(); err != nil {
			return fmt.Errorf("heap %d: %w", i, err)
		}
		reserved[h.ordinal] += h.count.reserved + h.count.foreign
		segments[h.ordinal] += h.count.reserved
	}
	var ordinals []uint64
	for d := range f.memory {
		ordinals = append(ordinals, d)
	}
	sort.Slice(ordinals, func(i, j int) bool { return ordinals[i] < ordinals[j] })
	for _, d := range ordinals {
		if devices[d].reserved > devices[d].hard {
			return fmt.Errorf("device %d: %d bytes reserved of %d", d, devices[d].reserved,
				devices[d].hard)
		}
		if segments[d] > f.memory[d] {
			return fmt.Errorf("device %d: segments of %d bytes, and it has %d", d, segments[d],
				f.memory[d])
		}
		if settled && devices[d].reserved != reserved[d] {
			return fmt.Errorf("device %d is charged with %d, the heaps have %d", d,
				devices[d].reserved, reserved[d])
		}
	}
	return nil
}
