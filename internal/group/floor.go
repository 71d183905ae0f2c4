package group

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// A floor (TA_GROUP_MIN) is what a member can have whatever the others do. Others are granted
// nothing of it, from the time on that the member has joined, or first uses the device. What they
// had before they keep. So a member that is refused below its floor waits for them.
//
//	Σ floors <= hard

const (
	waitMost  = 1_000_000_000 // ns
	waitStep  = 1_000_000
	waitAgain = 10 * waitMost // after a wait in vain
)

// nextWait is when this process may wait again, monotonic.
var nextWait uint64

// setFloor sets the floor of a member that joins, unless the floors of all would then exceed the
// cap. Precondition: the caller has the lock for joining.
func (p *Page) setFloor(me, account uintptr) {
	floor, hard := self.want.Floor, p.Caps[account&accountMask].Hard
	if floor == 0 || hard == Uncapped {
		return
	}
	if floor <= hard && p.floors(me, account) > hard-floor {
		p.look() // for the dead, which need theirs no more
	}
	if floor <= hard && p.floors(me, account) <= hard-floor {
		atomic.StoreUint64(&p.share(me, account).floor, floor)
	}
}

// floors returns the sum of the other members' floors of an account.
func (p *Page) floors(me, account uintptr) (sum uint64) {
	for i := uintptr(0); i < p.high(); i++ {
		if floor := p.share(i, account).Floor(); i != me {
			sum += min(floor, Uncapped-sum)
		}
	}
	return sum
}

// Floor returns the floor of this process, or 0 if it has not that much of each capped account of
// the tiers. Precondition: Join succeeded.
func Floor() uint64 {
	if HasFloor() {
		return self.want.Floor
	}
	return 0
}

// HasFloor reports whether this process has its floor of each capped account of the tiers.
// Precondition: Join succeeded.
func HasFloor() bool {
	for account := range uintptr(FirstDevice) {
		if self.page.Caps[account].Hard != Uncapped &&
			self.page.share(self.slot, account).Floor() != self.want.Floor {
			return false
		}
	}
	return true
}

// wait waits until the member is granted so many bytes more, and reports whether it is. It waits a
// second at most, and after that in vain not again for a while.
func (p *Page) wait(me, account uintptr, size uint64) bool {
	begin := raw.Clock(raw.ClockMono)
	if filtered() || begin < atomic.LoadUint64(&nextWait) {
		return false
	}
	atomic.AddUint64(&p.Slots[me&memberMask].Waits, 1)
	atomic.AddUint64(&p.Totals[account&accountMask].Waits, 1)
	for at := begin + waitStep; at < begin+waitMost; at += waitStep {
		p.tellShort(account)
		raw.SleepUntil(at)
		if p.grant(me, account, size) {
			return true
		}
	}
	atomic.StoreUint64(&nextWait, begin+waitMost+waitAgain)
	return false
}
