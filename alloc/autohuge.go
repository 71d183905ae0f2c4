package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
)

// Huge pages by measure, where neither TA_HUGEPAGES, a hard cap nor nodes of its own say otherwise
// (placement.auto). The kernel is asked for transparent huge pages
//
//   - for a new segment, once the heap has autoHeap for each of its threads, unless much of the
//     blocks that it has is untouched (sparse). While there are new blocks larger than a memory
//     page, one in segmentControl has ordinary pages, so that they can be looked at. Spans are cut
//     from the segment's start on, so resident memory outside of spans is less than one huge page,
//     a sixteenth of autoHeap. Each thread has pages that it has not used up, and all of them
//     become resident: with little memory for each thread that made heaps larger by a fifth, and
//     none faster. A huge page of which a part goes back to the kernel is split: ordinary pages
//     take its place from then on, else the kernel (khugepaged) would fill up the returned memory.
//     Each may make two mappings more: in a heap of more than splitHeap, all of its segment is;
//   - for a huge block, once the heap has autoHeap, if the last autoStreak blocks that were looked
//     at were in use up to their end, and it is at most autoFactor times as large as the last of
//     them. One in autoControl has ordinary pages, so that there are blocks to look at. Blocks of
//     calloc have ordinary pages: they may be large tables of which little is used.
//
// A process that has half of its control group's limit, or a limit of its address space, has
// ordinary pages, and so has one for which huge ones are dear (hugecost.go). Where the system gives
// huge pages unasked (always), other segments are kept from them: a small program would use KiB of
// the MiB that are resident, and returned memory would come back with the next page fault beside
// it.
const (
	autoHeap    = limitFirst
	autoStreak  = 2
	autoControl = 8
	autoFactor  = 4

	segmentControl = 4
	sparseSegments = 2  // segments that sparse looks at
	sparseSlices   = 64 // and slices of each

	splitMost = 64       // huge pages of a segment that can be split one by one
	splitHeap = 16 << 30 // a quarter of the mappings that Linux allows, if all are split

	autoSample = 64 // memory pages of a huge block that are looked at
)

// The kinds of pages that a segment or a huge block may have.
const (
	systemPages  = iota // as the placement and the system's setting are
	sampledPages        // the same, of a huge block that sampleHuge has looked at when it was freed
	reservedPool        // of the kernel's pool of huge pages
	transparent         // huge ones by measure
	mixed               // of a segment: ordinary ones by now, and what is left of huge ones
)

func (s *segment) reserved() bool { return s.pages == reservedPool }
func (p *Page) reserved() bool    { return p.pages == reservedPool }

// autoHuge is what the huge blocks were like. Atomic.
var autoHuge struct {
	streak uint32  // blocks in use up to their end, one after the other, at most autoStreak
	dense  uintptr // bytes of the last of them
	turn   uint32  // huge blocks mapped while there was a streak
}

// roomy reports, by a peek without the lock, whether the heap has least bytes, and no more than
// half of a limit.
func roomy(least uintptr) bool {
	n := uintptr(pool.count.committed)
	return n >= least && addressLimit == 0 && !pressed() &&
		(limit.share == 0 || n < (limit.share-1)*limitShare/2)
}

// wantsTransparent reports whether a segment of n bytes is to have huge pages, unless the heap is
// sparse.
func wantsTransparent(placement, n uintptr) bool {
	return n >= 2*huge2M && placements[placement&(placementSlots-1)].auto &&
		roomy(autoHeap*max(pool.threadCount, 1))
}

// segmentTurn reports whether it is the turn of a segment with huge pages, if the heap is to have
// one. Precondition: poolLock is held.
func segmentTurn() bool {
	if !newLarge() {
		return true
	}
	pool.hugeTurn++
	return pool.hugeTurn%segmentControl != 1
}

