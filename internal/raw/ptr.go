// Package raw is the lowest layer of the data plane: pointer arithmetic, system calls, a futex lock
// and the fatal exit.
//
// Everything here is freestanding Go: it runs on threads that the Go runtime does not know, usually
// without a started runtime. It must not allocate, panic, grow the stack, or touch thread-local
// storage. tests/verify checks that on the compiled library.
package raw

import (
	"runtime/cgo"
	"unsafe"
)

// OffHeap marks a structure that lives in mapped memory. A type that embeds it
// cannot be made with new, and the compiler emits no write barrier for pointers
// to it.
type OffHeap = cgo.Incomplete

// Ptr converts an address to a pointer. It is the only place that does. Address 0 gives nil. (With
// unsafe.Add the compiler would assume a result other than nil and drop tests for nil.)
func Ptr(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }

// Load reads the word at addr.
func Load(addr uintptr) uintptr { return *(*uintptr)(Ptr(addr)) }

// Store writes the word at addr.
func Store(addr, v uintptr) { *(*uintptr)(Ptr(addr)) = v }

// LoadByte reads the byte at addr.
func LoadByte(addr uintptr) byte { return *(*byte)(Ptr(addr)) }

// StoreByte writes the byte at addr.
func StoreByte(addr uintptr, b byte) { *(*byte)(Ptr(addr)) = b }

// Bytes returns the address of a string's first byte. The length is len(s).
func Bytes(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s))) }

// RoundUp rounds n up to a multiple of align, a power of two. It wraps to a
// small number when n is within align of the top of the address space.
func RoundUp(n, align uintptr) uintptr { return (n + align - 1) &^ (align - 1) }
