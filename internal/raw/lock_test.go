package raw

import (
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const lockThreads = 8

// lockAside lets goroutines wait in a Lock. Go's scheduler does not know of that: a goroutine that
// waits there keeps its processor and does not stop for a collection.
func lockAside(t *testing.T) {
	procs := runtime.GOMAXPROCS(lockThreads + 4)
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(procs)
	})
}

// TestLockExcludes has threads add to a plain number, some of them slowly, so that
// others wait asleep.
func TestLockExcludes(t *testing.T) {
	const rounds = 4000
	lockAside(t)
	var l Lock
	var inside atomic.Int32
	var wg sync.WaitGroup
	sum := 0
	for i := range uintptr(lockThreads) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			token := 8 * (i + 1)
			for n := range rounds {
				if !l.Take(token) {
					t.Errorf("Take by %d says that it holds the lock", token)
					return
				}
				if inside.Add(1) != 1 || !l.HeldBy(token) || l.HeldBy(token+8) {
					t.Errorf("the lock is not held by %d alone", token)
				}
				sum++
				if n%500 == 0 {
					time.Sleep(100 * time.Microsecond)
				}
				inside.Add(-1)
				l.Release()
			}
		}()
	}
	wg.Wait()
	if sum != lockThreads*rounds || l.Held() {
		t.Fatalf("counted %d of %d; held: %v", sum, lockThreads*rounds, l.Held())
	}
}

func TestLockKnowsItsHolder(t *testing.T) {
	var l Lock
	if l.Held() || l.HeldBy(8) {
		t.Fatal("a new lock is held")
	}
	if !l.Take(8) || !l.Held() || !l.HeldBy(8) || l.HeldBy(16) {
		t.Fatal("the lock is not held by its holder alone")
	}
	if l.Take(8) {
		t.Fatal("the holder took the lock twice")
	}
	l.Release()
	if l.Held() || !l.Take(16) {
		t.Fatal("the lock was not let go")
	}
}

func TestLockReset(t *testing.T) {
	var l Lock
	l.Take(8)
	l.word |= lockContended
	if !l.HeldBy(8) || l.Take(8) {
		t.Fatal("with a waiter the holder is not known")
	}
	l.Reset()
	if l.Held() || !l.Take(16) || !l.HeldBy(16) {
		t.Fatal("the lock is not as new")
	}
}

func TestLockSuspended(t *testing.T) {
	var l Lock
	l.Take(8)
	l.Suspend()
	if !l.HeldBy(8) || l.Take(8) || l.Take(16) {
		t.Fatal("a suspended lock was taken")
	}
	l.Release()
	if l.Held() || !l.Take(16) {
		t.Fatal("the lock was not let go")
	}
}

// TestWaitFor: it wakes when told to, and by itself.
func TestWaitFor(t *testing.T) {
	lockAside(t)
	var w uint32
	WaitFor(&w, 1, 900e6) // not the value: no wait
	start := time.Now()
	WaitFor(&w, 0, 2e6)
	if d := time.Since(start); d > time.Second {
		t.Errorf("a wait for 2 ms took %v", d)
	}
	go func() {
		time.Sleep(5 * time.Millisecond)
		atomic.StoreUint32(&w, 1)
		Wake(&w)
	}()
	for atomic.LoadUint32(&w) == 0 {
		WaitFor(&w, 0, 900e6)
	}
}

// TestLostWake: a waiter gets a free lock even if nobody wakes it, as when a signal handler has
// interrupted Release before the wake-up and does not return.
func TestLostWake(t *testing.T) {
	lockAside(t)
	var l Lock
	l.Take(8)
	got := make(chan bool)
	go func() {
		runtime.LockOSThread() // and leave it locked, so that the thread ends with the goroutine
		all := unix.Sigset_t{}
		for i := range all.Val {
			all.Val[i] = ^uint64(0) // Go's scheduler would wake it by a signal
		}
		if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, nil); err != nil {
			t.Error(err)
		}
		got <- l.Take(16)
	}()
	for atomic.LoadUintptr(&l.word) != 8|lockContended {
		time.Sleep(time.Millisecond)
	}
	time.Sleep(10 * time.Millisecond) // by now it sleeps
	atomic.StoreUintptr(&l.word, 0)
	select {
	case ok := <-got:
		if !ok || !l.HeldBy(16) {
			t.Errorf("Take reported %v; the lock is %#x", ok, l.word)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the waiter sleeps for good")
	}
}
