// Command cgoprog is a Go program with C blocks: many goroutines, collections,
// threads that come and go, and signals.
package main

/*
#include <stdlib.h>
#include <string.h>
static void touch(void *p, size_t n) { memset(p, 0x5a, n); }
*/
import "C"

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"unsafe"
)

func worker(seed uint32, garbage *[]byte) int {
	if seed%4 == 0 { // the thread ends with its goroutine
		runtime.LockOSThread()
	}
	x, bad := seed, 0
	var blocks [50]unsafe.Pointer
	var sizes [50]int
	for i := range 4000 {
		x = x*1664525 + 1013904223
		k := int(x>>8) % 50
		if p := blocks[k]; p != nil {
			if b := unsafe.Slice((*byte)(p), sizes[k]); b[0] != 0x5a || b[len(b)-1] != 0x5a {
				bad++
			}
			C.free(p)
		}
		n := 1 + int(x>>16)%5000
		blocks[k], sizes[k] = C.malloc(C.size_t(n)), n
		C.touch(blocks[k], C.size_t(n))
		*garbage = make([]byte, n)
		if i%1000 == 0 {
			runtime.GC()
		}
	}
	for _, p := range blocks {
		C.free(p)
	}
	return bad
}

func fault() (caught bool) {
	defer func() { caught = recover() != nil }()
	var p *int
	*p = 1
	return false
}

func main() {
	var wg sync.WaitGroup
	var mu sync.Mutex
	bad := 0
	for i := range 24 {
		wg.Go(func() {
			var garbage []byte
			b := worker(uint32(i), &garbage)
			mu.Lock()
			bad += b
			mu.Unlock()
		})
	}
	wg.Wait()
	out, err := exec.Command("/bin/echo", "child").Output()
	fmt.Printf("bad %d, fault caught %v, %q, %v\n", bad, fault(), out, err)
	if bad != 0 {
		os.Exit(1)
	}
}
