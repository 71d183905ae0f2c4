package unwind

// description is what an object says about the frames of a range of its code: a frame description
// entry (FDE) and its common information entry (CIE).
type description struct {
	low, high uintptr // the range
	common    cursor  // the instructions of the CIE
	own       cursor  // and of the FDE
	codeAlign uintptr
	dataAlign uintptr
	enc       uintptr // how pointers are encoded
	augmented bool    // the entries have augmentation data
	signal    bool    // the frame is a signal's: the caller was interrupted
}

// Results of find.
const (
	found   = iota
	missing // no description covers the program counter
	odd     // one does, but it cannot be read
)

// find fills in the description for pc, by the sorted table of .eh_frame_hdr.
func (d *description) find(u *Stack, pc uintptr) int {
	const (
		version    = 1
		udata4     = 0x03
		tableEnc   = 0x3b // datarel, sdata4: what every linker writes
		entryBytes = 8
	)
	c := cursor{at: u.Header, end: u.End, low: u.Start}
	if c.fixed(1) != version {
		return missing
	}
	frameEnc, countEnc, enc := c.fixed(1), c.fixed(1), c.fixed(1)
	if _, ok := c.pointer(frameEnc, u.Header); !ok || countEnc != udata4 || enc != tableEnc {
		return missing
	}
	n, table := c.fixed(4), c.at
	low, high := uintptr(0), n // the last entry that starts at pc or below is in [low, high)
	for high-low > 1 && low < high {
		mid := (low + high) / 2
		c.at = table + mid*entryBytes
		if u.Header+c.signed(4) <= pc {
			low = mid
		} else {
			high = mid
		}
	}
	if n == 0 {
		return missing
	}
	c.at = table + low*entryBytes
	if u.Header+c.signed(4) > pc {
		return missing
	}
	if !d.entry(u, u.Header+c.signed(4)) {
		return odd
	}
	if pc < d.low || pc >= d.high {
		return missing
	}
	return found
}

// entry reads the FDE at an address. It reports false for one that it does not understand.
func (d *description) entry(u *Stack, at uintptr) bool {
	c := cursor{at: at, end: u.End, low: u.Start}
	n := c.fixed(4)
	if n == 0 || n >= 0xfffffff0 || n > c.end-c.at { // the 64-bit format is not in use
		return false
	}
	c.end = c.at + n
	back := c.at
	offset := c.fixed(4)
	if offset == 0 || !d.cie(u, back-offset) { // 0 is in a CIE
		return false
	}
	low, ok := c.pointer(d.enc, u.Header)
	if !ok {
		return false
	}
	bytes, ok := c.number(d.enc & encForm)
	if !ok {
		return false
	}
	d.low, d.high = low, low+bytes
	if d.augmented {
		n := c.uleb()
		if n > c.end-c.at {
			return false
		}
		c.at += n
	}
	d.own = c
	return true
}

// cie reads the CIE at an address.
func (d *description) cie(u *Stack, at uintptr) bool {
	c := cursor{at: at, end: u.End, low: u.Start}
	n := c.fixed(4)
	if n == 0 || n >= 0xfffffff0 || n > c.end-c.at {
		return false
	}
	c.end = c.at + n
	if c.fixed(4) != 0 {
		return false
	}
	version := c.fixed(1)
	augmentation := c.at
	for c.fixed(1) != 0 && !c.over() {
	}
	d.codeAlign, d.dataAlign = c.uleb(), c.sleb()
	ra := uintptr(0)
	if version == 1 {
		ra = c.fixed(1)
	} else {
		ra = c.uleb()
	}
	d.enc, d.signal, d.augmented = 0, false, false
	if ra != rip || !d.augment(u, &c, augmentation) {
		return false
	}
	d.common = c
	return true
}

// augment reads the augmentation data, of which the string at text tells the contents.
func (d *description) augment(u *Stack, c *cursor, text uintptr) bool {
	letters := cursor{at: text, end: c.end, low: c.low}
	letter := letters.fixed(1)
	if letter == 0 {
		return true
	}
	if letter != 'z' {
		return false
	}
	d.augmented = true
	n := c.uleb()
	if n > c.end-c.at {
		return false
	}
	end := c.at + n
	for letter = letters.fixed(1); letter != 0; letter = letters.fixed(1) {
		switch letter {
		case 'R':
			d.enc = c.fixed(1)
		case 'P':
			enc := c.fixed(1)
			if _, ok := c.number(enc & encForm); !ok {
				return false
			}
		case 'L':
			c.fixed(1)
		case 'S':
			d.signal = true
		case 'B': // pointer authentication keys, of arm64
		default:
			c.at = end // the rest is of no use without knowing this one
		}
	}
	c.at = end
	return true
}