// newLarge reports whether more than an eighth of the newest segment's memory in use is of blocks
// larger than a memory page. Precondition: poolLock is held.
func newLarge() bool {
	s, used, large := pool.segments, uintptr(0), uintptr(0)
	if s == nil {
		return false
	}
	step := s.slices/sparseSlices | 1
	for i := uintptr(0); i < s.slices; i += step {
		p := Lookup(s.start + i<<SliceShift)
		if p == nil || p.segment != s || p.state != spanInUse {
			continue
		}
		used++
		if p.Size > raw.Page {
			large++
		}
	}
	return large > used/8
}

// sparse reports whether more than a fifth of the memory of blocks is untouched, in slices of the
// newest segments that have ordinary pages. A program may use little of large blocks, such as
// buffers; huge pages would make all of them resident. Blocks of up to a memory page count as
// touched. Precondition: poolLock is held.
func sparse() bool {
	if filtered() {
		return false
	}
	looked, touched, segments := uintptr(0), uintptr(0), 0
	for s := pool.segments; s != nil && segments < sparseSegments; s = s.next {
		if s.pages != systemPages && s.pages != mixed {
			continue
		}
		segments++
		step := s.slices/sparseSlices | 1 // odd: not always the same slice of larger blocks
		for i := uintptr(0); i < s.slices; i += step {
			n, k := touchedAt(s, s.start+i<<SliceShift)
			looked += n
			touched += k
		}
	}
	return looked-touched > looked/5
}

// touchedAt tells how many memory pages of the slice at addr belong to blocks that were ever given
// out, and how many of those are resident. It returns 0 for a slice that is not in use.
func touchedAt(s *segment, addr uintptr) (looked, touched uintptr) {
	const n = SliceSize / raw.Page
	p := Lookup(addr)
	if p == nil || p.segment != s || p.state != spanInUse || p.subreleased != 0 {
		return 0, 0
	}
	end := p.Start + uintptr(atomic.LoadUint32(&p.carved))
	if addr >= end {
		return 0, 0
	}
	looked = min((end-addr)/raw.Page, n)
	if p.Size <= raw.Page || looked == 0 {
		return looked, looked
	}
	var resident [n]byte
	if raw.Resident(addr, looked, &resident[0]) != 0 {
		return 0, 0
	}
	for i := range looked {
		touched += uintptr(resident[i&(n-1)] & 1)
	}
	return looked, touched
}

// advise asks for huge pages for n bytes at addr, and reports whether the kernel has any.
func advise(addr, n uintptr) bool {
	_, errno := raw.Sys(sysMadvise, addr, n, madvHugePage, 0, 0, 0)
	if errno == 0 {
		atomic.AddUint64(&pool.count.advised, uint64(n))
	}
	return errno == 0
}

// Whether the system gives huge pages unasked. Guarded by poolLock.
const (
	unasked  = iota // is not known yet
	byAdvice        // or never
	always
)

var systemHuge uint32

const systemHugeName = "/sys/kernel/mm/transparent_hugepage/enabled\x00"

// keepOrdinary keeps the kernel from giving the segment huge pages unasked, once one fits into it.
// Where the process has hardly a mapping left, the kernel may refuse. Precondition: poolLock is
// held.
func (s *segment) keepOrdinary(placement uint32) {
	if s.slices >= huge2M>>SliceShift && systemHuge != byAdvice &&
		placements[placement&(placementSlots-1)].spans == config.HugeAuto && hugeUnasked() &&
		!s.forbidHuge() {
		s.pages = mixed
	}
}

// forbidHuge asks for ordinary pages for the segment, and reports whether the kernel gives no
// others from now on.
func (s *segment) forbidHuge() bool {
	_, errno := raw.Sys(sysMadvise, s.start, s.slices<<SliceShift, madvNoHugePage, 0, 0, 0)
	return errno == 0
}

