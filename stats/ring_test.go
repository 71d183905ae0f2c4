package stats

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"tieralloc/internal/config"
)

var rung uint32 // the futex of newRing

// newRing makes the ring as it is at the start of a process.
func newRing(t *testing.T) {
	t.Helper()
	events, eventLevel = ring{}, 0
	LogBell(uintptr(unsafe.Pointer(&rung)))
	LogStart(config.LogInfo)
	t.Cleanup(func() { events, eventLevel = ring{}, 0 })
}

func TestRingOrder(t *testing.T) {
	newRing(t)
	var e Event
	next := uint64(0)
	for put := uint64(0); put < 5*ringSlots; {
		for range 1 + put%700 {
			Put1(config.LogInfo, EventPurge, uintptr(put), 7)
			put++
		}
		for ; Take(&e); next++ {
			if e.Kind != EventPurge || e.Args != [6]uint64{next, 7} || e.Tid == 0 || e.UnixNs == 0 {
				t.Fatalf("event %d is %+v", next, e)
			}
		}
		if next != put {
			t.Fatalf("%d events taken of %d", next, put)
		}
	}
	if Dropped() != 0 {
		t.Fatalf("%d events dropped", Dropped())
	}
}

// TestRingFull: the oldest stay, later ones are dropped and counted, and there is
// room again when something was taken.
func TestRingFull(t *testing.T) {
	newRing(t)
	for i := range uintptr(ringSlots + 10) {
		Put1(config.LogInfo, EventSegment, i, 0)
	}
	if Dropped() != 10 {
		t.Fatalf("%d events dropped, not 10", Dropped())
	}
	var e Event
	if !Take(&e) || e.Args[0] != 0 {
		t.Fatalf("the oldest event is %+v", e)
	}
	Put1(config.LogInfo, EventSegment, ringSlots+10, 0)
	for i := uint64(1); i < ringSlots; i++ {
		if !Take(&e) || e.Args[0] != i {
			t.Fatalf("event %d is %+v", i, e)
		}
	}
	if !Take(&e) || e.Args[0] != ringSlots+10 || Take(&e) || Dropped() != 10 {
		t.Fatalf("the last event is %+v; %d dropped", e, Dropped())
	}
}

func TestRingLevels(t *testing.T) {
	newRing(t)
	var e Event
	Put1(config.LogDebug, EventThread, 1, 0)
	if Take(&e) || !Logs(config.LogError) || Logs(config.LogDebug) {
		t.Fatal("an event above the level got in")
	}
	LogStop()
	Put1(config.LogError, EventNoMemory, 1, 0)
	if Take(&e) || Dropped() != 0 {
		t.Fatal("an event got in after LogStop")
	}
}

// TestRingThreads: of each producer's events the consumer gets those that were not
// dropped, in their order.
func TestRingThreads(t *testing.T) {
	const producers, each = 4, 20000
	newRing(t)
	var wg sync.WaitGroup
	var done atomic.Bool
	for p := range uintptr(producers) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range uintptr(each) {
				Put1(config.LogInfo, EventSegment, p, i+1)
			}
		}()
	}
	go func() {
		wg.Wait()
		done.Store(true)
	}()
	var last [producers]uint64
	taken := uint64(0)
	for {
		ended := done.Load() // before Take: what it then misses there never was
		var e Event
		if !Take(&e) {
			if ended {
				break
			}
			runtime.Gosched()
			continue
		}
		taken++
		p, i := e.Args[0], e.Args[1]
		if p >= producers || i <= last[p] || i > each {
			t.Fatalf("event %d of producer %d after %d", i, p, last[p%producers])
		}
		last[p] = i
	}
	if taken+Dropped() != producers*each || taken < ringSlots {
		t.Fatalf("%d taken and %d dropped of %d", taken, Dropped(), producers*each)
	}
}

// TestRest: the reader wakes for an event and for the end, and LogFinish waits for
// it.
func TestRest(t *testing.T) {
	newRing(t)
	got := make(chan uint64, 8)
	go func() {
		var e Event
		for ends := false; !ends; {
			ends = Rest()
			for Take(&e) {
				got <- e.Args[0]
			}
		}
		Finished()
		close(got)
	}()
	Put1(config.LogInfo, EventPurge, 1, 0)
	if v := <-got; v != 1 {
		t.Fatalf("the reader got %d", v)
	}
	Put1(config.LogInfo, EventPurge, 2, 0)
	LogFinish()
	if v, ok := <-got; !ok || v != 2 {
		t.Fatalf("the reader got %d, %v", v, ok)
	}
	if _, ok := <-got; ok || Logs(config.LogError) {
		t.Fatal("logging goes on after LogFinish")
	}
}
