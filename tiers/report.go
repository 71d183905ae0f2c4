package tiers

import (
	"sync/atomic"

	"tieralloc/stats"
)

// Fill puts the tiers' figures into r.
func Fill(r *stats.Report) {
	fillFollowing(r)
	for i := uintptr(0); i < tierCount; i++ {
		t := at(i)
		to := &r.Tiers[i&slotMask]
		to.BytesCurrent = held(i)
		to.BytesPeak = atomic.LoadUint64(&of(i).peak)
		to.CapacitySoft = shownCap(memory(i).soft)
		to.CapacityHard = shownCap(memory(i).hard)
		to.KernelMovedIn = atomic.LoadUint64(&memory(i).in)
		to.KernelMovedOut = atomic.LoadUint64(&memory(i).out)
		to.CapacityViolations = atomic.LoadUint64(&t.violations)
		to.SoftExceeded = atomic.LoadUint64(&t.softExceeded)
		to.Rerouted = atomic.LoadUint64(&t.rerouted)
		to.RoutedSlow = atomic.LoadUint64(&t.routedSlow)
		to.Refused = atomic.LoadUint64(&t.refused)
		to.SimulatedWaitNs = atomic.LoadUint64(&t.waitNs)
		to.ThrottleSleeps = atomic.LoadUint64(&t.sleeps)
		to.ThrottleOvershootNs = atomic.LoadUint64(&t.overshootNs)
		to.Migrations.Attempted = atomic.LoadUint64(&t.attempted)
		to.Migrations.MovedPages = atomic.LoadUint64(&t.movedPages)
		to.Migrations.FailedPages = atomic.LoadUint64(&t.failedPages)
		to.ThrottleBW = t.bandwidth
		to.ThrottleBurst = t.burst
		to.ThrottleLatNs = t.latency
	}
}

// shownCap is the inverse of capOf.
func shownCap(limit uint64) uint64 {
	if limit == ^uint64(0) {
		return 0
	}
	return limit
}

// Account is the memory of a tier as the control plane sees it.
type Account struct {
	First      uintptr // the first of the tiers with this memory
	Current    uint64  // bytes
	Soft, Hard uint64  // bytes; ^0: no cap
}

// AccountOf returns the account of a tier, with the soft cap for its charge as it is now.
func AccountOf(tier uintptr) Account {
	a := memory(tier)
	return Account{First: of(tier).account, Current: atomic.LoadUint64(&a.current),
		Soft: a.softNow(), Hard: a.hardNow()}
}

// ForkChild starts the counts of a forked child, which has the memory of its parent and has done
// nothing yet. Precondition: the process has one thread.
func ForkChild() {
	policy.forked = true
	forgetFollowing()
	for i := range tiers {
		stakes[i].peak = held(uintptr(i))
		old := &tiers[i]
		tiers[i] = tier{bandwidth: old.bandwidth, burst: old.burst, latency: old.latency,
			bucket: old.bucket}
	}
}
