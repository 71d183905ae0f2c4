package group

import (
	"sync/atomic"

	"tieralloc/internal/raw"
)

// A member that is refused writes the time into the page. The others then return what they keep for
// reuse, at their next slow step.

// shortFor is how long a refusal counts, in ns.
const shortFor = 1_000_000_000

// answered has for each account the refusal that this process has answered, or met itself.
var answered [Accounts]uint64

// tellShort notes that this process was refused.
func (p *Page) tellShort(account uintptr) {
	now := raw.Clock(raw.ClockMono)
	atomic.StoreUint64(&answered[account&accountMask], now)
	atomic.StoreUint64(&p.Short[account&accountMask], now)
}

// Short reports whether another member was refused memory of the account in the last second. now is
// monotonic, in nanoseconds.
func Short(account uintptr, now uint64) bool {
	p := self.page
	if p == nil {
		return false
	}
	last := atomic.LoadUint64(&p.Short[account&accountMask])
	return now < last+shortFor && last != atomic.LoadUint64(&answered[account&accountMask])
}

// Wanted is Short for all tiers. It reports each refusal once.
func Wanted(now uint64) (wanted bool) {
	for account := uintptr(0); account < FirstDevice; account++ {
		if Short(account, now) {
			wanted = true
			last := atomic.LoadUint64(&self.page.Short[account&accountMask])
			atomic.StoreUint64(&answered[account&accountMask], last)
		}
	}
	return wanted
}
