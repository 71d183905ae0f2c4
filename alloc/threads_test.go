package alloc

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"tieralloc/alloc/sizeclass"
	"tieralloc/internal/raw"
)

const (
	passingThreads = 4
	passingTime    = 1200 * time.Millisecond
)

// passingThread is one of several threads that hand blocks on to the next.
type passingThread struct {
	thread
	in, out chan uintptr
	state   uint64 // of a small random generator
	err     error
	passed  uint64
}

// TestThreads lets four threads pass blocks round, so that most are freed by
// another thread than the one that allocated them, while threads end, others
// adopt their heaps, memory is purged and reports are made. At the end not a block
// may be missing.
func TestThreads(t *testing.T) {
	t.Run("plain", func(t *testing.T) { newWorld(t); passRound(t) })
	t.Run("crowded", func(t *testing.T) { crowdedWorld(t); passRound(t) })
	t.Run("secure", func(t *testing.T) { hardWorld(t); passRound(t) })
}

func passRound(t *testing.T) {
	PurgeDelay = 5e6
	schedulerAside(t)
	var stop atomic.Bool
	var wg sync.WaitGroup
	threads := make([]*passingThread, passingThreads)
	for i := range threads {
		threads[i] = &passingThread{out: make(chan uintptr, 256), state: uint64(i + 1)}
	}
	for i, r := range threads {
		r.in = threads[(i+1)%passingThreads].out
		wg.Add(1)
		go func() {
			defer wg.Done()
			runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
			r.run(&stop)
		}()
	}
	time.Sleep(passingTime)
	stop.Store(true)
	wg.Wait()
	passed := uint64(0)
	for i, r := range threads {
		if r.err != nil {
			t.Errorf("thread %d: %v", i, r.err)
		}
		passed += r.passed
	}
	t.Logf("%d blocks passed on", passed)
	if !t.Failed() {
		checkPassing(t, threads)
	}
}

// schedulerAside lets threads wait for each other in raw.Lock, of which Go's
// scheduler knows nothing: a goroutine that waits there keeps its processor and
// does not stop for a collection. So each has a processor, and there are no
// collections.
func schedulerAside(t *testing.T) {
	procs := runtime.GOMAXPROCS(2*passingThreads + 2)
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() {
		debug.SetGCPercent(percent)
		runtime.GOMAXPROCS(procs)
	})
}

// checkPassing frees what is still under way and looks for a trace of anything.
func checkPassing(t *testing.T, threads []*passingThread) {
	last := &thread{h: mustAcquire(t, 8), token: 8,
		now: func() uint64 { return raw.Clock(raw.ClockMono) }}
	for _, r := range threads {
		close(r.out)
		for b := range r.out {
			if why := last.free(b); why != FreeOK {
				t.Fatalf("free of %#x says %d", b, why)
			}
		}
	}
	v, err := inspected()
	if err != nil {
		t.Fatal(err)
	}
	if err := v.counts(filled(8), new([sizeclass.Count]uint64), 0, 0); err != nil {
		t.Fatal(err)
	}
	last.enter()
	Trim(last.h)
	if err := inspect(); err != nil {
		t.Fatal(err)
	}
	if pool.usedBytes != 0 || pool.count.committed != 0 {
		t.Fatalf("%d bytes are in use, %d committed", pool.usedBytes, pool.count.committed)
	}
}

func (r *passingThread) random(n uint64) uint64 {
	r.state = r.state*6364136223846793005 + 1442695040888963407
	return r.state >> 33 % n
}

// run is a thread's life: it is born and ends several times over.
func (r *passingThread) run(stop *atomic.Bool) {
	r.token = uintptr(unsafe.Pointer(r))
	r.now = func() uint64 { return raw.Clock(raw.ClockMono) }
	for !stop.Load() && r.err == nil {
		if r.h = Acquire(r.token); r.h == nil {
			r.err = fmt.Errorf("no heap")
			return
		}
		for range 100 + r.random(200) {
			r.turn()
		}
		switch r.random(8) {
		case 0:
			Trim(r.enter())
		case 1:
			filled(r.token)
		}
		Abandon(r.enter())
	}
}

// turn makes some blocks, passes most of them on and frees what comes round.
func (r *passingThread) turn() {
	n := uintptr(r.random(1 << (4 + r.random(11))))
	if r.random(512) == 0 {
		n = 1<<20 + uintptr(r.random(5<<20))
	}
	for range 1 + r.random(64) {
		b, zero := r.malloc(n)
		if b == 0 || zero && notZero(b, min(usable(b), raw.Page)) != 0 {
			r.err = fmt.Errorf("malloc of %d bytes gave %#x, zero: %v", n, b, zero)
			return
		}
		if usable(b) >= 8 {
			raw.Store(b, b)
			raw.Store(b+usable(b)&^7-8, b)
		}
		if n > sizeclass.MaxSize/4 || !r.pass(b) {
			r.drop(b)
		}
	}
	for range 1 + r.random(64) {
		select {
		case b := <-r.in:
			r.drop(b)
		default:
			return
		}
	}
}

func (r *passingThread) pass(b uintptr) bool {
	select {
	case r.out <- b:
		r.passed++
		return true
	default:
		return false
	}
}

// drop frees a block after a look at what its maker wrote.
func (r *passingThread) drop(b uintptr) {
	if n := usable(b); n >= 8 && (raw.Load(b) != b || raw.Load(b+usable(b)&^7-8) != b) {
		r.err = fmt.Errorf("block %#x was overwritten", b)
	} else if why := r.free(b); why != FreeOK {
		r.err = fmt.Errorf("free of %#x says %d", b, why)
	}
}
