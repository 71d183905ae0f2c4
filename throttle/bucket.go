// Package throttle limits a stream of requests to a rate: the generic cell rate algorithm (ITU-T
// I.371, annex A), a token bucket in virtual time. It only does the arithmetic. Time is an
// argument, and the caller waits.
//
// The algorithm keeps one number, the theoretical arrival time TAT: the time at which all bytes so
// far would have passed at exactly the rate. A request of n bytes at now gives
//
//	TAT  = max(TAT, now - burst/rate) + n/rate
//	wait = max(0, TAT - now)
//
// so that burst bytes pass at once after a pause, and requests that wait as told never pass more
// than burst + rate·t bytes in the first t, whatever the number of threads. (One request larger
// than the burst passes as a whole, after its wait.) A bucket that forgot waits not yet served
// would let each thread through at the rate.
//
// It is freestanding Go (docs/runtime.md).
package throttle

import (
	"math/bits"
	"sync/atomic"
)

// Numbers of the arithmetic. A unit is 1/256 ns: at 10 GB/s 16 bytes take 1.6 ns, and whole
// nanoseconds would be wrong by a quarter. The time of a request is rounded up to a unit, so that
// the rate is never exceeded.
const (
	fraction   = 8  // bits: units per nanosecond
	reciprocal = 32 // further bits of Bucket.perByte

	// The rates for which perByte has no more than 64 bits and no fewer than 22.
	minRate = 1 << 10 // bytes per second
	maxRate = 1 << 46

	// The longest time for one request and for a burst: 52 days.
	maxUnits = 1 << 60
	maxOwed  = 2 * maxUnits
)

// Bucket is one limit. Charge and Copy may be called by any number of threads; Set by
// one, before them. The zero value limits nothing.
//
//	due = TAT + tolerance       (mod 2^64)
//	perByte = 2^40·10^9 / rate, rounded up; 0: no limit
//
//	due - now <= maxOwed, or due is in the past
//
// TAT may be up to burst/rate before time 0; due is not. A bucket that is not used for two years
// may keep its old debt, because due wraps.
type Bucket struct {
	due       uint64 // units
	perByte   uint64 // units·2^-32
	tolerance uint64 // units: burst/rate
	latency   uint64 // nanoseconds
}

// Set limits the bucket to bytesPerSecond, with a burst in bytes and a latency in nanoseconds for
// each request. 0 bytes per second is no limit; other rates are clamped to 1 KiB/s to 64 TiB/s.
func (b *Bucket) Set(bytesPerSecond, burst, latency uint64) {
	*b = Bucket{latency: latency}
	if bytesPerSecond != 0 {
		b.perByte = perByte(min(max(bytesPerSecond, minRate), maxRate))
		b.tolerance = b.units(burst)
	}
}

// perByte is 2^40·10^9 / rate, rounded up. It divides by hand, because the dividend has 70 bits and
// bits.Div64 can panic.
func perByte(rate uint64) (q uint64) {
	const step = reciprocal / 2
	r := uint64(1e9 << fraction)
	if rate == 0 { // for the compiler, which does not know the caller
		return 0
	}
	q, r = r/rate, r%rate
	for range 2 {
		r <<= step // r < rate <= 2^46: no bit is lost
		q = q<<step | r/rate
		r %= rate
	}
	if r != 0 {
		q++
	}
	return q
}

// On reports whether there is a limit or a latency.
func (b *Bucket) On() bool { return b.perByte != 0 || b.latency != 0 }

// Charge takes n bytes at now, and returns how long the request has to wait. Both times are in
// nanoseconds; now counts from a fixed moment not long before Set.
func (b *Bucket) Charge(now uint64, n uintptr) (wait uint64) {
	return b.latency + b.Copy(now, n)
}

// Copy is Charge without the latency, for bytes that are moved rather than requested. With n = 0 it
// only returns the wait.
func (b *Bucket) Copy(now uint64, n uintptr) (wait uint64) {
	if b.perByte == 0 {
		return 0
	}
	cost := b.units(uint64(n))
	now <<= fraction // wraps every 834 days, as due does
	for {
		old := atomic.LoadUint64(&b.due)
		owed := old - now
		if owed > maxOwed { // due is in the past
			owed = 0
		}
		owed = min(owed+cost, maxOwed)
		if !atomic.CompareAndSwapUint64(&b.due, old, now+owed) {
			continue
		}
		if owed <= b.tolerance {
			return 0
		}
		return (owed - b.tolerance + 1<<fraction - 1) >> fraction
	}
}

// units is the time of n bytes at the rate, rounded up, at most maxUnits.
func (b *Bucket) units(n uint64) uint64 {
	hi, lo := bits.Mul64(n, b.perByte)
	if hi >= maxUnits>>reciprocal {
		return maxUnits
	}
	t := hi<<(64-reciprocal) | lo>>reciprocal
	if lo&(1<<reciprocal-1) != 0 {
		t++
	}
	return t
}
