package manager

import "tieralloc/internal/raw"

// LabelSize is the room for a name, with its final zero.
const LabelSize = 48

// A label is a name, zero from its end on.
type label [LabelSize]byte

// set takes a C string, or reports false for one that is too long. 0: empty.
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
