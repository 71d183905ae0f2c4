package pystack

import "unsafe"

// copyText copies a Python string to the table, as UTF-8. It returns an empty text for anything
// else. Precondition: the table has room for stringBytes.
func (t *Table) copyText(at uintptr) (s Text) {
	var head [5]uintptr // PyASCIIObject, up to its state
	s.at = t.texts
	if at == 0 || !t.object(uintptr(unsafe.Pointer(&head)), at, unsafe.Sizeof(head)) {
		return s
	}
	if _, ok := t.is(head[1], &t.textType, textName, 4); !ok {
		return s
	}
	state := uint32(head[4])
	if state>>2&7 == 0 {
		state >>= 6 // the bits before these are 8, not 2
	}
	if state>>2&7 == 0 {
		state >>= 8 // or 16
	}
	kind, compact, ascii := uintptr(state>>2&7), state>>5&1 != 0, state>>6&1 != 0
	if !compact || kind != 1 && kind != 2 && kind != 4 {
		return s
	}
	size := uintptr(40)
	if t.minor == 11 {
		size = 48
	}
	switch {
	case ascii:
	case t.minor == 11:
		size += 24 // PyCompactUnicodeObject
	default:
		size += 16
	}
	n := min(head[2], stringMax)
	if !t.object(uintptr(unsafe.Pointer(&t.scratch)), at+size, n*kind) {
		return s
	}
	for i := uintptr(0); i < n; i++ {
		r := uint32(0)
		for j := uintptr(0); j < kind; j++ {
			r |= uint32(t.scratch[(i*kind+j)&(scratchMax-1)]) << (8 * j & 31)
		}
		t.putRune(r)
	}
	s.N = t.texts - s.at
	return s
}

// copyFile is copyText for the name of a file, which is often that of the latest.
func (t *Table) copyFile(at uintptr) Text {
	s, last := t.copyText(at), t.file
	if t.same(s, last) {
		t.texts = s.at
		return last
	}
	t.file = s
	return s
}

// putRune appends a code point to the texts.
func (t *Table) putRune(r uint32) {
	switch {
	case r < 0x80:
		t.putByte(r)
	case r < 0x800:
		t.putByte(0xc0 | r>>6)
		t.putByte(0x80 | r&63)
	case r < 0x10000:
		t.putByte(0xe0 | r>>12)
		t.putByte(0x80 | r>>6&63)
		t.putByte(0x80 | r&63)
	default:
		t.putByte(0xf0 | r>>18&7)
		t.putByte(0x80 | r>>12&63)
		t.putByte(0x80 | r>>6&63)
		t.putByte(0x80 | r&63)
	}
}

func (t *Table) putByte(b uint32) {
	t.text[t.texts&(textMax-1)] = byte(b)
	t.texts++
}

// instructions returns the address of the instructions that a frame runs of a code object. Without
// the global lock each thread may have its own: the word before those of the object points to how
// many there are and their addresses, and the frame has a number among them.
func (t *Table) instructions(frame, at uintptr) uintptr {
	const number = 72 // in a _PyInterpreterFrame
	start, own, n, i := at+t.codeBytes, uintptr(0), uintptr(0), uint32(0)
	if t.head == 0 || !t.read(uintptr(unsafe.Pointer(&i)), frame+number, unsafe.Sizeof(i)) ||
		!t.read(uintptr(unsafe.Pointer(&own)), start-8, unsafe.Sizeof(own)) ||
		!t.read(uintptr(unsafe.Pointer(&n)), own, unsafe.Sizeof(n)) || uintptr(i) >= n {
		return start
	}
	t.read(uintptr(unsafe.Pointer(&start)), own+8+8*uintptr(i), unsafe.Sizeof(start))
	return start
}

// lineOf returns the line of an instruction of a code object, or the line of its function where it
// is not told: for an instruction that is elsewhere, and in a table of lines that is very long. The
// instructions of the object begin at start.
func (t *Table) lineOf(c *code, start, instr uintptr) uint32 {
	first := c.firstLine(t.minor)
	unit := (instr - start) / 2
	var head [4]uintptr // PyBytesObject: its size is the third word, its bytes follow the fourth
	if instr < start || unit >= c.units() || c.lines() == 0 ||
		!t.object(uintptr(unsafe.Pointer(&head)), c.lines(), unsafe.Sizeof(head)) ||
		head[2] > scratchMax ||
		!t.object(uintptr(unsafe.Pointer(&t.scratch)), c.lines()+unsafe.Sizeof(head), head[2]) {
		return first
	}
	return t.decodeLine(first, unit, head[2])
}

// decodeLine finds the line of a unit in the n bytes of scratch (CPython documents the format with
// its code objects). An entry begins with a byte that has the highest bit: its kind,
// and how many units it is about.
func (t *Table) decodeLine(line uint32, unit, n uintptr) uint32 {
	const (
		oneLine  = 10 // to 12: a line further by 0 to 2
		noColumn = 13 // a signed number of lines further; so is long
		long     = 14
	)
	first := line
	for i := uintptr(0); i < n; {
		b := t.scratch[i&(scratchMax-1)]
		kind, units := uint32(b>>3&15), uintptr(b&7)+1
		i++
		switch {
		case kind == noColumn || kind == long:
			line += t.signed(i)
		case kind >= oneLine && kind < noColumn:
			line += kind - oneLine
		}
		if unit < units {
			return line
		}
		unit -= units
		for i < n && t.scratch[i&(scratchMax-1)]&0x80 == 0 {
			i++
		}
	}
	return first
}

// signed decodes a signed number at scratch[i]: 6 bits a byte, the lowest first, and a bit if more
// follow. The lowest bit of all is the sign.
func (t *Table) signed(i uintptr) uint32 {
	v := uint32(0)
	for shift := uint32(0); shift < 32; shift += 6 {
		b := uint32(t.scratch[i&(scratchMax-1)])
		v |= b & 63 << (shift & 31)
		i++
		if b&64 == 0 {
			break
		}
	}
	if v&1 != 0 {
		return -(v >> 1)
	}
	return v >> 1
}
