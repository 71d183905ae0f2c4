package profile

import (
	"math/bits"
	"sync/atomic"

	"tieralloc/alloc/sizeclass"
)

// Samples are points on the line of all bytes ever allocated, a Poisson process of one point in
// Rate bytes, or, at a level of thinning, in Rate << level. A block counts with the bytes of its
// class (sizeclass.Rounded), so that the heap need not know what was asked for. One of n bytes is
// sampled if a point lies in them:
//
//	P(n) = 1 - e^(-n/(Rate<<level))
//
// and then stands for 1/P(n) blocks (tcmalloc's and OpenTelemetry's definition), so that sums over
// the samples have the sums over all blocks as their expectation.

// Rate is the mean number of bytes between samples; 0: nothing is sampled.
var Rate uint64

// Forks counts the forks between the process that began the profile and this one.
var Forks uint32

// random numbers: splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators).
var seed uint64

func random() uint64 {
	z := atomic.AddUint64(&seed, 0x9e3779b97f4a7c15)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// meanDistance is the mean number of bytes between samples at a level of thinning.
func meanDistance(level uint8) float64 { return float64(Rate << (level & maxLevel)) }

// Distance draws the number of bytes to the next sample: -ln(u) times their mean for a uniform u.
func Distance(level uint8) int64 {
	d := logarithm(random()|1) * meanDistance(level)
	const most = 1 << 62
	if d > most {
		return most
	}
	return int64(d) + 1
}

// Blocks draws the number of blocks of so many bytes each up to and including the next sample.
func Blocks(size int64, level uint8) int64 {
	if size <= 0 { // never; it tells the compiler that size is not 0
		return 1
	}
	return (Distance(level) + size - 1) / size
}

// inverse[k] is 1/k: a division takes several times as long as a multiplication.
var inverse = [32]float64{0, 1.0 / 1, 1.0 / 2, 1.0 / 3, 1.0 / 4, 1.0 / 5, 1.0 / 6, 1.0 / 7,
	1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14, 1.0 / 15, 1.0 / 16,
	1.0 / 17, 1.0 / 18, 1.0 / 19}

// logarithm returns -ln(u/2^64), to 9 digits, for u > 0.
func logarithm(u uint64) float64 {
	const ln2 = 0.693147180559945309417
	zeros := bits.LeadingZeros64(u)
	// u = m·2^(63-zeros), 1 <= m < 2; ln m = 2·atanh((m-1)/(m+1))
	m := float64(u<<(uint(zeros)&63)>>11) / (1 << 52)
	t := (m - 1) / (m + 1)
	square, sum := t*t, 0.0
	for k := 19; k > 0; k -= 2 {
		sum = sum*square + inverse[k&31]
	}
	return float64(zeros+1)*ln2 - 2*sum*t
}

// Weight is how many blocks one of n bytes stands for that was sampled at a level.
func Weight(n uint64, level uint8) float64 {
	return 1 / chance(float64(sizeclass.Rounded(uintptr(n)))/meanDistance(level))
}

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
	d := 0.0
	for k := 8; k > 0; k-- {
		d = -x * inverse[k&31] * (1 + d)
	}
	for ; doublings > 0; doublings-- {
		d *= d + 2
	}
	return -d
}
