package tiers

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/config"
	"tieralloc/internal/group"
	"tieralloc/internal/raw"
	"tieralloc/throttle"
)

// account is the memory of one tier, or of several that lie on the same nodes.
//
//	current = the sum of its tiers' current
//
// between two changes. During a change other than Shift, current is at least the sum. The only tier
// of an account has no count of its own: see held.
type account struct {
	soft, hard uint64 // bytes; ^0: no cap
	current    uint64 // bytes
	// bytes that the kernel has moved into the account's memory and out of it, by KernelMoved
	in, out uint64
	shared  bool // by several tiers
	grouped bool // its caps are those of a group of processes (internal/group)

	_ [64 - 48]byte // keeps the next account's current in another cache line
}

// accounts is indexed by the number of an account's first tier.
var accounts [slots]account

// stake is what one tier has of its account.
//
//	current <= peak
type stake struct {
	account uintptr // its number, the first of the tiers with this memory
	current uint64  // bytes, where the account is shared
	peak    uint64  // bytes

	_ [64 - 24]byte // likewise
}

var stakes [slots]stake

// of is what tier t holds. Precondition: t is a tier.
func of(t uintptr) *stake { return &stakes[t&slotMask] }

// setupAccounts assigns accounts to the tiers. config.ShareCaps has made the caps of tiers of one
// account equal.
func setupAccounts(s *config.Settings, first *[4]uintptr) {
	for i := range accounts {
		set := &s.Tiers[i]
		accounts[i] = account{soft: capOf(set.Soft), hard: capOf(set.Hard)}
		stakes[i] = stake{account: first[i] & slotMask}
		if uintptr(i) != stakes[i].account {
			accounts[stakes[i].account&slotMask].shared = true
		}
	}
}

// JoinGroup says that the caps are for the sum of the group that this process has joined.
func JoinGroup() {
	for i := range accounts {
		accounts[i].grouped = true
	}
}

// LeaveGroup says that the caps are for this process alone, a forked child that is in no group.
func LeaveGroup() {
	for i := range accounts {
		accounts[i].grouped = false
	}
}

// capOf returns the cap, or for one that is not set a cap that no account exceeds.
func capOf(set uint64) uint64 {
	if set == 0 {
		return ^uint64(0)
	}
	return set
}

// memory is the account of tier t. Precondition: t is a tier.
func memory(t uintptr) *account { return &accounts[of(t).account&slotMask] }

// fits reports whether n bytes more would not pass limit.
func fits(current, n, limit uint64) bool { return n <= limit && current <= limit-n }

// number is the account's index.
func (a *account) number() uintptr {
	return (uintptr(unsafe.Pointer(a)) - uintptr(unsafe.Pointer(&accounts))) / unsafe.Sizeof(*a)
}

// softNow is the soft cap for the charge of the account. Bytes that the kernel has moved in reduce
// it, and bytes that the kernel has moved out raise it. In a group it is what the group leaves this
// process.
func (a *account) softNow() uint64 {
	if a.soft == ^uint64(0) {
		return a.soft
	}
	return a.softSet()
}

// softSet is softNow where there is a soft cap.
func (a *account) softSet() uint64 {
	room, in := a.soft+atomic.LoadUint64(&a.out), atomic.LoadUint64(&a.in)
	room -= min(in, room)
	if a.grouped {
		return a.softInGroup(room)
	}
	return room
}

// softInGroup is softNow where soft is the cap for the sum of the group's members. Any
// member may take the bytes that are left below soft. Where the sum exceeds soft, each member has
// to return memory in proportion to its charge.
func (a *account) softInGroup(soft uint64) uint64 {
	mine, all := group.Used(a.number())
	current := atomic.LoadUint64(&a.current)
	if all <= soft {
		return current + (soft - all)
	}
	excess := uint64(float64(mine) / float64(all) * float64(all-soft))
	return current - min(excess+1, current)
}

// hardNow is the hard cap for the charge of the account. In a group it is what the group leaves
// this process.
func (a *account) hardNow() uint64 {
	if !a.grouped {
		return a.hard
	}
	return a.hardInGroup()
}

func (a *account) hardInGroup() uint64 {
	current, room := atomic.LoadUint64(&a.current), group.Room(a.number())
	return min(a.hard, current+min(room, ^current))
}

// KernelMoved sets the bytes that the kernel has moved. in is the number of bytes on the tier's
// nodes that belong to tiers with other nodes. out is the number of bytes of the tier on other
// nodes. The values replace those of the call before.
func KernelMoved(tier, in, out uintptr) {
	a := memory(tier)
	atomic.StoreUint64(&a.in, uint64(in))
	atomic.StoreUint64(&a.out, uint64(out))
}

// admits reports whether n bytes more would not pass the hard cap.
func (a *account) admits(n uint64) bool {
	return fits(atomic.LoadUint64(&a.current), n, a.hardNow())
}

