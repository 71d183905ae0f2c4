package group

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

const (
	// Members is how many processes a group can have at a time.
	Members    = 1024
	memberMask = Members - 1

	// Accounts is the number of accounts. The first are tiers, the others from FirstDevice on are
	// devices.
	Accounts    = 16
	accountMask = Accounts - 1
	FirstDevice = 4

	// Magic begins a page, and Version tells its layout.
	Magic   = 0x70756f7267_6174 // "tagroup"
	Version = 1

	// Uncapped is the cap of an account without one.
	Uncapped = ^uint64(0)
)

// Page is the file of a group.
type Page struct {
	_       raw.OffHeap
	Magic   uint64
	Version uint64
	Size    uint64 // bytes
	High    uint64 // slots that were ever used are below it
	// monotonic ns of the next look for the dead; later while one is under way
	reapNext uint64
	Caps     [Accounts]Cap    // set by the first member, or the first on a device
	Devices  [Accounts]Device // which device an account is; zero: none
	CUDA     DeviceCaps       // set by the first member
	ops      [Accounts]uint64 // the last operation on each account
	Short    [Accounts]uint64 // monotonic ns of the last refusal
	Totals   [Accounts]Totals // of all members, also those that have ended; they never fall
	_        [4096 - 40 - 24 - Accounts*(16+16+8+8+24)]byte
	Slots    [Members]Member
}

// Totals count what members met at an account.
type Totals struct {
	Refused uint64 // requests that the group's caps refused
	Waits   uint64 // requests below a floor that waited for others
	Taken   uint64 // bytes that were taken from other members' grants
}

// Cap is the caps of an account, in bytes.
type Cap struct{ Soft, Hard uint64 }

// DeviceCaps are the settings that each device's caps follow from, as in package config: 0 is none.
type DeviceCaps struct{ Soft, Hard, Part uint64 }

// Device identifies a device in all processes, by its UUID.
type Device struct{ Low, High uint64 }

// Member is the slot of a process.
type Member struct {
	_       raw.OffHeap
	Pid     uint64   // in its own namespace; 0: the slot is free
	Program [32]byte // its file name, cut short
	Taken   uint64   // bytes it took from other members' grants
	Refused uint64   // requests that the group's caps refused
	Waits   uint64   // requests below its floor that waited for others
	Shares  [Accounts]Share
}

// Share is what a member has of an account.
type Share struct {
	_       raw.OffHeap
	granted uint64 // pages, above tagBits bits that tell the last operation that was done on it
	used    uint64 // bytes
	floor   uint64 // bytes that nobody else gets, whether granted or not (TA_GROUP_MIN)
}

const (
	pageShift = raw.PageShift
	tagBits   = 20
	tagMask   = 1<<tagBits - 1
)

// Granted returns what the member may reserve without asking, in bytes.
func (s *Share) Granted() uint64 { return atomic.LoadUint64(&s.granted) >> tagBits << pageShift }

// Used returns what the member has reserved, in bytes.
func (s *Share) Used() uint64 { return atomic.LoadUint64(&s.used) }

// Floor returns what nobody else gets, in bytes.
func (s *Share) Floor() uint64 { return atomic.LoadUint64(&s.floor) }

// whole is the share in pages, for the sum that may not exceed the cap. It reads granted before
// used: a member's reservation that a lower granted did not stop is then in used.
func (s *Share) whole() uint64 {
	granted := atomic.LoadUint64(&s.granted) >> tagBits
	return max(granted, pagesUp(max(s.Used(), s.Floor())))
}

// pagesUp returns n bytes in pages, rounded up.
func pagesUp(n uint64) uint64 { return (n + raw.Page - 1) >> pageShift }

// share returns a member's share of an account.
func (p *Page) share(member, account uintptr) *Share {
	return &p.Slots[member&memberMask].Shares[account&accountMask]
}

// high returns the number of slots to look at.
func (p *Page) high() uintptr { return uintptr(min(atomic.LoadUint64(&p.High), Members)) }

// An operation grants pages to a member. It is one word: its number, the member, and the pages.
type operation uint64

const (
	numberShift = 64 - tagBits
	memberShift = 32
	deltaMask   = 1<<memberShift - 1
)

func newOperation(before operation, member uintptr, pages uint64) operation {
	number := before.number() + 1
	return operation(number<<numberShift | uint64(member&memberMask)<<memberShift | pages&deltaMask)
}

func (o operation) number() uint64  { return uint64(o) >> numberShift }
func (o operation) member() uintptr { return uintptr(o>>memberShift) & memberMask }
func (o operation) pages() uint64   { return uint64(o) & deltaMask }

// complete does the last operation of an account unless it was done, and returns it.
func (p *Page) complete(account uintptr) operation {
	word := &p.ops[account&accountMask]
	for {
		o := operation(atomic.LoadUint64(word))
		s := p.share(o.member(), account)
		granted := atomic.LoadUint64(&s.granted)
		if granted&tagMask == o.number()&tagMask {
			return o
		}
		done := (granted>>tagBits+o.pages())<<tagBits | o.number()&tagMask
		if atomic.LoadUint64(word) == uint64(o) &&
			atomic.CompareAndSwapUint64(&s.granted, granted, done) {
			return o
		}
	}
}
