// Package interpose is the boundary between the host program and the library: the C symbols, the
// gate into freestanding Go, thread-local state, fork and exit, and the fast paths of malloc and
// free. It holds the only C and assembly. The first word of a file's name tells its part:
//
//	boot_*     constructor, threads, fork, exit, the gate, the dormant runtime
//	libc_*     malloc and its family, C++ operators, calls that pass on to libc
//	cuda_*     the functions of the CUDA driver and runtime
//	manager_*  memory managers of devices
//	api_*      the functions of tieralloc.h
//	heap.h     the fast paths
//
// To follow a malloc, begin in heap.h with ta_malloc_fast. If that finds no block, libc_malloc.c
// calls package alloc through the gate (exports.go, boot_gate_amd64.S).
//
// The linker's --wrap redirects calls of cgo to this package: crosscall2 to the gate
// (boot_gate_amd64.S); _cgo_wait_runtime_init_done, _cgo_release_context, pthread_create and
// x_cgo_sigaction to boot_dormant.c; x_cgo_mmap, x_cgo_munmap and x_cgo_thread_start to
// boot_gomem.c.
package interpose

// #cgo CFLAGS: -std=gnu11 -O2 -fno-stack-protector -Wall -Wextra -Wno-unused-parameter
// #cgo CFLAGS: -fvisibility=hidden -fno-builtin-malloc
// #cgo CFLAGS: -fno-builtin-calloc -fno-builtin-realloc -fno-builtin-free
// #cgo lockrank CFLAGS: -DTA_LOCKRANK
// #cgo LDFLAGS: -Wl,--wrap=crosscall2 -Wl,--wrap=_cgo_wait_runtime_init_done
// #cgo LDFLAGS: -Wl,--wrap=_cgo_release_context -Wl,--wrap=pthread_create -Wl,--wrap=x_cgo_mmap
// #cgo LDFLAGS: -Wl,--wrap=x_cgo_munmap -Wl,--wrap=x_cgo_thread_start -Wl,--wrap=x_cgo_init
// #cgo LDFLAGS: -Wl,--wrap=x_cgo_sigaction
// #include "layout.h"
// #include "boot.h"
import "C"

import (
	"runtime"
	"time"
	"unsafe"

	"tieralloc/alloc"
	"tieralloc/stats/profile"
)

type (
	page    = alloc.Page
	heap    = alloc.Heap
	cPage   = C.struct_ta_page
	cHeap   = C.struct_ta_heap
	cThread = C.struct_ta_thread
)

// The C fast path uses the offsets of the Go compiler. If one differs, the program does not
// compile, because an array of one length does not convert to an array of another.
var (
	_ [unsafe.Sizeof(cPage{})]byte           = [unsafe.Sizeof(*(*page)(nil))]byte{}
	_ [unsafe.Offsetof(cPage{}.Free)]byte    = [unsafe.Offsetof((*page)(nil).Free)]byte{}
	_ [unsafe.Offsetof(cPage{}.Trigger)]byte = [unsafe.Offsetof((*page)(nil).Trigger)]byte{}
	_ [unsafe.Offsetof(cPage{}.Remote)]byte  = [unsafe.Offsetof((*page)(nil).Remote)]byte{}
	_ [unsafe.Offsetof(cHeap{}.Cur)]byte     = [unsafe.Offsetof((*heap)(nil).Cur)]byte{}
	_ [unsafe.Offsetof(cHeap{}.Thread)]byte  = [unsafe.Offsetof((*heap)(nil).Thread)]byte{}
	_ [unsafe.Offsetof(cThread{}.Now)]byte   = [unsafe.Offsetof((*alloc.Thread)(nil).Now)]byte{}
)

// RuntimeReady lets the host go on, when the Go runtime has started.
func RuntimeReady() { C.ta_runtime_ready() }

// Service does the work that is due in the heap, and reports whether to call it again at once. It
// is the gate's way in for a goroutine: under the heap's locks there must be no Go
// scheduler, which could stop the one that holds a lock while it waits for a thread
// that wants it.
func Service() (more bool) { return C.ta_service() != 0 }

// Survey lists regions of the heap as alloc.SurveyNext does, and returns how many.
func Survey(s *alloc.Survey) int {
	n := C.ta_survey(C.uintptr_t(uintptr(unsafe.Pointer(s))))
	runtime.KeepAlive(s)
	return int(n)
}

// Follow moves a region to a tier, and returns an answer of alloc.Follow.
func Follow(r *alloc.Region, tier uint32) int {
	return int(C.ta_follow(C.uintptr_t(r.Block), C.uintptr_t(r.Start), C.uintptr_t(r.Bytes),
		C.uintptr_t(tier)))
}

// Distinguish makes a region a mapping of its own, as alloc.Distinguish does.
func Distinguish(r *alloc.Region, plain bool) bool {
	flag := C.int(0)
	if plain {
		flag = 1
	}
	return C.ta_distinguish(C.uintptr_t(r.Block), C.uintptr_t(r.Start), C.uintptr_t(r.Bytes),
		flag) != 0
}

// Heat has the heap profile note the heat of the regions, in the order of their addresses, in the
// time since it was told last.
func Heat(regions []profile.Region, elapsed time.Duration) {
	C.ta_heat(C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(regions)))),
		C.uintptr_t(len(regions)), C.uintptr_t(elapsed))
	runtime.KeepAlive(regions)
}

// ControlFails ends the control plane, with one line, when it cannot get what it needs.
func ControlFails() { C.ta_control_fails() }
