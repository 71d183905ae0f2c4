package config

import (
	"tieralloc/internal/raw"
	"unsafe"
)

// TextSize is the size of a Text's buffer, its final zero included.
const TextSize = 4096

const textMask = TextSize - 1

// Text is a byte string in place, for words that must outlive the host's
// environment. At 4 KiB it belongs in static or mapped memory, not on the
// data plane's stack.
//
// Invariant: n < TextSize and buf[n] == 0, so Addr is always a C string too.
type Text struct {
	n   uintptr
	buf [TextSize]byte
}

// Len is the number of bytes, without the final zero.
func (t *Text) Len() uintptr { return t.n }

// Addr is the address of the first byte; a zero byte follows the last.
func (t *Text) Addr() uintptr { return uintptr(unsafe.Pointer(&t.buf)) }

// At is the byte at i, and zero for an i past the end.
func (t *Text) At(i uintptr) byte {
	if i >= t.n {
		return 0
	}
	return t.buf[i&textMask]
}

// Reset makes the text empty. One that is empty is not written to: its page may be none yet.
func (t *Text) Reset() {
	if t.n != 0 {
		t.n = 0
		t.buf[0] = 0
	}
}

// Byte appends one byte. It reports false, and appends nothing, when the text
// is full.
func (t *Text) Byte(c byte) bool {
	if t.n >= textMask {
		return false
	}
	t.buf[t.n&textMask] = c
	t.n++
	t.buf[t.n&textMask] = 0
	return true
}

// Mem appends n bytes at addr. It reports false when not all of them fit; those
// that do are then appended.
func (t *Text) Mem(addr, n uintptr) bool {
	for i := uintptr(0); i < n; i++ {
		if !t.Byte(raw.LoadByte(addr + i)) {
			return false
		}
	}
	return true
}

// Set replaces the text by the n bytes at addr, cut where the text is full; it
// reports false when it cut them. The bytes must not be the text's own.
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
