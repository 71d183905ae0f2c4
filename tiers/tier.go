package tiers

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/throttle"
)

// Answers of Reserve beside the number of a tier.
const (
	Refused = 1 << 8 // nothing was charged, and nothing will be
	Trim    = 1 << 9 // with the number of a tier: give back what is cached there, then ask again
)

const (
	tierCount = uintptr(config.TierCount)
	slots     = 4 // tierCount padded to a power of two
	slotMask  = slots - 1
)

// tier is the state of one tier.
//
//	current <= peak, current <= hard
type tier struct {
	soft, hard uint64 // bytes; ^0: no cap

	current, peak uint64 // bytes

	softExceeded, rerouted, routedSlow, refused, violations uint64 // requests
	waitNs, sleeps, overshootNs                             uint64
	attempted, movedPages, failedPages                      uint64

	bucket                    throttle.Bucket
	bandwidth, burst, latency uint64 // what it was set to

	_ [64]byte // another tier's counters are in other cache lines
}

var tiers [slots]tier

// policy is what is set for all tiers.
var policy struct {
	onSoftcap, onHardcap uint32
	throttled            uint32 // a bit for each tier with a bucket
	migrating, sleep     bool
	forked               bool
}

// Setup takes the policy from s, of which it keeps the rules' address: s is static.
// program is the C string of the program's file name, 0 if unknown. It is called once,
// before all others; called again, it forgets everything.
func Setup(s *config.Settings, program uintptr) {
	policy.onSoftcap, policy.onHardcap = s.OnSoftcap, s.OnHardcap
	policy.sleep = s.ThrottleSleep
	policy.throttled, policy.migrating, policy.forked = 0, false, false
	for i := range tiers {
		set := &s.Tiers[i]
		t := &tiers[i]
		*t = tier{soft: capOf(set.Soft), hard: capOf(set.Hard),
			bandwidth: set.BW, burst: burstOf(set), latency: set.Lat}
		t.bucket.Set(t.bandwidth, t.burst, t.latency)
		if t.bucket.On() {
			policy.throttled |= 1 << uint(i)
		}
		if set.Soft != 0 && s.OnSoftcap == config.SoftcapDemote {
			policy.migrating = true
		}
	}
	setupClock(s)
	setupRules(&s.Rules, program)
}

// capOf makes a cap that is not set one that nothing passes.
func capOf(set uint64) uint64 {
	if set == 0 {
		return ^uint64(0)
	}
	return set
}

// at is the state of tier t. Precondition: t is a tier.
func at(t uintptr) *tier { return &tiers[t&slotMask] }

// fits reports whether n bytes more would not pass limit.
func fits(current, n, limit uint64) bool { return n <= limit && current <= limit-n }

// charge adds n bytes unless that would pass limit, and returns the sum.
func (t *tier) charge(n, limit uint64) (after uint64, ok bool) {
	for {
		old := atomic.LoadUint64(&t.current)
		if !fits(old, n, limit) {
			return old, false
		}
		if atomic.CompareAndSwapUint64(&t.current, old, old+n) {
			t.raise(old + n)
			return old + n, true
		}
	}
}

// raise makes the peak at least v.
func (t *tier) raise(v uint64) {
	for {
		old := atomic.LoadUint64(&t.peak)
		if old >= v || atomic.CompareAndSwapUint64(&t.peak, old, v) {
			return
		}
	}
}

// Admit charges n bytes to exactly this tier. It reports false, and charges nothing,
// when that would pass the hard cap.
func Admit(tier, n uintptr) bool {
	t := at(tier)
	_, ok := t.charge(uint64(n), t.hard)
	if !ok {
		atomic.AddUint64(&t.violations, 1)
	}
	return ok
}

// Release takes back a charge of n bytes. Precondition: the tier was charged with them
// and the kernel has them back, or another tier has been charged.
func Release(tier, n uintptr) {
	t := at(tier)
	after := atomic.AddUint64(&t.current, -uint64(n))
	if after+uint64(n) >= after {
		return
	}
	raw.Check(policy.forked, "a tier is released more than it was charged with")
	atomic.AddUint64(&t.current, uint64(n))
}

// Recharge sets what a tier of a forked child is charged with. From then on a release of
// more than that does nothing: it is of what the parent's other threads were about to
// charge. Precondition: the process has one thread.
func Recharge(tier, n uintptr) {
	policy.forked = true
	at(tier).current = uint64(n)
}

// Excess is how many bytes the tier is over its soft cap now.
func Excess(tier uintptr) uint64 {
	t := at(tier)
	if c := atomic.LoadUint64(&t.current); c > t.soft {
		return c - t.soft
	}
	return 0
}

// Room reports whether n bytes more would leave the tier at or below 7/8 of its soft
// cap, and its hard cap: what is moved up then does not go down again at once.
func Room(tier, n uintptr) bool {
	t := at(tier)
	limit := t.hard
	if t.soft != ^uint64(0) {
		limit = min(limit, t.soft-t.soft/8)
	}
	return fits(atomic.LoadUint64(&t.current), uint64(n), limit)
}

// Full reports whether n bytes more would pass the tier's hard cap.
func Full(tier, n uintptr) bool {
	t := at(tier)
	return !fits(atomic.LoadUint64(&t.current), uint64(n), t.hard)
}
