package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// Views of the fields of Page whose meaning depends on the role of the span. No other file reads or
// writes these fields (TestFieldAccess).
//
//	field     page of blocks                   other roles
//	stamp     a note of one of three kinds     table; free or retired: freeSince
//	Trigger   the count of frees that calls    nurseryRest; of a huge block: reservation
//	          PageEmpty, or retiredMark

// Free spans, cached huge blocks and retired pages: stamp is the time since when nothing of it is
// in use.

// freeSince is when the span became free, in nanoseconds; of a retired page, when it became empty.
func (p *Page) freeSince() uint64 { return p.stamp }

func (p *Page) setFreeSince(now uint64) { p.stamp = now }

// Pages of blocks in use: stamp is the note that was made last. Another kind of note, or a time,
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

// Pages of blocks on a list: Trigger is the count of frees at which PageEmpty is called, or never;
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

// Nurseries: stamp is the table of granules, and Trigger the restMark, because the fast path finds
// no block in a nursery.

// table is the table of granules of a nursery.
func (p *Page) table() *granuleTable { return (*granuleTable)(raw.Ptr(uintptr(p.stamp))) }

func (p *Page) setTable(t *granuleTable) {
	atomic.StoreUint64(&p.stamp, uint64(uintptr(unsafe.Pointer(t))))
}

// nurseryRest is the mark of a nursery.
func (p *Page) nurseryRest() restMark { return restMark(p.Trigger) }

func (p *Page) setNurseryRest(m restMark) { p.Trigger = uint64(m) }

// Huge blocks: Trigger is how many bytes are reserved; they begin at Free.

// reservation is the addresses that are reserved for a huge block: more than its own where it has
// guard pages.
func (p *Page) reservation() (base, bytes uintptr) { return p.Free, uintptr(p.Trigger) }

func (p *Page) setReservation(base, bytes uintptr) { p.Free, p.Trigger = base, uint64(bytes) }
