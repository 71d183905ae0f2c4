package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// With TA_SECURE=1 a large block is a huge block between addresses without access:
//
//	reserved [ guard | block, whole memory pages | guard ]
//
// The rest of the block's last memory page is filled. A freed block becomes inaccessible at once.
// Its memory returns to the kernel, and its addresses are not reused while they are parked.
//
// Guards take more addresses than blocks do, so under a limit on addresses (RLIMIT_AS) a block gets
// guards only while a part of the limit stays free. When that part is used up, and whenever the
// kernel refuses a mapping, parked addresses and the guards of live blocks are unmapped. A block
// also gets no guards if the limit on mappings prevents it. Every block without guards is counted.
//
// The descriptor of such a block holds the size asked for (request), the family of functions that
// allocated it (family), and the reserved addresses (reservation).
const (
	// slices on each side: writes up to 1 MiB outside the block are caught
	guardPagesLeast  = 17
	guardPagesRandom = 16 // up to so many more, at random

	// The part of an address limit that must stay free beside a block with guards. Once guards were
	// dropped, more must be free before blocks get guards again.
	spareShare      = 4
	spareShareAgain = 2
)

// guardPagesMap maps whole bytes at base for a block of size bytes at start, a multiple of align.
// used bytes of the block are accessible. The sizes of the guards depend on r, a random number.
func guardPagesMap(token, size, used, align, r uintptr) (start, base, whole uintptr) {
	before, after := guardPagesLeast+r%guardPagesRandom, guardPagesLeast+r>>32%guardPagesRandom
	whole = size + (before+after)<<SliceShift + align
	spare := spareAddresses()
	base = mapBeside(whole, spare)
	if base == 0 && dropGuardPagesLocking(token, whole+spare) {
		base = mapBeside(whole, spareAddresses())
	}
	if base != 0 {
		start = raw.RoundUp(base+before<<SliceShift, align)
		if raw.Open(start, used) {
			return start, base, whole
		}
		raw.Unmap(base, whole)
	}
	start = mapAligned(size, align)
	if start == 0 && (dropGuardPagesLocking(token, size) || dropReservationsLocking(token)) {
		start = mapAligned(size, align)
	}
	if start != 0 {
		atomic.AddUint64(&withoutGuardPages, 1)
	}
	return start, start, size
}

// spareAddresses returns the bytes of addresses that must stay free beside a block with guards.
func spareAddresses() uintptr {
	limit := addressLimit
	switch {
	case limit == 0:
		return 0
	case atomic.LoadUint32(&guardPagesDropped) != 0:
		return raw.RoundUp(limit/spareShareAgain, raw.Page)
	}
	return raw.RoundUp(limit/spareShare, raw.Page)
}

// mapBeside reserves n bytes, or returns 0 if spare bytes of addresses would not stay free. Only
// the kernel knows the free addresses, so it is asked for both at once.
func mapBeside(n, spare uintptr) uintptr {
	if spare != 0 {
		if !reservable(n + spare) {
			return 0
		}
		atomic.StoreUint32(&guardPagesDropped, 0)
	}
	return raw.MapBarred(n)
}

// dropGuardPagesLocking is dropGuardPages for a caller that does not hold poolLock.
func dropGuardPagesLocking(token, n uintptr) bool {
	if !poolLock.Take(token) {
		return false
	}
	ok := dropGuardPages(n)
	poolLock.Release()
	return ok
}

// secure is whether the secure mode (secure.go) is on.
var secure bool

// Secure reports whether the secure mode is on.
func Secure() bool { return secure }

// Freed blocks with guard pages are parked.
const (
	parkedSlots = 256
	parkedBytes = 16 << 30
)

// parkedSet has freed blocks with guard pages, a ring: slot[at] is the oldest. Guarded by poolLock.
type parkedSet struct {
	slot  [parkedSlots]*Page
	at    uintptr
	bytes uintptr // reserved by them
}

// withoutGuardPages counts the blocks that had to do without guards, and those that lost them.
var withoutGuardPages uint64

// guardPagesDropped says that guards have given way to an address limit. A thread that reads it
// late takes addresses that others have to do without for a while.
var guardPagesDropped uint32

// dropGuardPages gives guards up if the kernel lacks addresses or mappings for n bytes, and reports
// whether it gave up any. Precondition: poolLock is held.
func dropGuardPages(n uintptr) bool { return secure && scarce(n) && dropAllGuardPages() > 0 }

