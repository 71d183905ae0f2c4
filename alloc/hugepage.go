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
//	of a placement with a unit above one slice, every clean span starts and ends at a
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

// hugePageSlices is the number of slices in which a placement is charged: a power of two.
func hugePageSlices(placement uintptr) uintptr {
	if placements[placement&(placementSlots-1)].spans >= config.HugeThp {
		return huge2M >> SliceShift
	}
	return 1
}

// wholeHugePages is how many slices are charged for a span of n.
func wholeHugePages(placement, n uintptr) uintptr {
	if placements[placement&(placementSlots-1)].spans > config.HugeThp {
		n = max(n, minGrowth)
	}
	return raw.RoundUp(n, hugePageSlices(placement))
}

// hugetlbSize is the size of the kernel's huge pages that a mapping of n bytes would
// have, or 0. Pages of 1 GiB are used where they waste no more than an eighth.
func hugetlbSize(placement, n uintptr) uintptr {
	switch placements[placement&(placementSlots-1)].huge {
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
func mapHugetlb(placement, n, page uintptr) uintptr {
	const prot = syscall.PROT_READ | syscall.PROT_WRITE
	flags := uintptr(syscall.MAP_PRIVATE | syscall.MAP_ANONYMOUS | mapHuge | log2M<<mapHugeShift)
	if page == huge1G {
		flags ^= (log2M ^ log1G) << mapHugeShift
	}
	addr, errno := raw.Sys(syscall.SYS_MMAP, 0, n, prot, flags, ^uintptr(0), 0)
	if errno != 0 {
		atomic.AddUint64(&hugeFallbacks[placement&(placementSlots-1)], 1)
		return 0
	}
	return addr
}

// purgeable reports whether a dirty span has anything that can be purged.
func purgeable(p *Page) bool {
	if p.segment.reserved() {
		return uintptr(p.slices) == p.segment.slices && p.segment.epoch == pool.epoch
	}
	granularity := hugePageSlices(uintptr(p.placement)) << SliceShift
	return raw.RoundUp(p.Start, granularity)+granularity <= p.Start+p.bytes()
}

// purgeablePart is what can be purged of a span that is in no list: whole huge pages.
// The rest goes back among the dirty spans. The part is marked at its ends, for the lock
// is let go while it is purged, and its neighbours look there. Precondition: purgeable(p).
func purgeablePart(p *Page) *Page {
	granularity := hugePageSlices(uintptr(p.placement)) << SliceShift
	if granularity == SliceSize || p.segment.reserved() {
		return p
	}
	start := raw.RoundUp(p.Start, granularity)
	if head := start - p.Start; head != 0 {
		rest := cut(p, head>>SliceShift)
		if rest == nil {
			return p // no memory for a descriptor: less of the huge page is kept whole
		}
		insertFree(p, spanDirty)
		rememberDirty(p)
		p = rest
	}
	if rest := cut(p, p.bytes()&^(granularity-1)>>SliceShift); rest != nil {
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
	n, placement := p.bytes(), p.placement
	unmigrated, unmigratedIn := uintptr(p.unmigrated)*raw.Page, p.unmigratedIn
	pool.leaving += n
	ok := unmapSegment(token, p)
	pool.leaving -= n
	if !ok {
		lose(placement, n-unmigrated)
		lose(unmigratedIn, unmigrated)
		return true
	}
	tiers.Release(tierOf(placement), n-unmigrated)
	tiers.Release(tierOf(unmigratedIn), unmigrated)
	uncommit(n)
	pool.count.purges++
	pool.count.purgedBytes += uint64(n)
	return true
}
