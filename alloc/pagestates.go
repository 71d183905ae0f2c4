package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// A span has one role at a time. The fields of Page whose meaning depends on the role have views
// here, by role. Only this file uses such a field with another meaning than that of its comment;
// TestFieldAccess says which other files use it at all.
//
//	field     page of blocks          other roles
//	Gap       stride                  huge block: blockOffset
//	Class     class                   huge block with guard pages: family
//	Carved    bytes put to use        huge block with guard pages: request; zero page: takenEnd
//	Free      list of free blocks     huge block: reservation; zero page: searchFrom
//	Trigger   armEmpty, markRetired   huge block: reservation; nursery: nurseryRest
//	Allocs    count of blocks         huge block: parts
//	stamp     noteUse, lastRest, …    free span, cached huge block: freeSince; nursery: table
//	next      of its list             huge block, part of one: nextExtent
//	prev      of its list             huge block: hugeList
//	pendNext  nextPending             huge block: hugeList, nextLive
//	ageNext   of its list by age      page of emergencySpan: nextAlone
//	done      of its first part       part of a huge block: tail

// A free span, a cached huge block and a retired page: stamp is the time since when nothing of it
// is in use.

// freeSince is when the span became free, in nanoseconds; of a retired page, when it became empty.
func (p *Page) freeSince() uint64 { return p.stamp }

func (p *Page) setFreeSince(now uint64) { p.stamp = now }

// A page of blocks: Gap is the bytes between blocks. pendNext links the owner's list of pages with
// news, and ageNext the pages that emergencySpan made.

// setGap sets the bytes between blocks; see sizeclass.Spread.
func (p *Page) setGap(n uintptr) { p.Gap = uint16(n) }

// stride is the distance from one block to the next.
func (p *Page) stride() uintptr { return p.Size + uintptr(p.Gap) }

// isSpread reports whether there are bytes between blocks.
func (p *Page) isSpread() bool { return p.Gap != 0 }

// nextPending is the next of the owner's pages with news.
func (p *Page) nextPending() *Page { return p.pendNext }

func (p *Page) setNextPending(q *Page) { p.pendNext = q }

// nextAlone is the next page that emergencySpan made. None of them is on a list by age.
func (p *Page) nextAlone() *Page { return p.ageNext }

func (p *Page) setNextAlone(q *Page) { p.ageNext = q }

// A page of blocks in use: stamp is the note that was made last. Another kind of note, or a time,
// reads as if the page had changed: no count of frees is a time or has the bits of a restMark.

// clearNote is for a page of which nothing is noted yet.
func (p *Page) clearNote() { p.stamp = 0 }

// noteRotation notes that the turn of a current page ends now; see freedSinceRotation.
func (p *Page) noteRotation() { p.stamp = p.Frees }

// freedSinceRotation reports whether the owner took back blocks since noteRotation.
func (p *Page) freedSinceRotation() bool { return p.stamp != p.Frees }

// noteUse notes how many blocks were ever allocated from a current page; see unused.
func (p *Page) noteUse() { p.stamp = p.Allocs }

// unused reports whether nothing was allocated from the page since noteUse.
func (p *Page) unused() bool { return p.stamp == p.Allocs }

// A restMark says how a page was when it was last looked at. While the page rests it stays equal to
// the page's counts; see subrelease.go.
type restMark uint64

const (
	restSeen restMark = 1 << 62 // with the sum of the counts: the page was seen so,
	restDone restMark = 1 << 63 // and has given back what it could since
)

// counts is the mark of a page as it is now.
func (p *Page) counts() restMark { return restMark(p.Allocs+p.Frees) | restSeen }

// lastRest is the mark of a page on a list. That of a nursery is nurseryRest.
func (p *Page) lastRest() restMark { return restMark(p.stamp) }

func (p *Page) setLastRest(m restMark) { p.stamp = uint64(m) }

// A page of blocks on a list: Trigger is the count of frees at which PageEmpty is called, or never;
// or retiredMark. The fast path compares Trigger with Frees after each free.

const (
	neverEmpty = ^uint64(0)
	// retiredMark marks an empty page that stays on its list (retire.go). No count of frees gets
	// there.
	retiredMark = ^uint64(1)
)

// disarm has no free of the page call PageEmpty.
func (p *Page) disarm() { p.Trigger = neverEmpty }

// armEmpty has the free that leaves a page, which is not current, empty call PageEmpty.
func (p *Page) armEmpty() { p.Trigger = p.Allocs }

// armAfter has the nth free from now on call PageEmpty.
func (p *Page) armAfter(n uint64) { p.Trigger = p.Frees + n }

// armedWithin reports whether one of the next n frees calls PageEmpty.
func (p *Page) armedWithin(n uint64) bool { return p.Trigger-p.Frees-1 < n }

// arm has the free that may leave a current page of several slices empty call PageEmpty.
func (p *Page) arm() {
	if p.slices != 1 {
		p.Trigger = max(p.Allocs, p.Frees+1)
	}
}

// fired reports whether the last free of the page was the one that calls PageEmpty.
func (p *Page) fired() bool { return p.Frees == p.Trigger }

// isRetired reports whether the page is an empty one that stays on its list.
func (p *Page) isRetired() bool { return p.Trigger == retiredMark }

func (p *Page) markRetired() { p.Trigger = retiredMark }

// A nursery: stamp is the table of granules, and Trigger the restMark, because the fast path finds
// no block in a nursery. Its blocks are the granules, for Allocs and Frees, too.

