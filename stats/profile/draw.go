package profile

import (
	"math/bits"
	"sync/atomic"
)

// Samples are points on the line of all bytes ever allocated, a Poisson process of one point in
// Rate bytes. A block of n bytes is sampled if a point lies in it:
//
//	P(n) = 1 - e^(-n/Rate)
//
// and then stands for 1/P(n) blocks (tcmalloc's and OpenTelemetry's definition), so that sums over
// the samples have the sums over all blocks as their expectation.

// Rate is the mean number of bytes between samples; 0: nothing is sampled.
var Rate uint64

// random numbers: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
var seed uint64

func random() uint64 {
	z := atomic.AddUint64(&seed, 0x9e3779b97f4a7c15)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Distance draws the number of bytes to the next sample: -ln(u)·Rate for a uniform u.
func Distance() int64 {
	d := logarithm(random()|1) * float64(Rate)
	const most = 1 << 62
	if d > most {
		return most
	}
	return int64(d) + 1
}

// logarithm returns -ln(u/2^64), to 9 digits, for u > 0.
func logarithm(u uint64) float64 {
	const ln2 = 0.693147180559945309417
	zeros := bits.LeadingZeros64(u)
	// u = m·2^(63-zeros), 1 <= m < 2; ln m = 2·atanh((m-1)/(m+1))
	m := float64(u<<(uint(zeros)&63)>>11) / (1 << 52)
	t := (m - 1) / (m + 1)
	square, power, sum := t*t, t, 0.0
	for k := 1.0; k < 20; k += 2 {
		sum += power / k
		power *= square
	}
	return float64(zeros+1)*ln2 - 2*sum
}

// Weight is how many blocks a sampled one of n bytes stands for.
func Weight(n uint64) float64 { return 1 / chance(float64(n)/float64(Rate)) }

// chance returns 1 - e^(-x), to 9 digits, for x >= 0. For a small x the difference would lose
// digits. So d = e^-x - 1 is summed as a series, and doubled up: e^-2x - 1 = d·(d + 2).
func chance(x float64) float64 {
	if x > 40 {
		return 1
	}
	doublings := 0
	for x > 0.125 { // at most nine times
		x /= 2
		doublings++
	}
	term, d := 1.0, 0.0
	for k := 1.0; k < 9; k++ {
		term *= -x / k
		d += term
	}
	for ; doublings > 0; doublings-- {
		d *= d + 2
	}
	return -d
}
