package config

import "tieralloc/internal/raw"

// value is a variable's text where it lies in the environment: n bytes at addr and
// a zero byte after them. Each as… method reads it as one kind of setting, stores
// that, and reports true; or stores nothing and reports false.
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

// at is the byte at i. Precondition: i <= v.n; the final zero may be read.
func (v value) at(i uintptr) byte { return raw.LoadByte(v.addr + i) }

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

// asSwitch reads 0 or 1. Other spellings of yes and no are refused: with them every
// user would have to learn which of them count.
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

// levelNames are the words for the Log levels; the rest is padding to a power of two.
var levelNames = [8]string{
	LogOff: "off", LogError: "error", LogWarn: "warn", LogInfo: "info", LogDebug: "debug",
}

// asLevel reads the name of a log level.
func (v value) asLevel(dst *uint32) bool {
	for i := uint32(0); i < logLevels; i++ {
		if v.isFrom(0, levelNames[i&7]) {
			*dst = i
			return true
		}
	}
	return false
}

// asTime reads a decimal integer and its unit, in nanoseconds from 0 to most. Zero
// needs no unit. Precondition: most < 1<<60, so that ten times it does not wrap.
func (v value) asTime(dst *uint64, most uint64) bool {
	t, i := uint64(0), uintptr(0)
	for ; v.at(i) >= '0' && v.at(i) <= '9'; i++ {
		t = t*10 + uint64(v.at(i)-'0')
		if t > most { // too much in the smallest unit already
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

// unitAt is the unit of time that the value from byte i on names, or 0.
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

// asPath copies a file name as it is.
func (v value) asPath(dst *Text) bool {
	if v.n > PathMax {
		return false
	}
	return dst.Set(v.addr, v.n)
}

// isTemplate reports whether Expand knows every % of the value.
func (v value) isTemplate() bool {
	for i := uintptr(0); i < v.n; i++ {
		if v.at(i) != '%' {
			continue
		}
		i++
		if c := v.at(i); c != 'p' && c != 'e' && c != '%' {
			return false
		}
	}
	return true
}

// Expand writes tmpl to dst with %p replaced by pid, %e by the program's name and
// %% by a percent sign. A slash in the name becomes an underscore: the name of a
// program shall not choose the directory. hasPid says that there was a %p. When
// the template holds another %, or the result is longer than PathMax, ok is false
// and dst is empty.
//
// Precondition: dst is neither tmpl nor program.
func Expand(dst, tmpl *Text, pid uintptr, program *Text) (hasPid, ok bool) {
	dst.Reset()
	ok = value{tmpl.Addr(), tmpl.Len()}.isTemplate()
	for i := uintptr(0); ok && i < tmpl.Len(); i++ {
		c := tmpl.At(i)
		if c != '%' {
			ok = dst.Byte(c)
			continue
		}
		i++
		switch tmpl.At(i) {
		case 'p':
			ok = dst.Dec(uint64(pid))
			hasPid = true
		case 'e':
			ok = appendName(dst, program)
		default:
			ok = dst.Byte('%')
		}
	}
	if !ok || dst.Len() > PathMax {
		dst.Reset()
		return false, false
	}
	return hasPid, true
}

// appendName appends a program's name with its slashes replaced.
func appendName(dst, program *Text) bool {
	for i := uintptr(0); i < program.Len(); i++ {
		c := program.At(i)
		if c == '/' {
			c = '_'
		}
		if !dst.Byte(c) {
			return false
		}
	}
	return true
}