// table is the table of granules of a nursery.
func (p *Page) table() *granuleTable { return (*granuleTable)(raw.Ptr(uintptr(p.stamp))) }

func (p *Page) setTable(t *granuleTable) {
	atomic.StoreUint64(&p.stamp, uint64(uintptr(unsafe.Pointer(t))))
}

// nurseryRest is the mark of a nursery.
func (p *Page) nurseryRest() restMark { return restMark(p.Trigger) }

func (p *Page) setNurseryRest(m restMark) { p.Trigger = uint64(m) }

// A huge block: Gap is the bytes before it in its mapping, Trigger how many bytes are reserved from
// Free on, and Allocs the address of its part map. pendNext and prev link the live mappings. With
// guard pages, Class is the family of functions that allocated it, and Carved the bytes asked for.

// blockOffset is where the block begins in its mapping, or 0 where it is in a span.
func (p *Page) blockOffset() uintptr { return uintptr(p.Gap) }

func (p *Page) setBlockOffset(n uintptr) { p.Gap = uint16(n) }

// block is the address of the first block.
func (p *Page) block() uintptr {
	if p.Owner == OwnerHuge {
		return p.Start + uintptr(p.Gap)
	}
	return p.Start
}

// reservation is the addresses that are reserved for a huge block: more than its own where it has
// guard pages.
func (p *Page) reservation() (base, bytes uintptr) { return p.Free, uintptr(p.Trigger) }

func (p *Page) setReservation(base, bytes uintptr) { p.Free, p.Trigger = base, uint64(bytes) }

// family is the family of functions that allocated a block with guard pages; see HowFamily.
func (p *Page) family() uint32 { return p.Class }

func (p *Page) setFamily(family uint32) { p.Class = family }

// request is how many bytes were asked for, of a block with guard pages.
func (p *Page) request() uintptr { return uintptr(p.Carved) }

func (p *Page) setRequest(n uintptr) { p.Carved = uint64(n) }

// parts is the part map of a huge block, or nil.
func (p *Page) parts() *partMap {
	if !p.isMapping() {
		return nil
	}
	return (*partMap)(raw.Ptr(uintptr(p.Allocs)))
}

func (p *Page) setParts(m *partMap) { p.Allocs = uint64(uintptr(unsafe.Pointer(m))) }

// partsAddress is the address that parts has, where the descriptor may be of another process.
func (p *Page) partsAddress() uintptr { return uintptr(p.Allocs) }

// hugeList has the live huge blocks that are mappings, linked by prev and pendNext. The lists by
// age have them, too, among all other spans in use.
type hugeList struct{ head *Page }

// add puts p on the list. Precondition: poolLock is held.
func (l *hugeList) add(p *Page) {
	p.prev, p.pendNext = nil, l.head
	if l.head != nil {
		l.head.prev = p
	}
	l.head = p
}

// remove takes p off, or leaves it alone as ageList.remove does.
func (l *hugeList) remove(p *Page) {
	switch {
	case p.prev == nil:
		if l.head == p {
			l.head = p.pendNext
		}
	case p.prev.pendNext == p:
		p.prev.pendNext = p.pendNext
	}
	if p.pendNext != nil && p.pendNext.prev == p {
		p.pendNext.prev = p.prev
	}
}

// nextLive is the next block of hugeList.
func (p *Page) nextLive() *Page { return p.pendNext }

// A part of a huge block that is several mappings (coalesce.go), its first included: next is the
// next part. While cached blocks are coalesced, done is the slices behind a part that are to go.

// nextExtent is the next part of the block, or nil.
func (p *Page) nextExtent() *Page { return p.next }

func (p *Page) setNextExtent(q *Page) { p.next = q }

// extentEnd is where the part of q ends, in a block that ends at end.
func extentEnd(q *Page, end uintptr) uintptr {
	if q.next != nil {
		return q.next.Start
	}
	return end
}

// extents is how many mappings the block of p is.
func (p *Page) extents() (n uintptr) {
	for ; p != nil && n < hugeExtents; p = p.next {
		n++
	}
	return n
}

// lastExtent is the part of p that ends where the block does.
func (p *Page) lastExtent() *Page {
	for p.next != nil {
		p = p.next
	}
	return p
}

// extentsFrom takes the parts of p that begin at end or behind it off the block, and returns them.
func (p *Page) extentsFrom(end uintptr) (rest *Page) {
	for p.next != nil && p.next.Start < end {
		p = p.next
	}
	rest, p.next = p.next, nil
	return rest
}

// dropExtents forgets parts, of which no block begins with the first, that are no block's any more.
// Precondition: poolLock is held.
func dropExtents(q *Page) {
	for q != nil {
		next := q.next
		freeDescriptor(q)
		pool.extents--
		q = next
	}
}

// tail is the bytes behind a part that are to go once it has moved; see hugeCache.coalesce.
func (p *Page) tail() uintptr { return uintptr(p.done) << SliceShift }

func (p *Page) setTail(slices uint32) { p.done = slices }

// A zero page (zero.go): Free is a position, and Carved counts blocks instead of bytes.

// searchFrom is the number of the block at which the next search begins.
func (p *Page) searchFrom() uintptr { return p.Free }

func (p *Page) setSearchFrom(i uintptr) { p.Free = i }

// takenEnd is the number of the block behind the last that was ever taken.
func (p *Page) takenEnd() uint64 { return p.Carved }

// noteTaken notes that block i was taken.
func (p *Page) noteTaken(i uintptr) { p.Carved = max(p.Carved, uint64(i)+1) }
