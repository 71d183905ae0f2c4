package numa

import (
	"syscall"
	"unsafe"

	"tieralloc/internal/raw"
)

// Sysfs is where it is mounted, where that is not /sys. Only tests set it.
var Sysfs string

// path is a file name that is put together on the caller's stack.
//
// Invariant: n < len(buf) and buf[n] == 0.
type path struct {
	n   uintptr
	buf [256]byte
}

const pathMask = 255

// text appends s; what does not fit is dropped, and the file is then not found.
func (p *path) text(s string) {
	for i := uintptr(0); i < uintptr(len(s)) && p.n < pathMask; i++ {
		p.buf[p.n&pathMask] = raw.LoadByte(raw.Bytes(s) + i)
		p.n++
	}
	p.buf[p.n&pathMask] = 0
}

// number appends v, which is below 10000, in decimal.
func (p *path) number(v uintptr) {
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

// root makes p the folder where sysfs is mounted.
func (p *path) root() {
	p.n = 0
	if Sysfs == "" {
		p.text("/sys")
		return
	}
	p.text(Sysfs)
}

// nodes makes p the folder of the nodes, with name below it.
func (p *path) nodes(name string) {
	p.root()
	p.text("/devices/system/node/")
	p.text(name)
}

// node makes p the folder of one node, with name below it.
func (p *path) node(node uintptr, name string) {
	p.nodes("node")
	p.number(node)
	p.text(name)
}

// open opens the file for reading.
func (p *path) open(flags uintptr) (fd uintptr, ok bool) {
	const at = raw.AtFdCwd
	fd, errno := raw.Sys(syscall.SYS_OPENAT, at, uintptr(unsafe.Pointer(&p.buf)),
		flags|syscall.O_RDONLY|syscall.O_CLOEXEC, 0, 0, 0)
	return fd, errno == 0
}

// file reads a text of sysfs byte by byte, so that its length does not matter.
//
//	0 ≤ at ≤ n ≤ len(buf): the bytes at..n are read and not yet looked at
type file struct {
	fd, at, n uintptr
	bad       bool // span met what is no list
	buf       [256]byte
}

const fileMask = 255

// open opens the file at p. The caller closes it when open reports true.
func (f *file) open(p *path) bool {
	f.at, f.n, f.bad = 0, 0, false
	fd, ok := p.open(0)
	f.fd = fd
	return ok
}

func (f *file) close() { closeFd(f.fd) }

func closeFd(fd uintptr) { raw.Sys(syscall.SYS_CLOSE, fd, 0, 0, 0, 0, 0) }

// peek is the next byte; 0 at the end, or where the file cannot be read.
func (f *file) peek() byte {
	if f.at >= f.n {
		n, errno := raw.Sys(syscall.SYS_READ, f.fd, uintptr(unsafe.Pointer(&f.buf)), fileMask+1, 0, 0, 0)
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

// skip passes over the byte that peek shows.
func (f *file) skip() { f.at++ }

// blanks passes over spaces and tabs.
func (f *file) blanks() {
	for f.peek() == ' ' || f.peek() == '\t' {
		f.skip()
	}
}

// ended reports whether nothing follows but, perhaps, the end of a line.
func (f *file) ended() bool { return f.peek() == '\n' || f.peek() == 0 }

// number reads a decimal number. A number that passes most is most, which is below
// 2^63/10.
func (f *file) number(most uint64) (v uint64, ok bool) {
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

// span reads the next range of a list such as "0-3,8", and the comma behind it. It
// reports false at the end of the list, and sets bad where that is not the end of the
// text.
func (f *file) span() (low, high uint64, ok bool) {
	const most = 1 << 20 // far above the kernel's limits for nodes and processors
	low, ok = f.number(most)
	if !ok {
		f.bad = !f.ended()
		return 0, 0, false
	}
	high = low
	if f.peek() == '-' {
		f.skip()
		high, ok = f.number(most)
	}
	if f.peek() == ',' {
		f.skip()
	} else if !f.ended() {
		ok = false
	}
	f.bad = !ok || high < low
	return low, high, !f.bad
}

// nodes reads a list as a set of nodes; beyond: it has one above 63. It reports
// false, and the empty set, when the text is no list.
func (f *file) nodes() (set uint64, beyond, ok bool) {
	for {
		low, high, more := f.span()
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

// nodeSet is nodes for the file at p.
func nodeSet(p *path) (set uint64, beyond, ok bool) {
	var f file
	if !f.open(p) {
		return 0, false, false
	}
	set, beyond, ok = f.nodes()
	f.close()
	return set, beyond, ok
}

// figure is the number in the file at p, 0 when there is none.
func figure(p *path) uint32 {
	var f file
	if !f.open(p) {
		return 0
	}
	v, ok := f.number(1<<32 - 1)
	if !ok || !f.ended() {
		v = 0
	}
	f.close()
	return uint32(v)
}