// charge adds n bytes to a tier unless its account would then exceed limit, or the group its hard
// cap. It returns the bytes of the account; ^0 where the group refuses.
func charge(tier uintptr, n, limit uint64) (after uint64, ok bool) {
	a := memory(tier)
	for {
		old := atomic.LoadUint64(&a.current)
		if !fits(old, n, limit) {
			return old, false
		}
		if atomic.CompareAndSwapUint64(&a.current, old, old+n) {
			if a.grouped && !a.chargeGroup(n) {
				return ^uint64(0), false
			}
			if a.shared {
				of(tier).add(n)
			} else {
				of(tier).raise(old + n)
			}
			return old + n, true
		}
	}
}

// Admit charges n bytes to exactly this tier. It reports false, and charges nothing,
// when that would pass the hard cap.
func Admit(tier, n uintptr) bool {
	_, ok := charge(tier, uint64(n), memory(tier).hard)
	if !ok {
		atomic.AddUint64(&at(tier).violations, 1)
	}
	return ok
}

// Release undoes a charge of n bytes. Precondition: the tier was charged with them, and they were
// returned to the kernel or charged to another tier.
func Release(tier, n uintptr) {
	a := memory(tier)
	if (!a.shared || take(&of(tier).current, uint64(n))) && take(&a.current, uint64(n)) &&
		a.grouped {
		a.releaseGroup(n)
	}
}

// chargeGroup charges the group with n bytes that the account has been charged with, or undoes
// that. It is a function of its own to keep charge small, since few processes need it.
//
//go:noinline
func (a *account) chargeGroup(n uint64) bool {
	if group.Charge(a.number(), uintptr(n)) {
		return true
	}
	take(&a.current, n)
	return false
}

//go:noinline
func (a *account) releaseGroup(n uintptr) { group.Release(a.number(), n) }

// Shift turns a charge of n bytes of one tier into one of another with the same account.
func Shift(from, to, n uintptr) {
	if take(&of(from).current, uint64(n)) {
		of(to).add(uint64(n))
	}
}

// Recharge sets the charge of a tier in a forked child. From then on a release of more than the
// charge does nothing, because it belongs to a charge that another thread of the parent was about
// to make. Precondition: the process has one thread.
func Recharge(tier, n uintptr) {
	policy.forked = true
	a := memory(tier)
	if !a.shared {
		a.current = uint64(n)
		return
	}
	of(tier).current = uint64(n)
	a.current = 0
	for i := uintptr(0); i < tierCount; i++ {
		if Same(i, tier) {
			a.current += of(i).current
		}
	}
}

// held returns the charge of a tier.
func held(tier uintptr) uint64 {
	if a := memory(tier); !a.shared {
		return atomic.LoadUint64(&a.current)
	}
	return atomic.LoadUint64(&of(tier).current)
}

// Same reports whether two tiers are the same memory, or the same tier.
func Same(a, b uintptr) bool { return of(a).account == of(b).account }

// Below returns the tier that memory is demoted to from this one: the next slower tier with other
// nodes than this tier and all faster ones. It reports false if there is none.
func Below(tier uintptr) (lower uintptr, ok bool) {
	for lower = tier + 1; lower < tierCount; lower++ {
		if of(lower).account > tier {
			return lower, true
		}
	}
	return 0, false
}

// Excess is the number of bytes by which the tier's memory exceeds its soft cap now.
func Excess(tier uintptr) uint64 {
	a := memory(tier)
	if c, soft := atomic.LoadUint64(&a.current), a.softNow(); c > soft {
		return c - soft
	}
	return 0
}

// Room reports whether n bytes more would leave the tier's memory within its hard cap and within
// 7/8 of its soft cap. The margin keeps memory that is promoted from being demoted again at once.
func Room(tier, n uintptr) bool {
	a := memory(tier)
	limit := a.hardNow()
	if a.soft != ^uint64(0) {
		soft := a.softNow()
		limit = min(limit, soft-soft/8)
	}
	return fits(atomic.LoadUint64(&a.current), uint64(n), limit)
}

// LeastSoft is the smallest soft cap of any tier: ^0 if none has one.
func LeastSoft() uint64 {
	least := ^uint64(0)
	for t := uintptr(0); t < tierCount; t++ {
		least = min(least, memory(t).soft)
	}
	return least
}

// Full reports whether n bytes more would pass the hard cap of the tier's memory.
func Full(tier, n uintptr) bool { return !memory(tier).admits(uint64(n)) }

// add charges n bytes to the tier, and not to its shared account.
func (s *stake) add(n uint64) { s.raise(atomic.AddUint64(&s.current, n)) }

// raise makes the peak at least v.
func (s *stake) raise(v uint64) {
	for {
		old := atomic.LoadUint64(&s.peak)
		if old >= v || atomic.CompareAndSwapUint64(&s.peak, old, v) {
			return
		}
	}
}

// take takes n bytes off a charge. It reports false in a forked child whose charge is less than n.
func take(current *uint64, n uint64) bool {
	after := atomic.AddUint64(current, -n)
	if after+n >= after {
		return true
	}
	raw.Check(policy.forked, "a tier is released more than it was charged with")
	atomic.AddUint64(current, n)
	return false
}

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
