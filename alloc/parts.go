package alloc

import (
	"math/bits"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// A huge block of which only parts are hot lies in two tiers, part by part (follow.go). Its parts
// are of one size, a power of two; the last may be shorter. It has a part map (parts):
//
//	done = 0, and unmigratedIn < placement: the faster tier has what the map says, the slower one
//	    the rest
//	bit i of faster set ⇔ the part i lies in unmigratedIn
//	whole ⇔ unmigrated·Page = Σ bytes of the parts in unmigratedIn
//
// To the kernel the parts are mappings of their own. Before the block is resized or cached they
// become one again.
const (
	partShift  = 21 // of the smallest parts: those of 2 MiB
	partWords  = 32 // of a part map
	partsMost  = partWords * 64
	partsFirst = partsMost / 4 // of a block that has not grown since
)

type partMap struct {
	_      raw.OffHeap
	faster [partWords]uint64
	next   *partMap // in pool.freeParts
	shift  uint32   // parts are 1<<shift bytes
}

// PartMapBytes is the size of a part map, for readers of another process's heap.
const PartMapBytes = unsafe.Sizeof(partMap{})

// partShiftFor is the shift of the parts of a block of size bytes.
func partShiftFor(size uintptr) uint32 {
	shift := uint32(partShift)
	for shift < 47 && size>>(shift&63) > partsFirst {
		shift++
	}
	return shift
}

func (m *partMap) bytes() uintptr { return 1 << (m.shift & 63) }

// index is the number of the part that has the byte at an offset.
func (m *partMap) index(offset uintptr) uintptr { return offset >> (m.shift & 63) }

func (m *partMap) has(i uintptr) bool { return m.faster[i>>6&(partWords-1)]>>(i&63)&1 != 0 }

func (m *partMap) set(i uintptr, faster bool) {
	word, bit := &m.faster[i>>6&(partWords-1)], uint64(1)<<(i&63)
	*word &^= bit
	if faster {
		*word |= bit
	}
}

// within is how many of the first n bytes lie in the faster tier.
func (m *partMap) within(n uintptr) uintptr {
	full := m.index(n)
	count := 0
	for i := uintptr(0); i < partWords && i <= full>>6; i++ {
		word := m.faster[i]
		if i == full>>6 {
			word &= 1<<(full&63) - 1
		}
		count += bits.OnesCount64(word)
	}
	bytes := uintptr(count) << (m.shift & 63)
	if m.has(full) {
		bytes += n & (m.bytes() - 1)
	}
	return bytes
}

// run is the end of the part i, and of those after it that lie in the same tier, in a block of
// size bytes: an offset.
func (m *partMap) run(i, size uintptr) uintptr {
	last := m.index(size - 1)
	for n := uintptr(0); n < partsMost && i < last && m.has(i+1) == m.has(i); n++ {
		i++
	}
	return min((i+1)<<(m.shift&63), size)
}

// placementAt is where the byte at an offset of a huge block lies.
func (p *Page) placementAt(offset uintptr) uint32 {
	if m := p.parts(); m != nil {
		return p.partPlacement(m, m.index(offset))
	}
	if offset < uintptr(p.done)<<SliceShift {
		return p.unmigratedIn
	}
	return p.placement
}

// partPlacement is where the part i of a block with a part map lies.
func (p *Page) partPlacement(m *partMap, i uintptr) uint32 {
	if m.has(i) {
		return p.unmigratedIn
	}
	return p.placement
}

// makeParts gives a huge block a part map if it has none and can have one: if it is in one tier, or
// split at the end of a part. The tier other is to have parts of it. Precondition: poolLock is
// held, the block is pinned or nobody else moves it.
func (p *Page) makeParts(other uint32) *partMap {
	m := p.parts()
	if m == nil {
		if m = p.newParts(other); m == nil {
			return nil
		}
	}
	// a block in one tier may begin anew with another
	switch size := p.Size / raw.Page; {
	case uintptr(p.unmigrated) == size:
		p.rebase(m, p.unmigratedIn, other)
	case p.unmigrated == 0:
		p.rebase(m, p.placement, other)
	}
	ageAgain(p)
	return m
}

func (p *Page) newParts(other uint32) *partMap {
	if !p.hasParts() || p.done != 0 && !p.isSplit() || !p.wholeSplit() ||
		p.unmigrated == 0 && p.placement == other {
		return nil
	}
	shift, first := partShiftFor(p.Size), uintptr(p.done)<<SliceShift
	if first&(1<<(shift&63)-1) != 0 {
		return nil
	}
	m := pool.freeParts
	if m != nil {
		pool.freeParts = m.next
	} else if m = (*partMap)(raw.Ptr(metaAlloc(raw.RoundUp(PartMapBytes, 64)))); m == nil {
		return nil
	}
	m.shift, m.next = shift, nil
	for i := range m.faster {
		m.faster[i] = 0
	}
	for i := uintptr(0); i < partsMost && i < m.index(first); i++ {
		m.set(i, true)
	}
	p.done = 0
	p.setParts(m)
	return m
}

// rebase has the map tell two tiers apart, of which the block lies in one.
func (p *Page) rebase(m *partMap, here, other uint32) {
	p.unmigratedIn, p.placement = min(here, other), max(here, other)
	faster := uint64(0)
	p.unmigrated = 0
	if here < other {
		faster = ^uint64(0)
		p.unmigrated = uint32(p.Size / raw.Page)
	}
	for i := range m.faster {
		m.faster[i] = faster
	}
	m.trim(p.Size)
}

// trim forgets the parts behind a block of size bytes.
func (m *partMap) trim(size uintptr) {
	n := m.index(size-1) + 1
	for i := range m.faster {
		switch first := uintptr(i) << 6; {
		case first >= n:
			m.faster[i] = 0
		case n-first < 64:
			m.faster[i] &= 1<<(n-first&63) - 1
		}
	}
}

// trimParts has a block that was shortened forget the parts that it lost. Precondition: poolLock is
// held.
func (p *Page) trimParts() {
	if m := p.parts(); m != nil {
		m.trim(p.Size)
		p.unmigrated = uint32(m.within(p.Size) / raw.Page)
		ageAgain(p)
	}
}

// dropParts ends the parts of a block that lies in one tier, or is about to. Precondition: poolLock
// is held.
func (p *Page) dropParts() {
	if m := p.parts(); m != nil {
		p.setParts(nil)
		m.next, pool.freeParts = pool.freeParts, m
	}
}

// joinParts ends the parts of a block that is in no list any more. If all of it lies in one tier it
// is one mapping again. Precondition: poolLock is held.
func (p *Page) joinParts() {
	if p.parts() == nil {
		return
	}
	if uintptr(p.unmigrated)*raw.Page == p.Size {
		p.placement, p.unmigrated = p.unmigratedIn, 0
	}
	bindAgain(p.Start, p.Size, p.placement)
	p.dropParts()
}

// bindParts gives each part the policy of its tier again.
func (p *Page) bindParts() {
	m := p.parts()
	if m == nil {
		return
	}
	for at := uintptr(0); at < p.Size; {
		end := m.run(m.index(at), p.Size)
		bindAgain(p.Start+at, end-at, p.partPlacement(m, m.index(at)))
		at = end
	}
}

// endSlower puts the end of a block with a part map into the slower tier, where its growth is
// charged. It reports false if that is impossible, or if the map has no room for size bytes.
// Precondition: the block is pinned.
func (p *Page) endSlower(token, size uintptr) (ok bool) {
	m := p.parts()
	end := m.index(p.Size)
	switch {
	case m.index(size-1) >= partsMost:
		return false
	case p.Size&(m.bytes()-1) == 0 || !m.has(end):
		return true
	case !poolLock.Take(token):
		return false
	}
	_, ok = p.movePart(token, m, end)
	poolLock.Release()
	return ok
}

// movePart moves the part i of a block that is pinned to the other of its two tiers. It returns the
// bytes that moved. If some pages do not move, the others move back. poolLock is held, and let go
// meanwhile.
func (p *Page) movePart(token uintptr, m *partMap, i uintptr) (reached uintptr, ok bool) {
	from, to := p.placement, p.unmigratedIn
	if m.has(i) {
		from, to = to, from
	}
	at := i << (m.shift & 63)
	n := min(m.bytes(), p.Size-at)
	if !charged(p, to, n) {
		return 0, false
	}
	poolLock.Release()
	stayed := relocate(p.Start+at, n, to)
	left := uintptr(0)
	if stayed != 0 { // what stayed did not come back, whatever the kernel tells
		left = min(relocate(p.Start+at, n, from), n-stayed)
	}
	poolLock.Take(token)
	settled(p)
	was := p.shares()
	reached = n
	if stayed != 0 {
		reached = left
		tiers.Release(tierOf(to), n-left)
	} else {
		m.set(i, to < from)
	}
	tiers.Release(tierOf(from), reached)
	if to < from {
		p.unmigrated += uint32(reached / raw.Page)
	} else {
		p.unmigrated -= uint32(reached / raw.Page)
	}
	p.reshare(&was)
	ageAgain(p)
	tiers.Moved(tierOf(from), reached/raw.Page, (n-reached)/raw.Page)
	return reached, stayed == 0
}

// DescriptorSize is the size of a span's descriptor, for readers of another process's heap.
const DescriptorSize = unsafe.Sizeof(Page{})

// Extent says where the span of a copied descriptor lies: the bytes from start to cut in one tier,
// those from cut to end in another. The copy may be of anything; the answer is then of no use, but
// start ≤ cut ≤ end.
func Extent(descriptor *[DescriptorSize]byte) (start, cut, end, first, rest uintptr) {
	p := (*Page)(unsafe.Pointer(descriptor))
	size, part := p.bytes(), firstPart{placement: p.placement}
	switch p.state {
	case spanHuge, spanHugeCached, spanHugeAlone:
		size = p.Size & mapMask
	}
	if p.state == spanHuge {
		part = p.parted(size)
	}
	start = p.spanStart() & mapMask
	cut = start + min(part.bytes, size)
	return start, cut, start + size, known(part.placement), known(p.placement)
}

const mapMask = RootEntries<<RootShift - 1

// known is the tier of a placement that may be none.
func known(placement uint32) uintptr { return min(tierOf(placement), uintptr(config.TierSlow)) }

// PartMapOf is the address of the part map of a copied descriptor, or 0.
func PartMapOf(descriptor *[DescriptorSize]byte) uintptr {
	p := (*Page)(unsafe.Pointer(descriptor))
	if p.state != spanHuge {
		return 0
	}
	return p.partsAddress() & mapMask
}

// PartExtent says where the part i of a copied descriptor with a copied part map lies, and in which
// tier: n is 0 behind the last. The copies may be of anything; the answer is then of no use.
func PartExtent(descriptor *[DescriptorSize]byte, parts *[PartMapBytes]byte, i uintptr) (start, n,
	tier uintptr) {
	p, m := (*Page)(unsafe.Pointer(descriptor)), (*partMap)(unsafe.Pointer(parts))
	at, size := i<<(m.shift&63), p.Size&mapMask
	if i >= partsMost || m.shift > 47 || at >= size {
		return 0, 0, 0
	}
	return p.Start&mapMask + at, min(m.bytes(), size-at), known(p.partPlacement(m, i))
}
