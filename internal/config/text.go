package config

import (
	"tieralloc/internal/raw"
	"unsafe"
)

// TextSize is the size of a Text's buffer, its final zero included.
const TextSize = 4096

const textMask = TextSize - 1

// Text is a byte string in a fixed buffer, for texts that must outlive the host's environment. At 4
// KiB it belongs in static or mapped memory, not on the data plane's stack.
//
// Invariant: n < TextSize and buf[n] == 0, so Addr is always a C string too.
type Text struct {
	n   uintptr
	buf [TextSize]byte
}

// Len returns the number of bytes, without the final zero.
func (t *Text) Len() uintptr { return t.n }

// Addr returns the address of the first byte. A zero byte follows the last.
func (t *Text) Addr() uintptr { return uintptr(unsafe.Pointer(&t.buf)) }

// At returns the byte at i, or zero if i is past the end.
func (t *Text) At(i uintptr) byte {
	if i >= t.n {
		return 0
	}
	return t.buf[i&textMask]
}

// Reset makes the text empty.
func (t *Text) Reset() {
	t.n = 0
	t.buf[0] = 0
}

// reset makes a text empty, if it is not. Whether it is, is noted elsewhere: the text of a setting
// that is not set has pages of its own, which most processes never touch.
func reset(given *bool, t *Text) {
	if *given {
		*given = false
		t.Reset()
	}
}

// Byte appends one byte. If the text is full it appends nothing and reports false.
func (t *Text) Byte(c byte) bool {
	if t.n >= textMask {
		return false
	}
	t.buf[t.n&textMask] = c
	t.n++
	t.buf[t.n&textMask] = 0
	return true
}

// Mem appends n bytes at addr. If not all fit, it appends those that do and reports false.
func (t *Text) Mem(addr, n uintptr) bool {
	for i := uintptr(0); i < n; i++ {
		if !t.Byte(raw.LoadByte(addr + i)) {
			return false
		}
	}
	return true
}

// Set replaces the text by the n bytes at addr, truncated to the size of a Text. It reports false
// if it truncated them. The bytes must not be the text's own.
func (t *Text) Set(addr, n uintptr) bool {
	t.Reset()
	return t.Mem(addr, n)
}

// Dec appends v in decimal.
func (t *Text) Dec(v uint64) bool {
	var digits [32]byte
	n := uintptr(0)
	for ; v > 9; n++ { // at most 19 rounds
		digits[n&31] = byte('0' + v%10)
		v /= 10
	}
	ok := t.Byte(byte('0' + v))
	for ; n > 0; n-- {
		ok = t.Byte(digits[(n-1)&31]) && ok
	}
	return ok
}
