package raw

import (
	"syscall"
	"unsafe"
)

// Line is a buffer for one line of text, on the caller's stack. Text beyond its size is dropped.
// The newline always fits.
type Line struct {
	n   uintptr
	buf [512]byte
}

const lineMask = 511

// Text appends a string.
func (l *Line) Text(s string) {
	l.Mem(Bytes(s), uintptr(len(s)))
}

// Mem appends n bytes at addr.
func (l *Line) Mem(addr, n uintptr) {
	for i := uintptr(0); i < n && l.n < lineMask; i++ {
		l.buf[l.n&lineMask] = LoadByte(addr + i)
		l.n++
	}
}

// shownMax is how many bytes of a string a line shows. What is said about it still fits behind.
const shownMax = 350

// CStr appends the zero-terminated string at addr, or its beginning and three dots, with bytes
// replaced that could control a terminal: the string is the host's.
func (l *Line) CStr(addr uintptr) {
	for end := addr + shownMax; LoadByte(addr) != 0; addr++ {
		if addr == end {
			l.Text("...")
			return
		}
		l.Shown(LoadByte(addr))
	}
}

// Shown appends a byte, or a question mark for one that could control a terminal.
func (l *Line) Shown(c byte) {
	if c < ' ' || c > '~' {
		c = '?'
	}
	l.put(c)
}

// Hex appends v as 0x….
func (l *Line) Hex(v uintptr) {
	l.Text("0x")
	shift := uint(60)
	for shift > 0 && v>>(shift&63) == 0 {
		shift -= 4
	}
	for ; ; shift -= 4 {
		d := byte(v>>(shift&63)) & 15
		c := '0' + d
		if d > 9 {
			c = 'a' + d - 10
		}
		l.put(c)
		if shift == 0 {
			return
		}
	}
}

// Dec appends v in decimal.
func (l *Line) Dec(v uint64) {
	var d Digits
	for i := d.Decimal(v); i < uintptr(len(d)); i++ {
		l.put(d[i])
	}
}

// Digits has room for a number in decimal.
type Digits [32]byte

// Decimal writes v at the end of d and returns the index of its first digit.
func (d *Digits) Decimal(v uint64) (i uintptr) {
	i = uintptr(len(d)) - 1
	for ; v > 9; i-- { // at most 19 rounds
		d[i&31] = byte('0' + v%10)
		v /= 10
	}
	d[i&31] = byte('0' + v)
	return i
}

func (l *Line) put(c byte) {
	if l.n < lineMask {
		l.buf[l.n&lineMask] = c
		l.n++
	}
}

// Clear makes the line empty.
func (l *Line) Clear() { l.n = 0 }

// Copy writes the line and a newline at buf+at, as far as they fit below buf+most. It returns at
// plus their full length.
func (l *Line) Copy(buf, at, most uintptr) uintptr {
	l.buf[l.n&lineMask] = '\n'
	for i := uintptr(0); i <= l.n&lineMask; i++ {
		if at < most {
			StoreByte(buf+at, l.buf[i&lineMask])
		}
		at++
	}
	return at
}

// Emit writes the line and a newline to fd in one call. A broken pipe and a file that may not grow
// must not end the host, so Emit blocks SIGPIPE and SIGXFSZ, and consumes the signal of this write.
func (l *Line) Emit(fd uintptr) {
	const pipe, size = 1 << (uintptr(syscall.SIGPIPE) - 1), 1 << (uintptr(syscall.SIGXFSZ) - 1)
	l.buf[l.n&lineMask] = '\n'
	set := [1]uintptr{pipe | size}
	var old, pending [1]uintptr
	var now [2]uintptr // struct timespec, zero
	Sys(syscall.SYS_RT_SIGPENDING, uintptr(unsafe.Pointer(&pending)), 8, 0, 0, 0, 0)
	Sys(syscall.SYS_RT_SIGPROCMASK, sigBlock, uintptr(unsafe.Pointer(&set)),
		uintptr(unsafe.Pointer(&old)), 8, 0, 0)
	_, errno := Sys(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(&l.buf)), l.n&lineMask+1, 0, 0, 0)
	set[0] = 0
	if errno == uintptr(syscall.EPIPE) {
		set[0] = pipe
	} else if errno == uintptr(syscall.EFBIG) {
		set[0] = size
	}
	if set[0] != 0 && pending[0]&set[0] == 0 {
		Sys(syscall.SYS_RT_SIGTIMEDWAIT, uintptr(unsafe.Pointer(&set)), 0,
			uintptr(unsafe.Pointer(&now)), 8, 0, 0)
	}
	Sys(syscall.SYS_RT_SIGPROCMASK, sigSetMask, uintptr(unsafe.Pointer(&old)), 0, 8, 0, 0)
}

// Die writes the line to standard error and aborts the process.
func (l *Line) Die() {
	l.Emit(2)
	Abort()
}

// Abort ends the process as abort(3) does. The host's handler for SIGABRT runs first. If it
// returns, or the signal is blocked or ignored, the default action follows.
func Abort() {
	abrt := uintptr(syscall.SIGABRT)
	set := [1]uintptr{1 << (abrt - 1)}
	tid, _ := Sys(syscall.SYS_GETTID, 0, 0, 0, 0, 0, 0)
	for i := 0; i < 2; i++ {
		Sys(syscall.SYS_RT_SIGPROCMASK, sigUnblock, uintptr(unsafe.Pointer(&set)), 0, 8, 0, 0)
		Sys(syscall.SYS_TGKILL, Pid(), tid, abrt, 0, 0, 0)
		var act [4]uintptr // struct kernel_sigaction, all zero: SIG_DFL
		Sys(syscall.SYS_RT_SIGACTION, abrt, uintptr(unsafe.Pointer(&act)), 0, 8, 0, 0)
	}
	Sys(syscall.SYS_EXIT_GROUP, 134, 0, 0, 0, 0, 0)
}

const (
	sigBlock   = 0
	sigUnblock = 1
	sigSetMask = 2
)

// Check ends the process with a constant line if an invariant does not hold.
func Check(ok bool, what string) {
	if !ok {
		checkFailed(what)
	}
}

//go:noinline
func checkFailed(what string) {
	var l Line
	l.Text("tieralloc: internal check failed: ")
	l.Text(what)
	l.Die()
}
