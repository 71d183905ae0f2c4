// Package sysfs reads small text files of the kernel, above all those of memory nodes. It is
// freestanding Go (docs/runtime.md): no allocation, no panic, no runtime.
package sysfs

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// Mounted replaces /sys if it is set. Only tests set it.
var Mounted string

// Path is a file name that is built on the caller's stack.
//
// Invariant: n < len(buf) and buf[n] == 0.
type Path struct {
	n   uintptr
	buf [256]byte
}

const pathMask = 255

// Text appends s. Bytes that do not fit are dropped, and the file is then not found.
func (p *Path) Text(s string) {
	for i := uintptr(0); i < uintptr(len(s)) && p.n < pathMask; i++ {
		p.buf[p.n&pathMask] = raw.LoadByte(raw.Bytes(s) + i)
		p.n++
	}
	p.buf[p.n&pathMask] = 0
}

// Number appends v, which is below 10000, in decimal.
func (p *Path) Number(v uintptr) {
	started := false
	for unit := uintptr(1000); unit > 0; unit /= 10 {
		digit := v / unit % 10
		if digit == 0 && !started && unit > 1 {
			continue
		}
		started = true
		if p.n < pathMask {
			p.buf[p.n&pathMask] = byte('0' + digit)
			p.n++
		}
	}
	p.buf[p.n&pathMask] = 0
}

// Root sets p to the folder where sysfs is mounted.
func (p *Path) Root() {
	p.n = 0
	if Mounted == "" {
		p.Text("/sys")
		return
	}
	p.Text(Mounted)
}

// Nodes sets p to name in the folder of the nodes.
func (p *Path) Nodes(name string) {
	p.Root()
	p.Text("/devices/system/node/")
	p.Text(name)
}

// Node sets p to name in the folder of one node.
func (p *Path) Node(node uintptr, name string) {
	p.Nodes("node")
	p.Number(node)
	p.Text(name)
}

// Open opens the file for reading.
func (p *Path) Open(flags uintptr) (fd uintptr, ok bool) {
	const at = raw.AtFdCwd
	fd, errno := raw.Sys(syscall.SYS_OPENAT, at, uintptr(unsafe.Pointer(&p.buf)),
		flags|syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	return fd, errno == 0
}

// File reads a text file byte by byte, so that its length does not matter.
//
//	0 ≤ at ≤ n ≤ len(buf): the bytes at..n are read and not yet looked at
type File struct {
	fd, at, n uintptr
	bad       bool // Span found a text that is not a list
	buf       [256]byte
}

const fileMask = 255

// Open opens the file at p. If it reports true the caller closes it.
func (f *File) Open(p *Path) bool {
	f.at, f.n, f.bad = 0, 0, false
	fd, ok := p.Open(0)
	f.fd = fd
	return ok
}

// Close closes a file that is open.
func (f *File) Close() { CloseFd(f.fd) }

// CloseFd closes a file descriptor.
func CloseFd(fd uintptr) { raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0) }

// peek returns the next byte; 0 at the end, or if the file cannot be read.
func (f *File) peek() byte {
	if f.at >= f.n {
		n, errno := raw.Sys(syscall.SYS_READ, f.fd, uintptr(unsafe.Pointer(&f.buf)), fileMask+1, 0,
			0, 0)
		if errno != 0 || n > fileMask+1 {
			n = 0
		}
		f.at, f.n = 0, n
		if n == 0 {
			return 0
		}
	}
	return f.buf[f.at&fileMask]
}

// skip skips the byte that peek returns.
func (f *File) skip() { f.at++ }

// Blanks skips spaces and tabs.
func (f *File) Blanks() {
	for f.peek() == ' ' || f.peek() == '\t' {
		f.skip()
	}
}

// ended reports whether the text or the line ends here.
func (f *File) ended() bool { return f.peek() == '\n' || f.peek() == 0 }

// Number reads a decimal number. It returns most for a number above most. Precondition: most <
// 2^63/10.
func (f *File) Number(most uint64) (v uint64, ok bool) {
	for {
		d := uint64(f.peek()) - '0'
		if d > 9 {
			return v, ok
		}
		ok = true
		v = min(v*10+d, most)
		f.skip()
	}
}

// Span reads the next range of a list such as "0-3,8", and the comma after it. It reports false at
// the end of the list, and sets bad if that is not the end of the text.
func (f *File) Span() (low, high uint64, ok bool) {
	const most = 1 << 20 // far above the kernel's limits for nodes and processors
	low, ok = f.Number(most)
	if !ok {
		f.bad = !f.ended()
		return 0, 0, false
	}
	high = low
	if f.peek() == '-' {
		f.skip()
		high, ok = f.Number(most)
	}
	if f.peek() == ',' {
		f.skip()
	} else if !f.ended() {
		ok = false
	}
	f.bad = !ok || high < low
	return low, high, !f.bad
}

// Nodes reads a list as a set of nodes. beyond says that it has a node above 63. If the text is not
// a list it reports false and returns the empty set.
func (f *File) Nodes() (set uint64, beyond, ok bool) {
	for {
		low, high, more := f.Span()
		if !more {
			break
		}
		beyond = beyond || high > 63
		for n := low; n <= min(high, 63); n++ {
			set |= 1 << (n & 63)
		}
	}
	if f.bad {
		return 0, false, false
	}
	return set, beyond, true
}

// NodeSet is Nodes for the file at p.
func NodeSet(p *Path) (set uint64, beyond, ok bool) {
	var f File
	if !f.Open(p) {
		return 0, false, false
	}
	set, beyond, ok = f.Nodes()
	f.Close()
	return set, beyond, ok
}

// Figure returns the number in the file at p, 0 if there is none.
func Figure(p *Path) uint32 {
	var f File
	if !f.Open(p) {
		return 0
	}
	v, ok := f.Number(1<<32 - 1)
	if !ok || !f.ended() {
		v = 0
	}
	f.Close()
	return uint32(v)
}
