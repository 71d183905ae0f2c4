package throttle

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

const (
	millisecond = 1_000_000
	second      = 1_000_000_000
	day         = 86400 * second
)

func newBucket(rate, burst, latency uint64) *Bucket {
	b := new(Bucket)
	b.Set(rate, burst, latency)
	return b
}

// limit is what may have passed at t: burst and rate·t, in bytes, with a unit's worth
// for the rounding of the burst.
func limit(rate, burst, t uint64) float64 {
	perUnit := float64(rate) / second / (1 << fraction)
	return float64(burst) + float64(rate)*(float64(t)/second) + perUnit + 1e-6
}

// TestThroughput has threads that ask again as soon as they were let through, on a
// clock of their own.
func TestThroughput(t *testing.T) {
	for _, threads := range []int{1, 2, 3, 8, 16} {
		for _, size := range []uint64{16, 48, 100, 1 << 10, 4 << 10, 64 << 10, 1 << 20} {
			for _, rate := range []uint64{10e6, 123_456_789, 1e9, 10e9} {
				const burst = 100_000
				t.Run(fmt.Sprintf("threads=%d,size=%d,rate=%d", threads, size, rate),
					func(t *testing.T) {
						flow(t, newBucket(rate, burst, 0), 0, threads, size, rate, burst)
					})
			}
		}
	}
}

// flow runs the threads from start on until the burst is long gone, and holds every
// passage to the limit and the whole to the rate.
func flow(t *testing.T, b *Bucket, start uint64, threads int, size, rate, burst uint64) {
	t.Helper()
	free := make([]uint64, threads) // when each thread asks next
	total := max(10*burst, 1000*size)
	bytes, end := uint64(0), uint64(0)
	for bytes < total {
		i := 0
		for k := range free {
			if free[k] < free[i] {
				i = k
			}
		}
		free[i] += b.Charge(start+free[i], uintptr(size))
		bytes += size
		end = max(end, free[i])
		if m := limit(rate, max(burst, size), free[i]); float64(bytes) > m {
			t.Fatalf("%d bytes by %d ns, at most %.0f allowed", bytes, free[i], m)
		}
	}
	got := float64(bytes-burst) / float64(end) * second
	if off := got/float64(rate) - 1; off > 1e-6 || off < -0.003 {
		t.Errorf("%.0f bytes/s, off by %.3f%%", got, 100*off)
	}
}

// TestBurst: after a pause the burst passes at once and not a byte more; a shorter
// pause gives back what its time is worth; a longer one never more than the burst.
func TestBurst(t *testing.T) {
	const rate = 256e6 // a byte takes 1000 units exactly
	for _, burst := range []uint64{1, 16, 4096, 64 << 10, 1 << 30} {
		b := newBucket(rate, burst, 0)
		now := uint64(0)
		for _, pause := range []uint64{0, 100 * second, day, 5 * second} {
			now += pause
			if w := b.Charge(now, uintptr(burst)); w != 0 {
				t.Errorf("burst %d after %d: waits %d", burst, pause, w)
			}
			if w := b.Charge(now, 1); w != 4 { // 1000/256 ns, rounded up
				t.Errorf("burst %d after %d: a byte more waits %d", burst, pause, w)
			}
		}
		now += 4 * 1000 // 4 µs: 1024 bytes, one of which is owed
		back := min(1023, burst)
		if w := b.Charge(now, uintptr(back)); w != 0 {
			t.Errorf("burst %d: %d bytes wait %d after 4 µs", burst, back, w)
		}
		if w := b.Charge(now, 1); w == 0 {
			t.Errorf("burst %d: 4 µs are worth more than %d bytes", burst, back)
		}
	}
	b := newBucket(rate, 64<<10, 0)
	for i := range 4096 { // in small requests
		if w := b.Charge(77, 16); w != 0 {
			t.Fatalf("request %d of the burst waits %d", i, w)
		}
	}
	if w := b.Charge(77, 16); w != 63 { // 62.5
		t.Errorf("the one after the burst waits %d", w)
	}
}

// TestWithoutBurst: with a burst of 0 each request waits for its own time.
func TestWithoutBurst(t *testing.T) {
	b := newBucket(1e9, 0, 0)
	if w := b.Charge(1000, 500); w != 500 {
		t.Errorf("500 bytes at 1 GB/s wait %d", w)
	}
	if w := b.Charge(1500, 500); w != 500 {
		t.Errorf("500 bytes more wait %d", w)
	}
}

func TestLatency(t *testing.T) {
	b := newBucket(0, 0, 300)
	for now := range uint64(3) {
		if w := b.Charge(now, 1<<40); w != 300 || b.Copy(now, 1<<40) != 0 {
			t.Errorf("a bucket of a latency only: wait %d", w)
		}
	}
	b = newBucket(1e9, 1000, 300)
	for _, want := range []uint64{300, 300, 800} {
		if w := b.Charge(0, 500); w != want {
			t.Errorf("wait %d, not %d", w, want)
		}
	}
	if w := b.Copy(0, 500); w != 1000 {
		t.Errorf("a copy waits %d", w)
	}
	if w := b.Copy(0, 0); w != 1000 {
		t.Errorf("to ask changes the answer: %d", w)
	}
}

