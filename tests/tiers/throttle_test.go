package tiers_test

import (
	"fmt"
	"strings"
	"testing"
)

// load is a number of blocks taken from the fast tier by threads.
type load struct {
	threads, blocks, bytes int64
	bw, burst              int64 // 0: none
	latNs                  int64
	timerUs                int64
}

func (l *load) requests() int64 { return l.threads * l.blocks }

// costNs is the time of all bytes at the limit, and burstNs what may pass before it.
func (l *load) costNs() float64 {
	if l.bw == 0 {
		return 0
	}
	return float64(l.requests()*l.bytes) / float64(l.bw) * 1e9
}

func (l *load) burstNs() float64 {
	if l.bw == 0 {
		return 0
	}
	return float64(l.burst) / float64(l.bw) * 1e9
}

// run returns how long it took and the report.
func (l *load) run(t *testing.T, mode string) (tookNs float64, r report) {
	t.Helper()
	env := []string{"TA_THROTTLE=" + mode, fmt.Sprintf("TA_FAST_LAT=%dns", l.latNs)}
	limit := int64(0)
	if l.bw != 0 {
		env = append(env, fmt.Sprintf("TA_FAST_BW=%d", l.bw),
			fmt.Sprintf("TA_FAST_BURST=%d", l.burst))
		if mode == "sleep" {
			limit = l.bw
		}
	}
	res := preloaded(t, env, compile(t, "throttle.c"), fmt.Sprint(l.threads), fmt.Sprint(l.blocks),
		fmt.Sprint(l.bytes),
		fmt.Sprint(limit), fmt.Sprint(l.burst), fmt.Sprint(l.timerUs))
	clean(t, res)
	first, json, _ := strings.Cut(res.Stdout, "\n")
	tookNs = float64(numbers(t, first)[0])
	r = checked(t, []byte(json))
	if f := &r.Tiers.Fast; f.AllocCalls != l.requests() || f.ThrottleBW != l.bw ||
		f.Burst != l.burst && l.bw != 0 || f.LatNs != l.latNs || r.Policy.Throttle != mode {
		t.Errorf("%d blocks, policy %+v, fast %+v", l.requests(), r.Policy, f)
	}
	if r.Tiers.Normal.WaitNs+r.Tiers.Slow.WaitNs != 0 {
		t.Errorf("tiers that are not throttled have waited")
	}
	return tookNs, r
}

// TestAccountBandwidth: the waiting time of a thread is what its bytes need at the
// limit, less the burst and less the time that has passed anyway. Threads at once may
// each count a wait that one after the other would have been one.
func TestAccountBandwidth(t *testing.T) {
	for _, l := range []load{
		{threads: 1, blocks: 40000, bytes: 16, bw: 10 * mib, burst: 64 * kib},
		{threads: 1, blocks: 20000, bytes: 1000, bw: 100 * mib, burst: 1},
		{threads: 1, blocks: 5000, bytes: 64 * kib, bw: 1024 * mib, burst: 4 * mib},
		{threads: 1, blocks: 2000, bytes: 1 * mib, bw: 10240 * mib, burst: 64 * kib},
		{threads: 1, blocks: 200, bytes: 8 * mib, bw: 1024 * mib, burst: 64 * kib},
		{threads: 8, blocks: 1000, bytes: 100 * kib, bw: 512 * mib, burst: 64 * kib},
	} {
		took, r := l.run(t, "account")
		wait, cost, f := float64(r.Tiers.Fast.WaitNs), l.costNs(), &r.Tiers.Fast
		rounding := float64(l.requests()) // a nanosecond each
		if wait < cost-l.burstNs()-took-rounding || wait > cost*float64(l.threads)+rounding ||
			f.Sleeps != 0 || f.OvershootNs != 0 {
			t.Errorf("%+v: %.0f ns were counted in %.0f ns, %.0f should have been; %+v", l, wait,
				took, cost, f)
		}
	}
}