// hugeUnasked reports whether the system gives huge pages unasked. The file is read once, unless a
// filter of system calls may forbid that. Precondition: poolLock is held.
//
//go:noinline
func hugeUnasked() bool {
	if systemHuge == unasked && !filtered() {
		var first byte
		systemHuge = byAdvice // also where the file cannot be read
		raw.ReadFile(raw.Bytes(systemHugeName), uintptr(unsafe.Pointer(&first)), 1)
		if first == '[' { // "[always] madvise never"
			systemHuge = always
		}
	}
	return systemHuge == always
}

// dropLeft returns the memory that huge pages left resident in a segment without spans in use.
// Precondition: poolLock is held.
func (s *segment) dropLeft() {
	if s.pages == transparent || s.pages == mixed {
		raw.Discard(s.start, s.slices<<SliceShift)
	}
}

// discard returns n bytes at addr, a part of p, to the kernel.
func (p *Page) discard(addr, n uintptr) bool {
	if s := p.segment; s.pages == transparent {
		if addr&(huge2M-1) != 0 {
			s.splitHuge(addr)
		}
		if end := addr + n; end&(huge2M-1) != 0 {
			s.splitHuge(end)
		}
	}
	return raw.Discard(addr, n)
}

// splitHuge has ordinary pages in place of the huge page at addr from now on.
func (s *segment) splitHuge(addr uintptr) {
	addr &^= huge2M - 1
	i := addr/huge2M - s.start/huge2M
	if i >= splitMost || pool.segSlices > splitHeap>>SliceShift { // read without the lock
		atomic.StoreUint32(&s.pages, mixed)
		s.forbidHuge()
		return
	}
	for {
		was := atomic.LoadUint64(&s.split)
		if was>>i&1 != 0 {
			return
		}
		if atomic.CompareAndSwapUint64(&s.split, was, was|1<<i) {
			break
		}
	}
	from := max(addr, s.start)
	end := min(addr+huge2M, s.start+s.slices<<SliceShift)
	raw.Sys(sysMadvise, from, end-from, madvNoHugePage, 0, 0, 0)
}

// hugeAt reports whether the memory at addr has huge pages by measure.
func (s *segment) hugeAt(addr uintptr) bool {
	i := addr/huge2M - s.start/huge2M
	return s.pages == transparent && (i >= splitMost || atomic.LoadUint64(&s.split)>>i&1 == 0)
}

// adviseHuge asks for huge pages for a huge block that is new or has grown, if the blocks before it
// were dense and not much smaller.
func (p *Page) adviseHuge() {
	if p.pages == systemPages && p.done == 0 && placements[p.placement&(placementSlots-1)].auto &&
		roomy(autoHeap) && atomic.LoadUint32(&autoHuge.streak) >= autoStreak &&
		p.Size <= autoFactor*atomic.LoadUintptr(&autoHuge.dense) &&
		atomic.AddUint32(&autoHuge.turn, 1)%autoControl != 0 && !hugeDear() &&
		advise(p.Start, p.Size) {
		p.pages = transparent
	}
}

// sampleHuge looks whether the huge block of p, whose owner calls this, is in use up to its end: at
// the last pages of seven eighths. For a page of anonymous memory the kernel says whether it is
// resident. It reports whether it looked: not again at a block from the cache, whose free would
// take twenty times as long.
func (p *Page) sampleHuge() bool {
	const n = autoSample * raw.Page
	if p.pages != systemPages || p.Size < huge2M ||
		!placements[p.placement&(placementSlots-1)].auto || !roomy(autoHeap) || filtered() {
		return false
	}
	var resident [autoSample]byte
	at := p.Start + p.Size/8*7&^(raw.Page-1) - n
	if raw.Resident(at, autoSample, &resident[0]) != 0 {
		return false
	}
	for _, r := range resident {
		if r&1 == 0 {
			atomic.StoreUint32(&autoHuge.streak, 0)
			return true
		}
	}
	atomic.StoreUintptr(&autoHuge.dense, p.Size)
	if k := atomic.LoadUint32(&autoHuge.streak); k < autoStreak {
		atomic.StoreUint32(&autoHuge.streak, k+1)
	}
	return true
}
