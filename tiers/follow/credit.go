package follow

import "time"

// Credit bounds how many bytes go out by a rate, whenever they do: what is not used is kept, up to
// that of a second. The zero value has that of a second.
type Credit struct {
	spent float64 // bytes beyond what the rate has allowed since
	at    time.Duration
}

// Budget is how many bytes may go out at the time now. A rate of 0 is no bound.
func (c *Credit) Budget(rate uint64, now time.Duration) uint64 {
	if rate == 0 {
		return ^uint64(0)
	}
	c.spent = max(0, c.spent-float64(rate)*(now-c.at).Seconds())
	c.at = now
	return uint64(max(0, float64(rate)-c.spent))
}

// Spend notes that bytes went out.
func (c *Credit) Spend(bytes uint64) { c.spent += float64(bytes) }