// TestAccountLatency: each block counts, whichever function makes it, and nothing
// else does.
func TestAccountLatency(t *testing.T) {
	for _, l := range []load{
		{threads: 1, blocks: 10000, bytes: 16, latNs: 300},
		{threads: 16, blocks: 1000, bytes: 3000, latNs: 1},
		{threads: 4, blocks: 100, bytes: 6 * mib, latNs: 1000000000},
	} {
		if _, r := l.run(t, "account"); r.Tiers.Fast.WaitNs != l.requests()*l.latNs {
			t.Errorf("%+v: %d ns", l, r.Tiers.Fast.WaitNs)
		}
	}
	const lat = 1e6
	for _, c := range []struct {
		env, script  string
		fast, normal int64 // blocks
	}{
		{"", "new a 500 hot 100 => fast*500\nnew b 100 pin_fast 30000 => fast*100\nnew c 10 " +
			"prefer_fast 5M\nnew d 9 malloc 100", 610, 0},
		{"", "hint hot\nnew a 300 malloc 100\nnew b 300 calloc 500\nnew c 30 memalign:4096 " +
			"9000\nnew d 3 malloc 6M\nfree a\nnew a 300 malloc 100\nnew e 2 warm 50", 933, 0},
		{"", "hint hot\nnew a 10 malloc 100\nresize a 105\nresize a 5000\nresize a 5010\nresize " +
			"a 20000", 30, 0},
		{"", "new a 10 cold 100 => slow*10\nmove a fast => fast@new*10\nnew b 4 cold 400K\nmove " +
			"b fast => fast@same*4", 10, 0},
		{"TA_RULES=size=100-200:hot;thread=io:prefer_fast",
			"new a 50 malloc 99\nnew b 50 malloc 100\nnew c 50 calloc 200\nnew d 50 malloc " +
				"201\nname io\nnew e 70 malloc 700\nnew f 1 malloc 9M", 171, 0},
		{"TA_DEFAULT_HINT=warm",
			"new a 90 hot 100\non 0 new b 90 hot 100\non 1 free b\non 0 new b 90 hot 100\non 1 " +
				"hint hot\non 1 new c 90 malloc 100", 360, 0},
		{"TA_FAST_HARD=64K",
			"new a 100 hot 1000 => fast*64 normal*36\nfree a\nnew b 10 hot 5M => normal*10", 64,
			46},
	} {
		env := []string{"TA_FAST_LAT=1ms", c.env}
		if c.normal != 0 {
			env = append(env, "TA_NORMAL_LAT=1ms")
		}
		p := play(t, env, c.script+"\njson")
		if r := &p.json[0]; r.Tiers.Fast.WaitNs != c.fast*lat ||
			r.Tiers.Normal.WaitNs != c.normal*lat {
			t.Errorf("%s %q: %d ns in fast, %d in normal", c.env, c.script, r.Tiers.Fast.WaitNs,
				r.Tiers.Normal.WaitNs)
		}
	}
}

// TestAccountBoth: without a burst, latency and bandwidth add up; with one that hides
// the bytes only the latency is left.
func TestAccountBoth(t *testing.T) {
	l := load{threads: 1, blocks: 1000, bytes: 100 * kib, bw: 1000 * mib, burst: 1, latNs: 100000}
	_, r := l.run(t, "account")
	wait, sum := float64(r.Tiers.Fast.WaitNs), float64(l.requests()*l.latNs)+l.costNs()
	if wait < 0.999*sum || wait > sum+float64(l.requests()) {
		t.Errorf("%.0f ns were counted, %.0f should have been", wait, sum)
	}
	l.burst = l.requests() * l.bytes
	if _, r := l.run(t, "account"); r.Tiers.Fast.WaitNs != l.requests()*l.latNs {
		t.Errorf("%d ns were counted within the burst", r.Tiers.Fast.WaitNs)
	}
}

