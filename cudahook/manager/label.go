package manager

import "tieralloc/internal/raw"

// LabelSize is the size of a name, with its final zero.
const LabelSize = 48

// A label is a name, filled up with zeros.
type label [LabelSize]byte

// set copies a C string. It reports false if the string is too long. Address 0 is an empty name.
func (l *label) set(s uintptr) bool {
	var to label
	for i := range to {
		b := byte(0)
		if s != 0 {
			b = raw.LoadByte(s + uintptr(i))
		}
		if b == 0 {
			*l = to
			return true
		}
		to[i] = b
	}
	return false
}
