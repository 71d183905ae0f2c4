package config

import "tieralloc/internal/raw"

// value is a variable's text in the environment itself: n bytes at addr, followed by a zero byte.
// Each as… method parses it as one kind of setting. It stores the result and reports true, or
// stores nothing and reports false.
type value struct {
	addr, n uintptr
}

// cString measures the zero-terminated string at addr.
func cString(addr uintptr) value {
	n := uintptr(0)
	for raw.LoadByte(addr+n) != 0 {
		n++
	}
	return value{addr, n}
}

// at returns the byte at i. Precondition: i <= v.n; the final zero may be read.
func (v value) at(i uintptr) byte { return raw.LoadByte(v.addr + i) }

// part returns the value's bytes from i up to j. Precondition: i <= j <= v.n. No zero need follow a
// part, so only methods that do not look for one may read it.
func (v value) part(i, j uintptr) value { return value{v.addr + i, j - i} }

// find returns the index of the first byte c at i or after it, or v.n.
func (v value) find(i uintptr, c byte) uintptr {
	for i < v.n && v.at(i) != c {
		i++
	}
	return i
}

// trim returns the value without the blanks and ends of lines around it.
func (v value) trim() value {
	for v.n > 0 && isBlank(v.at(0)) {
		v.addr++
		v.n--
	}
	for v.n > 0 && isBlank(v.at(v.n-1)) {
		v.n--
	}
	return v
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// lower returns c in lower case.
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// isFrom reports whether the value from byte i on is exactly s.
func (v value) isFrom(i uintptr, s string) bool {
	if i > v.n || v.n-i != uintptr(len(s)) {
		return false
	}
	for k := 0; k < len(s); k++ {
		if v.at(i+uintptr(k)) != s[k] {
			return false
		}
	}
	return true
}

// asSwitch reads 0 or 1. It refuses other spellings of yes and no, so that users need not learn
// which of them count.
func (v value) asSwitch(dst *bool) bool {
	if v.isFrom(0, "0") {
		*dst = false
		return true
	}
	if v.isFrom(0, "1") {
		*dst = true
		return true
	}
	return false
}

// isWord reports whether the value is the word w, in lower or in upper case.
// Precondition: w is in lower case.
func (v value) isWord(w string) bool {
	if v.n != uintptr(len(w)) {
		return false
	}
	for k := 0; k < len(w); k++ {
		if lower(v.at(uintptr(k))) != w[k] {
			return false
		}
	}
	return true
}

// asWord reads one of the first count words, as its index.
func (v value) asWord(dst *uint32, words *[8]string, count uint32) bool {
	for i := uint32(0); i < count; i++ {
		if v.isWord(words[i&7]) {
			*dst = i
			return true
		}
	}
	return false
}

// asTime reads a decimal integer and its unit, as nanoseconds from 0 to most. Zero needs no unit.
// Precondition: most < 1<<60, so that ten times most does not wrap.
func (v value) asTime(dst *uint64, most uint64) bool {
	t, i := uint64(0), uintptr(0)
	for ; isDigit(v.at(i)); i++ {
		t = t*10 + uint64(v.at(i)-'0')
		if t > most { // too large even in the smallest unit
			return false
		}
	}
	if i == 0 {
		return false
	}
	unit := v.unitAt(i)
	if i == v.n && t == 0 {
		unit = 1
	}
	if unit == 0 || t > most/unit {
		return false
	}
	*dst = t * unit
	return true
}

// unitAt returns the unit of time that the value from byte i on names, or 0.
func (v value) unitAt(i uintptr) uint64 {
	switch {
	case v.isFrom(i, "ns"):
		return 1
	case v.isFrom(i, "us"):
		return microsecond
	case v.isFrom(i, "ms"):
		return millisecond
	case v.isFrom(i, "s"):
		return second
	}
	return 0
}

// asPath copies a file name as it is. given says whether it is not empty.
func (v value) asPath(dst *Text, given *bool) bool {
	if v.n > PathMax {
		return false
	}
	*given = v.n != 0
	return dst.Set(v.addr, v.n)
}