// TestThrottledPages: blocks are charged by the tier that they come from, also for a
// hint whose own tier costs nothing.
func TestThrottledPages(t *testing.T) {
	p := play(t, []string{"TA_FAST_HARD=128K", "TA_NORMAL_LAT=1ms"}, `
		hint prefer_fast
		new a 300 malloc 1000 => fast*128 normal*172
		free a
		new b 300 malloc 500 => fast*256 normal*44
		new c 5 malloc 5M => normal*5
		json
	`)
	if wait := p.json[0].Tiers.Normal.WaitNs; wait != (172+44+5)*1e6 {
		t.Errorf("%d blocks cost %d ns", 172+44+5, wait)
	}
	// Pages that came into the tier by demotion, and have free blocks again.
	p = play(t, withEnv(demoteNow, "TA_FAST_SOFT=1M", "TA_NORMAL_LAT=1ms"), `
		hint hot
		new a 2000 malloc 1000
		new b 2000 malloc 1000
		tick 5 0
		tiers a => normal*2000
		free a
		json
		new c 1000 malloc 1000
		json
	`)
	here := int64(0)
	runs := p.to["new c 1000 malloc 1000"][0]
	for _, run := range strings.Fields(runs) {
		var n int64
		if tier, count, _ := strings.Cut(run, "*"); tier == "normal" {
			fmt.Sscan(count, &n)
			here += n
		}
	}
	if waited := p.json[1].Tiers.Normal.WaitNs - p.json[0].Tiers.Normal.WaitNs; here == 0 ||
		waited != here*1e6 {
		t.Errorf("%d blocks from the normal tier (%s) cost %d ns", here, runs, waited)
	}
}

// TestSleep: the time is really taken. The program itself verifies after each block
// that no more has passed than the limit and the burst allow; so it took all of the
// time that the bytes need beyond the burst. That it did not take longer shows in what
// the library counted: waits and oversleeping are within 3% of that time. The time
// that the machine was busy elsewhere between two sleeps is neither, so that is tried
// again.
func TestSleep(t *testing.T) {
	t.Parallel()
	for _, l := range []load{
		{threads: 1, blocks: 25, bytes: 4 * mib, bw: 80 * mib, burst: 2 * mib},
		{threads: 16, blocks: 3, bytes: 1 * mib, bw: 40 * mib, burst: 64 * kib},
		{threads: 1, blocks: 25, bytes: 4 * mib, bw: 80 * mib, burst: 2 * mib, timerUs: 700},
		{threads: 1, blocks: 12, bytes: 100, latNs: 100e6, timerUs: 1500},
	} {
		t.Run(fmt.Sprintf("%+v", l), func(t *testing.T) {
			t.Parallel()
			for attempt := 1; ; attempt++ {
				took, r := l.run(t, "sleep")
				f := &r.Tiers.Fast
				want := l.costNs() - l.burstNs() + float64(l.blocks*l.latNs)
				if took < want {
					t.Fatalf("%.0f ns, at least %.0f are due", took, want)
				}
				if f.Sleeps == 0 || f.Sleeps > l.requests() || f.OvershootNs < 0 {
					t.Fatalf("fast: %+v", f)
				}
				if l.threads > 1 { // their waits overlap
					return
				}
				slept := float64(f.WaitNs + f.OvershootNs)
				if slept > took {
					t.Fatalf("%.0f ns of sleep in %.0f ns", slept, took)
				}
				if slept > 0.97*want && float64(f.WaitNs) < 1.03*want {
					return
				}
				if attempt == 4 {
					t.Fatalf("%.0f ns were due, %d waited, %d overslept", want, f.WaitNs,
						f.OvershootNs)
				}
			}
		})
	}
}

// TestSleepHoldsNobodyUp: a thread sleeps for its memory outside every lock.
func TestSleepHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	for _, bytes := range []string{"2000000", "8000000"} {
		r := preloaded(t, []string{"TA_THROTTLE=sleep", "TA_FAST_BW=" + bytes, "TA_FAST_BURST=1"},
			compile(t, "throttle.c"), "0", "0", bytes, "0", "0", "0")
		clean(t, r)
	}
}
