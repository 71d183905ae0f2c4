package group

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"
)

// TestHostile: a process of the same user that writes anything into the page makes the caps
// meaningless, but no member crashes, and all come to their end.
func TestHostile(t *testing.T) {
	path := newPath(t)
	f, err := os.Create(filepath.Join(t.TempDir(), "board"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := mapBoard(f)
	start(t, path, Uncapped, stormCap, 0) // makes the group, and stays
	p := pageAt(t, path)
	var stop atomic.Bool
	written := make(chan int)
	go func() {
		words := unsafe.Slice((*uint64)(unsafe.Pointer(p)), Size/8)
		rng := rand.New(rand.NewPCG(3, 4))
		n := 0
		for ; !stop.Load(); n++ {
			i := rng.IntN(len(words))
			if n%2 == 0 { // where it matters most: the head, or the first slots
				i = rng.IntN(int(unsafe.Offsetof(p.Slots)+10*unsafe.Sizeof(Member{})) / 8)
			}
			if i < 2 { // nobody would join
				continue
			}
			atomic.StoreUint64(&words[i], rng.Uint64()>>rng.IntN(64))
		}
		written <- n
	}()
	ended := make(chan error)
	for n := range 6 {
		cmd := role(t, "storm", path, f.Name(), fmt.Sprint(n), "20000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		go func() { ended <- cmd.Wait() }()
	}
	for range 6 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	stop.Store(true)
	for n, steps := range b.done[:6] {
		if steps != 20000 {
			t.Errorf("process %d made %d steps", n, steps)
		}
	}
	t.Log(<-written, "words written")
}
