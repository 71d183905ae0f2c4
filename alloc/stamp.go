package alloc

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// Page.stamp means one thing in each state of a span, and only this file reads and writes it:
//
//	free span, cached huge block, retired page   the time since when nothing of it is in use
//	nursery                                      its table of granules
//	page of blocks in use                        a note of one of the three kinds below
//
// A page in use keeps the note that was made last. Another kind of note, or a time, reads as if the
// page had changed: no count of frees is a time or has the bits of a restMark.

// freeSince is when the span became free, in nanoseconds; of a retired page, when it became empty.
func (p *Page) freeSince() uint64 { return p.stamp }

func (p *Page) setFreeSince(now uint64) { p.stamp = now }

// table is the table of granules of a nursery.
func (p *Page) table() *granuleTable { return (*granuleTable)(raw.Ptr(uintptr(p.stamp))) }

func (p *Page) setTable(t *granuleTable) {
	atomic.StoreUint64(&p.stamp, uint64(uintptr(unsafe.Pointer(t))))
}

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
