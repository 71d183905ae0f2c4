package alloc

// Page.Trigger means one thing in each state of a span, and but for the fast path in C only this
// file reads and writes it:
//
//	page on a list   the count of frees at which PageEmpty is called, or never; or retiredMark
//	nursery          its restMark: the fast path finds no block in a nursery
//	huge block       how many bytes are reserved for it; they begin at Page.Free
//
// The fast path compares Trigger with Frees after each free.

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

// nurseryRest is the mark of a nursery: its stamp is taken.
func (p *Page) nurseryRest() restMark { return restMark(p.Trigger) }

func (p *Page) setNurseryRest(m restMark) { p.Trigger = uint64(m) }

// reservation is the addresses that are reserved for a huge block: more than its own where it has
// guard pages.
func (p *Page) reservation() (base, bytes uintptr) { return p.Free, uintptr(p.Trigger) }

func (p *Page) setReservation(base, bytes uintptr) { p.Free, p.Trigger = base, uint64(bytes) }
