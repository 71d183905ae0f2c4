package document

import (
	"tieralloc/internal/raw"
	"tieralloc/stats"
)

// writer writes JSON to a buffer that may be too small. Bytes that do not fit are counted and
// dropped.
//
// Invariant: exactly the first min(n, room) bytes of the text are at dst.
type writer struct {
	dst   uintptr
	room  uintptr // bytes of dst for text; one more is kept for the final zero
	n     uintptr // length of the text so far
	depth uintptr // open objects and arrays
	empty bool    // the innermost of them has no members yet

	list *stats.Sites // nil: the report has none
}

// begin aims a new writer at size bytes at dst.
func (w *writer) begin(dst, size uintptr) {
	w.dst = dst
	if size > 0 {
		w.room = size - 1
	}
}

func (w *writer) put(c byte) {
	if w.n < w.room {
		raw.StoreByte(w.dst+w.n, c)
	}
	w.n++
}

func (w *writer) text(s string) {
	for i := 0; i < len(s); i++ {
		w.put(s[i])
	}
}

// newline starts a line with the indentation of the current depth.
func (w *writer) newline() {
	w.put('\n')
	for i := uintptr(0); i < w.depth; i++ {
		w.text("  ")
	}
}

// open begins an object or an array. The caller has written its key or called item.
func (w *writer) open(bracket byte) {
	w.put(bracket)
	w.depth++
	w.empty = true
}

// close ends the innermost object or array.
func (w *writer) close(bracket byte) {
	w.depth--
	if !w.empty {
		w.newline()
	}
	w.put(bracket)
	w.empty = false
}

// item begins an element of an array, or a member of an object.
func (w *writer) item() {
	if !w.empty {
		w.put(',')
	}
	w.empty = false
	w.newline()
}

// key begins a member. The name is a constant that needs no escapes.
func (w *writer) key(name string) {
	w.item()
	w.put('"')
	w.text(name)
	w.text("\": ")
}

// count writes a member that is a whole number.
func (w *writer) count(name string, v uint64) {
	w.key(name)
	w.dec(v)
}

// word writes a member that is a constant string without escapes.
func (w *writer) word(name, s string) {
	w.key(name)
	w.put('"')
	w.text(s)
	w.put('"')
}

// truth writes a member that is true or false.
func (w *writer) truth(name string, v bool) {
	w.key(name)
	if v {
		w.text("true")
		return
	}
	w.text("false")
}

func (w *writer) dec(v uint64) {
	var d raw.Digits
	for i := d.Decimal(v); i < uintptr(len(d)); i++ {
		w.put(d[i])
	}
}

// fraction writes part/whole, truncated to four decimals, for part <= whole. It writes 0.0000 if
// whole is 0.
func (w *writer) fraction(part, whole uint64) {
	for whole>>48 != 0 { // at most 16 rounds; then ten thousand times part fits 64 bits
		part >>= 1
		whole >>= 1
	}
	q := uint64(0)
	if whole != 0 {
		q = part * 10000 / whole
	}
	w.put(byte('0' + q/10000%10))
	w.put('.')
	w.put(byte('0' + q/1000%10))
	w.put(byte('0' + q/100%10))
	w.put(byte('0' + q/10%10))
	w.put(byte('0' + q%10))
}

// quoted writes n bytes at addr as a string.
func (w *writer) quoted(addr, n uintptr) {
	w.put('"')
	w.escaped(addr, n)
	w.put('"')
}

// escaped writes n bytes at addr as a part of a string. Each byte that is not part of valid UTF-8
// becomes U+FFFD.
func (w *writer) escaped(addr, n uintptr) {
	for i := uintptr(0); i < n; {
		size := runeSize(addr+i, n-i)
		switch size {
		case 0:
			w.text("\\ufffd")
			size = 1
		case 1:
			w.ascii(raw.LoadByte(addr + i))
		default:
			for k := uintptr(0); k < size; k++ {
				w.put(raw.LoadByte(addr + i + k))
			}
		}
		i += size
	}
}

func (w *writer) ascii(c byte) {
	switch {
	case c == '"' || c == '\\':
		w.put('\\')
		w.put(c)
	case c == '\n':
		w.text("\\n")
	case c == '\t':
		w.text("\\t")
	case c < ' ' || c == 0x7f:
		w.text("\\u00")
		w.put('0' + c>>4)
		w.put(hexDigit(c))
	default:
		w.put(c)
	}
}

// hexDigit is the low half of c in hexadecimal.
func hexDigit(c byte) byte {
	c &= 15
	if c > 9 {
		return 'a' + c - 10
	}
	return '0' + c
}

// runeSize returns the length of the UTF-8 sequence at the start of the n > 0 bytes at addr, or 0
// if there is none (Unicode 15, table 3-7).
func runeSize(addr, n uintptr) uintptr {
	c := raw.LoadByte(addr)
	low, high := byte(0x80), byte(0xbf) // bounds of the second byte
	size := uintptr(0)
	switch {
	case c < 0x80:
		return 1
	case c >= 0xc2 && c <= 0xdf:
		size = 2
	case c >= 0xe0 && c <= 0xef:
		size = 3
	case c >= 0xf0 && c <= 0xf4:
		size = 4
	}
	switch c {
	case 0xe0: // shorter forms exist
		low = 0xa0
	case 0xed: // surrogates
		high = 0x9f
	case 0xf0: // shorter forms exist
		low = 0x90
	case 0xf4: // beyond U+10FFFF
		high = 0x8f
	}
	if size > n {
		return 0
	}
	for k := uintptr(1); k < size; k++ {
		c = raw.LoadByte(addr + k)
		if c < low || c > high {
			return 0
		}
		low, high = 0x80, 0xbf
	}
	return size
}
