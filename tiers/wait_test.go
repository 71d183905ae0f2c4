package tiers

import (
	"runtime"
	"sync"
	"syscall"
	"testing"
	"tieralloc/internal/raw"
	"time"
	"unsafe"
)

// TestAccount: the waits of a thread add up to what the limit makes of its bytes, less
// the burst and the time that it took anyway. A wait is never counted again.
func TestAccount(t *testing.T) {
	const rate, burst, size, count = 1 << 20, 64 << 10, 4 << 10, 2000
	setup(t, "prog", "FAST_BW=1M")
	start := time.Now()
	for range count {
		Wait(fast, size, raw.Clock(raw.ClockMono))
	}
	took := time.Since(start)
	got := time.Duration(filled()[0].SimulatedWaitNs)
	most := time.Duration(count*size*int64(time.Second)/rate) + count // each wait rounded up
	least := time.Duration((count*size-burst)*int64(time.Second)/rate) - took
	if got > most || got < least {
		t.Errorf("%d bytes at 1 MiB/s: %v of wait, not %v to %v", count*size, got, least, most)
	}
	if f := filled(); f[0].ThrottleSleeps != 0 || f[1].SimulatedWaitNs != 0 ||
		f[2].SimulatedWaitNs != 0 {
		t.Errorf("%+v", f)
	}
}

func TestAccountLatency(t *testing.T) {
	setup(t, "prog", "NORMAL_LAT=300ns")
	for range 1000 {
		Wait(normal, 1<<30, raw.Clock(raw.ClockMono))
		WaitCopy(normal, 1<<30, raw.Clock(raw.ClockMono))
		Wait(fast, 1<<30, raw.Clock(raw.ClockMono))
	}
	if got := filled()[1].SimulatedWaitNs; got != 300_000 {
		t.Errorf("%d ns", got)
	}
	if !Throttled(normal) || Throttled(fast) || Throttled(slow) || !AnyThrottled() {
		t.Error("which tiers are throttled")
	}
	setup(t, "prog", "SLOW_BW=1K")
	if !Throttled(slow) || Throttled(fast) || !AnyThrottled() {
		t.Error("a limit is a throttle, too")
	}
}

// TestWaitCopy: copied bytes are charged to the same limit.
func TestWaitCopy(t *testing.T) {
	setup(t, "prog", "FAST_BW=1M", "FAST_LAT=1s")
	WaitCopy(fast, 1<<20, raw.Clock(raw.ClockMono))
	got := filled()[0].SimulatedWaitNs
	if got > 1e9 {
		t.Errorf("a copy has the latency: %d", got)
	}
	Wait(fast, 1<<20, raw.Clock(raw.ClockMono))
	if got := filled()[0].SimulatedWaitNs; got < 2_900_000_000-64_000_000 {
		t.Errorf("the copy was not charged: %d", got)
	}
}

// TestSleep: nobody passes before the limit allows it, with several threads; what was
// slept is counted.
func TestSleep(t *testing.T) {
	const rate, burst, size, count, threads = 16 << 20, 256 << 10, 32 << 10, 16, 4
	setup(t, "prog", "FAST_BW=16M", "FAST_BURST=256K", "THROTTLE=sleep")
	start := time.Now()
	var wg sync.WaitGroup
	for range threads {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range count {
				Wait(fast, size, raw.Clock(raw.ClockMono))
			}
		}()
	}
	wg.Wait()
	took := time.Since(start)
	least := time.Duration((threads*count*size - burst) * int64(time.Second) / rate)
	if took < least {
		t.Errorf("%d bytes in %v, %v is the least", threads*count*size, took, least)
	}
	f := filled()[0]
	if f.ThrottleSleeps == 0 || f.ThrottleSleeps > threads*count ||
		time.Duration(f.SimulatedWaitNs) < least/2 ||
		f.ThrottleOvershootNs == 0 {
		t.Errorf("%+v", f)
	}
	t.Logf("%v for %v; %d sleeps, %v too long in all", took, least, f.ThrottleSleeps,
		time.Duration(f.ThrottleOvershootNs))
}

// TestSleepInterrupted: signals do not shorten the sleep. A timer of the kernel sends them to the
// sleeping thread: this one blocks without the scheduler's knowledge, which may have no other to
// run a sender on.
func TestSleepInterrupted(t *testing.T) {
	setup(t, "prog", "FAST_LAT=100ms", "THROTTLE=sleep")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	stop := interruptSelf(t, 5*time.Millisecond)
	before := switches(t)
	start := time.Now()
	Wait(fast, 1, raw.Clock(raw.ClockMono))
	d := time.Since(start)
	woken := switches(t) - before
	stop()
	if d < 100*time.Millisecond || woken < 5 {
		t.Errorf("slept %v, woken %d times", d, woken)
	}
	f := filled()[0]
	if f.ThrottleSleeps != 1 || f.SimulatedWaitNs != 100e6 {
		t.Errorf("%+v", f)
	}
}

// interruptSelf has the calling thread get a signal in each period, Go's own, which it expects at
// any time.
func interruptSelf(t *testing.T, period time.Duration) (stop func()) {
	t.Helper()
	const threadID = 4 // SIGEV_THREAD_ID
	event := struct {
		value                  uint64
		signal, notify, thread int32
		_                      [11]int32
	}{signal: int32(syscall.SIGURG), notify: threadID, thread: int32(syscall.Gettid())}
	var timer int32
	_, _, e := syscall.RawSyscall(syscall.SYS_TIMER_CREATE, raw.ClockMono,
		uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer)))
	if e != 0 {
		t.Fatal(e)
	}
	each := syscall.NsecToTimespec(int64(period))
	every := [2]syscall.Timespec{each, each}
	_, _, e = syscall.RawSyscall6(syscall.SYS_TIMER_SETTIME, uintptr(timer), 0,
		uintptr(unsafe.Pointer(&every)), 0, 0, 0)
	if e != 0 {
		t.Fatal(e)
	}
	return func() { syscall.RawSyscall(syscall.SYS_TIMER_DELETE, uintptr(timer), 0, 0) }
}

// switches is how often the calling thread has gone to sleep.
func switches(t *testing.T) int64 {
	t.Helper()
	const thread = 1 // RUSAGE_THREAD
	var usage syscall.Rusage
	if err := syscall.Getrusage(thread, &usage); err != nil {
		t.Fatal(err)
	}
	return usage.Nvcsw
}

// TestMigrateBudget: a step may start when the bytes before it are paid for, on the
// caller's clock.
func TestMigrateBudget(t *testing.T) {
	const ms = 1_000_000
	setup(t, "prog", "MIGRATE_BW=100M")
	now := clock.start + 5*ms
	burst := uintptr(100 << 20 / 100)
	for range 2 {
		for i := range 3 {
			if !MigrateBudget(now) {
				t.Fatalf("no budget when asked %d times", i)
			}
		}
		MigrateCharge(now, burst)
		if !MigrateBudget(now) {
			t.Error("the burst is not free")
		}
		MigrateCharge(now, 100<<20) // a second's worth
		for _, after := range []uint64{0, 1, 999 * ms} {
			if MigrateBudget(now + after) {
				t.Errorf("there is a budget after %d ns", after)
			}
		}
		if !MigrateBudget(now + 1000*ms) {
			t.Error("there is none after a second")
		}
		now += 2000 * ms
	}
	setup(t, "prog", "MIGRATE_BW=0")
	MigrateCharge(clock.start, 1<<40)
	if !MigrateBudget(clock.start) {
		t.Error("no limit is one")
	}
}
