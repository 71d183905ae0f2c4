package profile

import (
	"sync/atomic"
	"unsafe"
)

// These functions change numbers that other threads change, too. That they are not inlined keeps
// the library small.

//go:noinline
func add(p *float64, v float64) {
	for at := (*uint64)(unsafe.Pointer(p)); ; {
		old := atomic.LoadUint64(at)
		sum := *(*float64)(unsafe.Pointer(&old)) + v
		if atomic.CompareAndSwapUint64(at, old, *(*uint64)(unsafe.Pointer(&sum))) {
			return
		}
	}
}

//go:noinline
func add32(p *float32, v float32) {
	for at := (*uint32)(unsafe.Pointer(p)); ; {
		old := atomic.LoadUint32(at)
		sum := *(*float32)(unsafe.Pointer(&old)) + v
		if atomic.CompareAndSwapUint32(at, old, *(*uint32)(unsafe.Pointer(&sum))) {
			return
		}
	}
}

// raise makes a number at least v.
//
//go:noinline
func raise(p *uint64, v uint64) {
	for {
		old := atomic.LoadUint64(p)
		if v <= old || atomic.CompareAndSwapUint64(p, old, v) {
			return
		}
	}
}

func load(p *float64) float64 {
	v := atomic.LoadUint64((*uint64)(unsafe.Pointer(p)))
	return *(*float64)(unsafe.Pointer(&v))
}

func store(p *float64, v float64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(p)), *(*uint64)(unsafe.Pointer(&v)))
}
