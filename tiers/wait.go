package tiers

import (
	"sync/atomic"

	"tieralloc/internal/config"
	"tieralloc/internal/raw"
	"tieralloc/throttle"
)

// clock is the time of the buckets; see the package comment.
var clock struct {
	start   uint64 // monotonic nanoseconds at Setup
	waited  uint64 // nanoseconds of wait that were counted and not slept
	migrate throttle.Bucket
}

func setupClock(s *config.Settings) {
	clock.start = raw.Clock(raw.ClockMono)
	clock.waited = 0
	clock.migrate.Set(s.MigrateBW, defaultBurst(s.MigrateBW), 0)
}

// burstOf returns the burst of a tier in bytes, 0 without a limit.
func burstOf(t *config.Tier) uint64 {
	if t.Burst != 0 || t.BW == 0 {
		return t.Burst
	}
	return defaultBurst(t.BW)
}

// defaultBurst is 10 ms of a bandwidth, and enough for a few small requests.
func defaultBurst(bandwidth uint64) uint64 { return max(64<<10, bandwidth/100) }

// Throttled reports whether a tier has a limit or a latency.
func Throttled(tier uintptr) bool { return policy.throttled>>(tier&slotMask)&1 != 0 }

// AnyThrottled reports whether any tier has a limit or a latency.
func AnyThrottled() bool { return policy.throttled != 0 }

// Wait charges the tier's bucket with an allocation of n bytes, and returns how long the bucket
// wants the caller to wait, in nanoseconds. In sleep mode it sleeps as long. mono is the monotonic
// clock of a moment ago, in nanoseconds. Precondition: no lock is held.
func Wait(tier, n uintptr, mono uint64) (ns uint64) { return wait(tier, n, mono, true) }

// WaitMoved is Wait for n bytes that the library itself moves between tiers. It charges the read in
// one tier and the write in the other, without a latency.
func WaitMoved(from, to, n uintptr, mono uint64) {
	if n != 0 {
		wait(from, n, mono, false)
		wait(to, n, mono, false)
	}
}

// WaitCopy is WaitMoved for bytes whose reading is not charged.
func WaitCopy(tier, n uintptr, mono uint64) { wait(tier, n, mono, false) }

func wait(tier, n uintptr, mono uint64, whole bool) (ns uint64) {
	if !Throttled(tier) {
		return 0
	}
	t := at(tier)
	now := mono - clock.start + atomic.LoadUint64(&clock.waited)
	if whole {
		ns = t.bucket.Charge(now, n)
	} else {
		ns = t.bucket.Copy(now, n)
	}
	if ns == 0 {
		return 0
	}
	atomic.AddUint64(&t.waitNs, ns)
	if !policy.sleep {
		atomic.AddUint64(&clock.waited, ns)
		return ns
	}
	late := raw.SleepUntil(mono + ns)
	atomic.AddUint64(&t.sleeps, 1)
	atomic.AddUint64(&t.overshootNs, late)
	return ns
}

// Migrating reports whether spans move down from tiers over their soft cap.
func Migrating() bool { return atomic.LoadUint32(&policy.migrating) != 0 }

// MigrateBudget reports whether TA_MIGRATE_BW allows a step of migration to start at now, in
// monotonic nanoseconds.
func MigrateBudget(now uint64) bool { return clock.migrate.Copy(now-clock.start, 0) == 0 }

// MigrateCharge charges n bytes that were moved at now.
func MigrateCharge(now uint64, n uintptr) { clock.migrate.Copy(now-clock.start, n) }

// Moved counts one attempt to move a span out of a tier: the pages that were moved
// and those that the kernel would not move.
func Moved(from, movedPages, failedPages uintptr) {
	t := at(from)
	atomic.AddUint64(&t.attempted, 1)
	atomic.AddUint64(&t.movedPages, uint64(movedPages))
	atomic.AddUint64(&t.failedPages, uint64(failedPages))
}
