package profile

import (
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"unsafe"

	"tieralloc/internal/raw"
	"tieralloc/internal/unwind"
)

// TestThreads: threads sample and free blocks of the same stacks at once, some of each other's,
// while another reads the table. In what it reads the sites have what their samples have, and
// nothing is lost.
func TestThreads(tt *testing.T) {
	const threads, rounds, stacks, size = 8, 3000, 5, 1 << 30
	newTable(tt)
	procs := runtime.GOMAXPROCS(threads + 4) // Go's scheduler does not know of waits for a lock
	percent := debug.SetGCPercent(-1)
	defer func() {
		runtime.GOMAXPROCS(procs)
		debug.SetGCPercent(percent)
	}()
	missed, lost := Missed, Lost
	var wg, reader sync.WaitGroup
	done := make(chan bool)
	reads := 0
	read := func() {
		if !Hold(8*(threads+1), true) {
			tt.Error("the table is not given")
			return
		}
		defer Release()
		Settle(1)
		var blocks [stacks]float64
		for e, at := t.samples.next(place{}); e != nil; e, at = t.samples.next(at) {
			blocks[e.site()]++
		}
		sum, peak := 0.0, 0.0
		for i, n := range blocks {
			s, d := &t.sites[i], &t.spreads[i]
			if d.live() != n || s.liveBytes() != n*size {
				tt.Errorf("site %d has %.0f blocks in use, %.0f bytes, not %.0f blocks", i,
					d.live(), s.liveBytes(), n)
			}
			sum += s.liveBytes()
			peak += s.Peak
		}
		if t.live[0] != sum || t.peak[0] != peak || peak < sum {
			tt.Errorf("in use are %.0f bytes, by sites %.0f; the peak is %.0f, by sites %.0f",
				t.live[0], sum, t.peak[0], peak)
		}
		reads++
	}
	reader.Add(1)
	go func() {
		defer reader.Done()
		for {
			read()
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	given := make([]chan uintptr, threads)
	for i := range given {
		given[i] = make(chan uintptr, rounds)
	}
	for i := range uintptr(threads) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			token := 8 * (i + 1)
			walk := (*unwind.Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(unwind.Stack{}))))
			walk.N = 3
			for n := range uintptr(rounds) {
				for k := range walk.N {
					walk.Frame[k].PC = 1000 + 10*k + n%stacks
				}
				addr := (n*threads + i + 1) << 12
				Note(token, true, &Block{Addr: addr, Size: size}, walk, 0)
				given[(i+n)%threads] <- addr
				if n%4 != 0 {
					select {
					case addr = <-given[i]:
						Freed(token, addr, true)
					default:
					}
				}
			}
		}()
	}
	wg.Wait()
	close(done)
	reader.Wait()
	for _, c := range given {
		close(c)
		for addr := range c {
			Freed(8, addr, true)
		}
	}
	read()
	all := 0.0
	for i := range t.spreads[:stacks] {
		all += t.spreads[i].size.sum
	}
	if all != threads*rounds || sampled() != 0 || t.siteN != stacks || t.live[0] != 0 ||
		Missed != missed || Lost != lost || reads < 2 {
		tt.Errorf("%.0f blocks of %d sites, %d not freed; %d missed, %d lost; %d reads", all,
			t.siteN, sampled(), Missed-missed, Lost-lost, reads)
	}
}

// TestInterrupted: a signal handler that interrupted a thread which has a lock of the table gets
// its other locks where they are free, and waits for none.
func TestInterrupted(tt *testing.T) {
	newTable(tt)
	const me, other = 8, 16
	walk := (*unwind.Stack)(raw.Ptr(raw.Map(unsafe.Sizeof(unwind.Stack{}))))
	walk.N, walk.Frame[0].PC = 1, 1000
	for i := range uintptr(lockCount) {
		for k := range uintptr(lockCount) {
			if i == k {
				continue
			}
			missed := Missed
			t.lockAt(i).Take(me)
			t.lockAt(k).Take(other)
			for n := range uintptr(100) { // of all parts
				walk.Frame[0].PC++ // a site that is not known
				Note(me, true, &Block{Addr: (n + 1) << 12, Size: 1 << 30}, walk, 0)
			}
			if Hold(me, true) || !Holds(me) || Missed == missed {
				tt.Fatalf("with lock %d, and lock %d of another: missed %d", i, k, Missed-missed)
			}
			t.lockAt(k).Release()
			t.lockAt(i).Release()
			if Holds(me) || Holds(other) {
				tt.Fatal("a lock is held")
			}
		}
	}
}
