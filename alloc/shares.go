package alloc

// A share is what a tier has of a huge block: the block counts for the tier of its first byte, its
// bytes for the tiers that they are in.
type (
	share  struct{ blocks, bytes uint64 }
	shares [placementSlots]share
)

// freed meanwhile
func (p *Page) isHuge() bool { return p.state == spanHuge || p.state == spanHugeCached }

// shares is what the tiers have of a huge block; of a page nothing.
func (p *Page) shares() (s shares) {
	if p.isHuge() {
		there := uint64(p.elsewhere(p.Size))
		s[tierOf(p.placementAt(0))].blocks = 1
		s[tierOf(p.unmigratedIn)].bytes += there
		s[tierOf(p.placement)].bytes += uint64(p.Size) - there
	}
	return s
}

// reshare counts that the tiers have what they have by now of a huge block in use, and not what
// they had before. Precondition: poolLock is held.
func (p *Page) reshare(before *shares) {
	now := p.shares()
	for i := range now {
		was, is := before[i], now[i]
		pool.count.huge[i].alloc(is.blocks-was.blocks, is.bytes-was.bytes)
		left := share{less(was.blocks, is.blocks), less(was.bytes, is.bytes)}
		pool.count.moves[i].alloc(left.blocks, left.bytes)
		pool.count.moves[i].free(left.blocks, left.bytes)
	}
}

// unshare counts that a huge block is freed. Precondition: poolLock is held.
func (p *Page) unshare() {
	for i, s := range p.shares() {
		pool.count.huge[i].free(s.blocks, s.bytes)
	}
}