func TestOn(t *testing.T) {
	for _, c := range []struct {
		rate, burst, latency uint64
		want                 bool
	}{{0, 0, 0, false}, {0, 1 << 20, 0, false}, {1024, 0, 0, true}, {0, 0, 1, true},
		{1 << 46, 1, 1, true}} {
		if got := newBucket(c.rate, c.burst, c.latency).On(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
	var none Bucket
	if none.On() || none.Charge(5, 1<<40) != 0 || none.Copy(5, 1<<40) != 0 {
		t.Error("the zero bucket limits something")
	}
	b := newBucket(1e6, 0, 0)
	b.Charge(0, 1<<30)
	if b.Set(1e6, 1<<20, 0); b.Charge(0, 1<<20) != 0 {
		t.Error("a bucket that is set again remembers")
	}
}

// TestSaturation: what is more than the arithmetic holds is a wait of weeks, not a
// short one, and the next does not undo it.
func TestSaturation(t *testing.T) {
	for _, rate := range []uint64{1, minRate, 1e6, 1e9} {
		for _, burst := range []uint64{0, 1 << 46, math.MaxUint64} {
			b := newBucket(rate, burst, second)
			tooMuch := []uint64{math.MaxUint64, math.MaxUint64 - 1, math.MaxUint64}
			b.Charge(0, uintptr(tooMuch[0]))
			for i, n := range tooMuch {
				if w := b.Charge(uint64(i)*second, uintptr(n)); w < 50*day {
					t.Errorf("rate %d, burst %d: request %d waits %d", rate, burst, i, w)
				}
			}
			if w := b.Charge(200*day, 1); w > second+millisecond { // the latency and its own time
				t.Errorf("rate %d, burst %d: waits %d after all", rate, burst, w)
			}
		}
	}
}

// TestClockWraps runs across the moment at which the clock in units wraps.
func TestClockWraps(t *testing.T) {
	const rate, burst = 1e9, 1 << 20
	b := newBucket(rate, burst, 0)
	for now := uint64(0); now < 1<<56-400*day; now += 400 * day {
		if w := b.Charge(now, burst); w != 0 {
			t.Fatalf("waits %d after %d days", w, now/day)
		}
	}
	flow(t, b, 1<<56-5*millisecond, 3, 4096, rate, burst)
}

// TestReciprocal compares with exact division.
func TestReciprocal(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	dividend := new(big.Int).Lsh(big.NewInt(second), fraction+reciprocal)
	check := func(rate uint64) {
		want, rest := new(big.Int).DivMod(dividend, new(big.Int).SetUint64(rate), new(big.Int))
		if rest.Sign() != 0 {
			want.Add(want, big.NewInt(1))
		}
		if got := perByte(rate); !want.IsUint64() || got != want.Uint64() {
			t.Fatalf("1/%d is %d, not %d", rate, got, want)
		}
	}
	for _, rate := range []uint64{minRate, minRate + 1, 1e6, 1e9, 256e9, maxRate - 1, maxRate} {
		check(rate)
	}
	for range 100_000 {
		check(minRate + r.Uint64()>>18>>(r.Uint64()%36)%(maxRate-minRate))
	}
}

// FuzzBucket compares with the equations in exact numbers. The bucket may be late by
// its rounding, a unit for each request and a nanosecond for the answer, never early.
func FuzzBucket(f *testing.F) {
	f.Add(uint64(1e9), uint64(1<<20), []byte{1, 200, 3, 90, 5, 255, 7, 128})
	f.Add(uint64(1024), uint64(1), []byte{0, 0, 9, 9, 255, 255})
	f.Add(uint64(1<<46), uint64(0), []byte("many requests of all sizes at all distances"))
	f.Fuzz(func(t *testing.T, rate, burst uint64, steps []byte) {
		rate = minRate + rate%(maxRate-minRate+1)
		burst %= 1 << 46
		exact := func(n uint64) *big.Rat { // nanoseconds of n bytes
			return new(big.Rat).SetFrac(new(big.Int).Mul(new(big.Int).SetUint64(n),
				big.NewInt(second)),
				new(big.Int).SetUint64(rate))
		}
		if exact(burst).Cmp(new(big.Rat).SetInt64(40*day)) > 0 {
			return
		}
		b := newBucket(rate, burst, 0)
		tat := new(big.Rat).Neg(exact(burst))
		now := uint64(0)
		for i := 0; i+1 < len(steps) && i < 200; i += 2 {
			now += 1 << (steps[i] % 44) // up to 5 hours
			n := uint64(steps[i+1]%16+1) << (steps[i+1] >> 4 * 2) / 2
			at := new(big.Rat).SetInt(new(big.Int).SetUint64(now))
			if back := new(big.Rat).Sub(at, exact(burst)); tat.Cmp(back) < 0 {
				tat = back
			}
			tat.Add(tat, exact(n))
			want := new(big.Rat).Sub(tat, at)
			if want.Sign() < 0 {
				want.SetInt64(0)
			}
			if want.Cmp(new(big.Rat).SetInt64(10*day)) > 0 {
				return
			}
			got := new(big.Rat).SetInt(new(big.Int).SetUint64(b.Charge(now, uintptr(n))))
			late := new(big.Rat).Sub(got, want)
			// The burst, too, is rounded up, which makes it early by a unit at most.
			early := big.NewRat(-1, 1<<fraction)
			most := big.NewRat(int64(i)/2+2+1<<fraction, 1<<fraction)
			if late.Cmp(early) < 0 || late.Cmp(most) > 0 {
				t.Fatalf("request %d, %d bytes at %d: waits %v, not %v", i/2, n, now,
					got.FloatString(3), want.FloatString(3))
			}
		}
	})
}
