package tiers

import (
	"tieralloc/internal/config"
	"tieralloc/throttle"
)

// Answers of Reserve other than the number of a tier.
const (
	Refused = 1 << 8 // nothing was charged; do not ask again
	Trim    = 1 << 9 // with the number of a tier: give back what is cached there, then ask again
	// with Trim: the request is refused unless that tier gets room. It and the faster tiers from
	// the home on are full, and no slower one may take the request.
	Last = 1 << 10
)

const (
	tierCount = uintptr(config.TierCount)
	slots     = 4 // tierCount padded to a power of two
	slotMask  = slots - 1
)

// tier is the counters and the throttle of one tier. Most processes have neither.
type tier struct {
	softExceeded, rerouted, routedSlow, refused, violations uint64 // requests
	waitNs, sleeps, overshootNs                             uint64
	attempted, movedPages, failedPages                      uint64

	bucket                    throttle.Bucket
	bandwidth, burst, latency uint64 // its settings

	_ [64]byte // keeps the next tier's counters in other cache lines
}

var tiers [slots]tier

// policy holds the settings for all tiers.
var policy struct {
	onSoftcap, onHardcap uint32
	throttled            uint32 // a bit for each tier with a bucket
	migrating            uint32 // 1: spans move down by age; atomic
	sleep                bool
	forked               bool
	begun                bool // Setup was called
}

// Setup takes the policy from s. It keeps the address of the rules, so s must be static. account[t]
// is the first of the tiers on the same memory as tier t (numa.Map.Accounts); the caps of these
// tiers are equal. program is the C string of the program's file name, or 0 if unknown. Setup is
// called once, before all other functions. A further call forgets everything.
func Setup(s *config.Settings, account *[4]uintptr, program uintptr) {
	if policy.begun {
		forgetFollowing()
	}
	policy.onSoftcap, policy.onHardcap = s.OnSoftcap, s.OnHardcap
	policy.sleep = s.ThrottleSleep
	policy.throttled, policy.migrating, policy.forked = 0, 0, false
	for i := range tiers {
		set := &s.Tiers[i]
		if policy.begun || set.BW|set.Burst|set.Lat != 0 { // else it is zero, its page untouched
			t := &tiers[i]
			*t = tier{bandwidth: set.BW, burst: burstOf(set), latency: set.Lat}
			t.bucket.Set(t.bandwidth, t.burst, t.latency)
			if t.bucket.On() {
				policy.throttled |= 1 << uint(i)
			}
		}
		if set.Soft != 0 && s.OnSoftcap == config.SoftcapDemote {
			policy.migrating = 1
		}
	}
	policy.begun = true
	setupAccounts(s, account)
	setupClock(s)
	setupRules(&s.Rules, program)
}

// Followable reports whether some tier has a cap and a slower one to move memory to.
func Followable() bool {
	for t := uintptr(0); t < tierCount; t++ {
		if a := memory(t); a.soft&a.hard != ^uint64(0) {
			if _, ok := Below(t); ok {
				return true
			}
		}
	}
	return false
}

// at is the state of tier t. Precondition: t is a tier.
func at(t uintptr) *tier { return &tiers[t&slotMask] }
