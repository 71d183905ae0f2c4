package profile

import "tieralloc/internal/raw"

// encoder writes Protocol Buffers to a buffer that may be too small. Bytes that do not fit are
// counted and dropped.
//
// Invariant: exactly the first min(n, room) bytes of the message are at dst.
type encoder struct {
	dst, room, n uintptr
	strings      uint64 // in the string table so far
}

func (e *encoder) put(b byte) {
	if e.n < e.room {
		raw.StoreByte(e.dst+e.n, b)
	}
	e.n++
}

func (e *encoder) varint(v uint64) {
	for ; v >= 0x80; v >>= 7 { // at most nine rounds
		e.put(byte(v) | 0x80)
	}
	e.put(byte(v))
}

// number writes a field that is a number, unless it is 0, the default.
func (e *encoder) number(field, v uint64) {
	if v != 0 {
		e.varint(field << 3)
		e.varint(v)
	}
}

// open begins a field that is a message, a string or a packed list, and close ends it. Its length
// has a fixed number of bytes, and is written at the end.
func (e *encoder) open(field uint64) (at uintptr) {
	e.varint(field<<3 | 2)
	at = e.n
	for range lengthBytes {
		e.put(0)
	}
	return at
}

const lengthBytes = 3 // up to 2 MiB

func (e *encoder) close(at uintptr) {
	v := e.n - at - lengthBytes
	for i := uintptr(0); i < lengthBytes; i++ {
		b := byte(v >> (7 * i) & 0x7f)
		if i < lengthBytes-1 {
			b |= 0x80
		}
		if at+i < e.room {
			raw.StoreByte(e.dst+at+i, b)
		}
	}
}

// beginString begins an entry of the string table. endString ends it and returns its number.
func (e *encoder) beginString() (at uintptr) { return e.open(fieldString) }

func (e *encoder) endString(at uintptr) uint64 {
	e.close(at)
	e.strings++
	return e.strings - 1
}

func (e *encoder) text(s string) {
	for i := 0; i < len(s); i++ {
		e.put(s[i])
	}
}

func (e *encoder) bytes(addr, n uintptr) {
	for i := uintptr(0); i < n; i++ {
		e.put(raw.LoadByte(addr + i))
	}
}

func (e *encoder) decimal(v uint64) {
	var d raw.Digits
	for i := d.Decimal(v); i < uintptr(len(d)); i++ {
		e.put(d[i])
	}
}

// addString adds s to the string table and returns its number.
func (e *encoder) addString(s string) uint64 {
	at := e.beginString()
	e.text(s)
	return e.endString(at)
}

// addBytes adds n bytes at addr.
func (e *encoder) addBytes(addr, n uintptr) uint64 {
	at := e.beginString()
	e.bytes(addr, n)
	return e.endString(at)
}

// addHex adds n bytes at addr in hexadecimal.
func (e *encoder) addHex(addr, n uintptr) uint64 {
	at := e.beginString()
	for i := uintptr(0); i < n; i++ {
		b := raw.LoadByte(addr + i)
		e.put(hexDigit(b >> 4))
		e.put(hexDigit(b & 15))
	}
	return e.endString(at)
}

func hexDigit(b byte) byte {
	if b > 9 {
		return 'a' + b - 10
	}
	return '0' + b
}