// dropAllGuardPages gives the addresses of parked blocks and the guards of live ones back to the
// kernel, and returns how many bytes that is. Precondition: poolLock is held. It is kept meanwhile:
// no memory lies there, so the kernel has little to do.
func dropAllGuardPages() (n uintptr) {
	atomic.StoreUint32(&guardPagesDropped, 1)
	for range parkedSlots {
		n += pool.parked.drop()
		pool.parked.at++
	}
	for p := pool.huge.head; p != nil; p = p.nextLive() {
		n += p.dropGuardPages()
	}
	return n
}

// scarce reports whether the kernel lacks addresses or mappings for n bytes, and would have them
// without guards. Otherwise the kernel lacks memory, or has fewer addresses than n
// in all. Precondition: poolLock is held.
func scarce(n uintptr) bool {
	n += leafBytes + SliceSize // a leaf of the page map, and alignment
	if reservable(n) {
		return false
	}
	if guards := guardBytes(); n <= guards || reservable(n-guards) {
		limitAddresses(n)
		return true
	}
	return addressLimit == 0 && !reservable(raw.Page) // there are too many mappings
}

// guardBytes returns the addresses that dropAllGuardPages would give back. Precondition: poolLock
// is held.
func guardBytes() (n uintptr) {
	n = pool.parked.bytes
	for p := pool.huge.head; p != nil; p = p.nextLive() {
		_, whole := p.reservation()
		n += whole - p.Size
	}
	return n
}

// dropGuardPages reduces the reservation of a live block to the block itself. It returns the
// bytes that the kernel took back. Precondition: poolLock is held.
func (p *Page) dropGuardPages() (n uintptr) {
	base, whole := p.reservation()
	if whole == p.Size {
		return 0
	}
	if before := p.Start - base; before != 0 && raw.Unmap(base, before) {
		base = p.Start
		n = before
	}
	end := p.Start + p.Size
	if after := base + whole - n - end; after != 0 && raw.Unmap(end, after) {
		n += after
	}
	p.setReservation(base, whole-n)
	unmapped(n)
	if whole-n == p.Size {
		atomic.AddUint64(&withoutGuardPages, 1)
	}
	return n
}

// park takes all access to a freed block away and keeps its addresses. poolLock is held, and
// let go meanwhile; p is in no list.
func park(token uintptr, p *Page) {
	size, placement := p.Size, p.placement
	unmigrated, unmigratedIn := uintptr(p.unmigrated)*raw.Page, p.unmigratedIn
	pool.leaving += size
	poolLock.Release()
	base, whole := p.reservation()
	ok := forbid(base, whole, p.Start, size)
	if ok {
		tiers.Release(tierOf(placement), size-unmigrated)
		tiers.Release(tierOf(unmigratedIn), unmigrated)
	}
	poolLock.Take(token)
	pool.leaving -= size
	if ok {
		uncommit(size)
	}
	s := &pool.parked
	for i := 0; i < parkedSlots && (s.slot[s.at%parkedSlots] != nil || s.bytes > parkedBytes); i++ {
		s.oldest(token)
		if s.bytes <= parkedBytes {
			break
		}
		s.at++
	}
	s.slot[s.at%parkedSlots] = p
	s.at++
	s.bytes += whole
}

// oldest is drop without poolLock, which is held, and let go meanwhile.
func (s *parkedSet) oldest(token uintptr) {
	base, whole := s.remove()
	if whole == 0 {
		return
	}
	poolLock.Release()
	if raw.Unmap(base, whole) {
		unmapped(whole)
	}
	poolLock.Take(token)
}

// drop gives the addresses of the oldest parked block back to the kernel, and returns how many
// bytes that is. Precondition: poolLock is held.
func (s *parkedSet) drop() uintptr {
	base, whole := s.remove()
	if whole == 0 || !raw.Unmap(base, whole) {
		return 0
	}
	unmapped(whole)
	return whole
}

// remove takes the oldest parked block out of the set. It returns its addresses, no bytes where
// there is none. Precondition: poolLock is held.
func (s *parkedSet) remove() (base, whole uintptr) {
	p := s.slot[s.at%parkedSlots]
	if p == nil {
		return 0, 0
	}
	base, whole = p.reservation()
	s.slot[s.at%parkedSlots] = nil
	s.bytes -= whole
	mapSet(p.Start, nil)
	freeDescriptor(p)
	return base, whole
}

// forbid takes the access to n bytes at addr away, a whole mapping, and gives the memory of
// the size bytes at start among them back to the kernel. Where it refuses to map them afresh,
// access is taken from those alone, or nothing but the memory goes. It reports whether that went.
func forbid(addr, n, start, size uintptr) bool {
	if raw.Bar(addr, n) {
		return true
	}
	raw.Sys(syscall.SYS_MPROTECT, start, size, syscall.PROT_NONE, 0, 0, 0)
	return raw.Discard(start, size)
}
