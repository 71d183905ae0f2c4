package group

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"
)

// The board of a storm is a file that its processes and its judge map. Each process writes there
// what it has, after it was told that it may and before it gives it back.
type board struct {
	has     [boardSize]uint64 // bytes
	doomed  [boardSize]uint64 // 1: the judge kills it; its bytes no longer count
	done    [boardSize]uint64 // reservations
	joined  [boardSize]uint64 // ns that joining took
	refused [boardSize]uint64
}

const (
	boardSize = 4096
	stormCap  = 16 * mib
)

func mapBoard(f *os.File) *board {
	size := unsafe.Sizeof(board{})
	if err := f.Truncate(int64(size)); err != nil {
		panic(err)
	}
	data, err := syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_SHARED)
	if err != nil {
		panic(err)
	}
	return (*board)(unsafe.Pointer(unsafe.SliceData(data)))
}

// storm is a process of the storm: two threads that reserve and give back, at random.
func storm() {
	f, err := os.OpenFile(os.Args[2], os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	b := mapBoard(f)
	n, _ := strconv.Atoi(os.Args[3])
	rounds, _ := strconv.Atoi(os.Args[4])
	begin := time.Now()
	if errno := joinAt(os.Args[1], Uncapped, stormCap, 0); errno != 0 {
		panic(errno)
	}
	atomic.StoreUint64(&b.joined[n], uint64(time.Since(begin)))
	var threads sync.WaitGroup
	for thread := range 2 {
		threads.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(n), uint64(thread)))
			var mine []uint64
			for range rounds / 2 {
				size := uint64(4096) << rng.IntN(12)
				if len(mine) > 0 && (len(mine) > 8 || rng.IntN(2) == 0) {
					last := mine[len(mine)-1]
					mine = mine[:len(mine)-1]
					atomic.AddUint64(&b.has[n], -last)
					Release(0, uintptr(last))
				} else if Charge(0, uintptr(size)) {
					atomic.AddUint64(&b.has[n], size)
					mine = append(mine, size)
				} else {
					atomic.AddUint64(&b.refused[n], 1)
				}
				atomic.AddUint64(&b.done[n], 1)
			}
			for _, size := range mine {
				atomic.AddUint64(&b.has[n], -size)
				Release(0, uintptr(size))
			}
		})
	}
	threads.Wait()
}

// TestStorm: many processes reserve at once, some are killed and others started in their place. At
// no time do those that live have more than the cap together, and at the end all is back.
//
// TIERALLOC_STORM=PROCESSES,RESERVATIONS sets another size than the usual one.
func TestStorm(t *testing.T) {
	processes, rounds := 12, 20_000
	if size := os.Getenv("TIERALLOC_STORM"); size != "" {
		if _, err := fmt.Sscanf(size, "%d,%d", &processes, &rounds); err != nil {
			t.Fatal(err)
		}
	}
	path := newPath(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "board"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := mapBoard(f)
	over := watchSum(t, b)
	kills, next := 3*processes, 0
	type running struct {
		cmd *exec.Cmd
		n   int
	}
	ended := make(chan running)
	begin := func() {
		r := running{role(t, "storm", path, f.Name(), fmt.Sprint(next), fmt.Sprint(rounds)), next}
		next++
		if err := r.cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() {
			if err := r.cmd.Wait(); err != nil && atomic.LoadUint64(&b.doomed[r.n]) == 0 {
				t.Errorf("process %d: %v", r.n, err)
			}
			ended <- r
		}()
		if next%4 == 0 && kills > 0 { // each fourth dies at some point of its work
			kills--
			after := uint64(rand.IntN(rounds))
			go func() {
				for atomic.LoadUint64(&b.done[r.n]) < after && r.cmd.ProcessState == nil {
					time.Sleep(time.Millisecond)
				}
				atomic.StoreUint64(&b.doomed[r.n], 1)
				r.cmd.Process.Kill()
			}()
		}
	}
	for range processes {
		begin()
	}
	for left := processes; left > 0; {
		r := <-ended
		left--
		if atomic.LoadUint64(&b.doomed[r.n]) != 0 && next < boardSize {
			begin()
			left++
		}
	}
	sums, most := over()
	a := start(t, path, Uncapped, stormCap, 0)
	a.want("true", "charge %d", stormCap)
	report(t, b, next, sums, most)
}

// watchSum adds up what all living processes have, again and again. The function that it returns
// ends that, and returns how many sums there were and the largest.
func watchSum(t *testing.T, b *board) func() (sums int, most uint64) {
	var stop atomic.Bool
	var most uint64
	sums, done := 0, make(chan bool)
	go func() {
		for ; !stop.Load(); sums++ {
			sum := uint64(0)
			for i := range b.has {
				if has := atomic.LoadUint64(&b.has[i]); atomic.LoadUint64(&b.doomed[i]) == 0 {
					sum += has
				}
			}
			if most = max(most, sum); sum > stormCap {
				t.Errorf("%d bytes reserved, the cap is %d", sum, uint64(stormCap))
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		close(done)
	}()
	return func() (int, uint64) {
		stop.Store(true)
		<-done
		return sums, most
	}
}

// report says what happened, and fails where the storm was none.
func report(t *testing.T, b *board, processes, sums int, most uint64) {
	t.Helper()
	var joins []uint64
	killed, done, refused := uint64(0), uint64(0), uint64(0)
	for i := range processes {
		killed += b.doomed[i]
		done += b.done[i]
		refused += b.refused[i]
		if b.joined[i] != 0 {
			joins = append(joins, b.joined[i])
		}
	}
	slices.Sort(joins)
	t.Logf("%d processes, %d killed, %d steps, %d refused; %d sums, the largest %d MiB of %d; "+
		"join p95 %v", processes, killed, done, refused, sums, most>>20, stormCap>>20,
		time.Duration(joins[len(joins)*95/100]))
	if killed == 0 || refused == 0 {
		t.Error("no storm")
	}
}
