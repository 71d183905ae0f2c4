package alloc

import (
	"sync/atomic"
	"syscall"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/tiers"
)

// Huge pages, by TA_HUGEPAGES. A tier of transparent ones (thp) is charged, and
// purged, in whole huge pages: a touch of one slice makes all of them resident.
//
//	of a place with a unit above one slice, every clean span starts and ends at a
//	multiple of it, and so does what is purged
//
// Pages of the kernel's pool (2M, 1G) are mapped when they are to be had, and ordinary
// ones otherwise. A segment of them is charged whole, is never purged in parts, because a
// page once given back may not be there when it is touched again and the process dies,
// and is unmapped when nothing in it is in use.
const (
	log2M  = 21
	log1G  = 30
	huge2M = 1 << log2M
	huge1G = 1 << log1G

	sysMadvise     = syscall.SYS_MADVISE
	madvHugePage   = 14
	madvNoHugePage = 15
	mapHuge        = 0x40000 // MAP_HUGETLB
	mapHugeShift   = 26      // where the logarithm of the page size goes
)

// unitOf is the number of slices in which a place is charged: a power of two.
func unitOf(place uintptr) uintptr {
	if places[place&(placeSlots-1)].spans >= config.HugeThp {
		return huge2M >> SliceShift
	}
	return 1
}

// wholeUnits is how many slices are charged for a span of n.
func wholeUnits(place, n uintptr) uintptr {
	if places[place&(placeSlots-1)].spans > config.HugeThp {
		n = max(n, minGrowth)
	}
	return raw.RoundUp(n, unitOf(place))
}

// hugetlbSize is the size of the kernel's huge pages that a mapping of n bytes would
// have, or 0. Pages of 1 GiB are used where they waste no more than an eighth.
func hugetlbSize(place, n uintptr) uintptr {
	switch places[place&(placeSlots-1)].huge {
	case config.Huge1G:
		if whole := raw.RoundUp(n, huge1G); whole-n <= whole/8 {
			return huge1G
		}
		return huge2M
	case config.Huge2M:
		return huge2M
	}
	return 0
}

// mapHugetlb maps n bytes, a multiple of the page's size, of huge pages. It returns 0,
// and counts that, when the kernel has not enough of them.
func mapHugetlb(place, n, page uintptr) uintptr {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	flags := uintptr(syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS | mapHuge | log2M<<mapHugeShift)
	if page == huge1G {
		flags ^= (log2M ^ log1G) << mapHugeShift
	}
	addr, errno := raw.Sys(syscall.SYS_MMAP, 0, n, prot, flags, ^uintptr(0), 0)
	if errno != 0 {
		atomic.AddUint64(&hugeFallbacks[place&(placeSlots-1)], 1)
		return 0
	}
	return addr
}

// purgeable reports whether a dirty span has anything that can be purged.
func purgeable(p *Page) bool {
	if p.segment.hugetlb != 0 {
		return uintptr(p.slices) == p.segment.slices && p.segment.epoch == pool.epoch
	}
	unit := unitOf(uintptr(p.place)) << SliceShift
	return raw.RoundUp(p.Start, unit)+unit <= p.Start+p.bytes()
}

// purgeablePart is what can be purged of a span that is in no list: whole huge pages.
// The rest goes back among the dirty spans. The part is marked at its ends, for the lock
// is let go while it is purged, and its neighbours look there. Precondition: purgeable(p).
func purgeablePart(p *Page) *Page {
	unit := unitOf(uintptr(p.place)) << SliceShift
	if unit == SliceSize || p.segment.hugetlb != 0 {
		return p
	}
	start := raw.RoundUp(p.Start, unit)
	if head := start - p.Start; head != 0 {
		rest := cut(p, head>>SliceShift)
		if rest == nil {
			return p // no memory for a descriptor: less of the huge page is kept whole
		}
		insertFree(p, spanDirty)
		rememberDirty(p)
		p = rest
	}
	if rest := cut(p, p.bytes()&^(unit-1)>>SliceShift); rest != nil {
		insertFree(rest, spanDirty)
		rememberDirty(rest)
	}
	mapEnds(p)
	return p
}

// purgeHugetlb unmaps a segment of the kernel's huge pages, when p is all of it.
// poolLock is held, and let go meanwhile.
func purgeHugetlb(token uintptr, p *Page) bool {
	if !purgeable(p) {
		return false
	}
	n, place := p.bytes(), p.place
	stray, astray := uintptr(p.stray)*raw.Page, p.astray
	pool.leaving += n
	ok := unmapSegment(token, p)
	pool.leaving -= n
	if !ok {
		lose(place, n-stray)
		lose(astray, stray)
		return true
	}
	tiers.Release(tierOf(place), n-stray)
	tiers.Release(tierOf(astray), stray)
	uncommit(n)
	pool.count.purges++
	pool.count.purgedBytes += uint64(n)
	return true
}
