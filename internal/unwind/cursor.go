package unwind

import "tieralloc/internal/raw"

// cursor reads an object's memory from at on, up to end and never outside low to end. What lies
// there is not trusted: a read beyond the end gives 0 and leaves the cursor at the end.
type cursor struct {
	at, end, low uintptr
}

func (c *cursor) over() bool { return c.at >= c.end }

// fixed reads n bytes, 8 at most, the least significant first.
func (c *cursor) fixed(n uintptr) (v uintptr) {
	if c.at < c.low || c.end-c.at < n || c.at > c.end {
		c.at = c.end
		return 0
	}
	for i := uintptr(0); i < n && i < 8; i++ {
		v |= uintptr(raw.LoadByte(c.at+i)) << (8 * i & 63)
	}
	c.at += n
	return v
}

// signed reads a signed number of n bytes, 8 at most.
func (c *cursor) signed(n uintptr) uintptr {
	shift := (64 - 8*n) & 63
	return uintptr(int64(c.fixed(n)<<shift) >> shift)
}

// uleb reads an unsigned LEB128 number.
func (c *cursor) uleb() (v uintptr) {
	for shift := uintptr(0); shift < 64; shift += 7 {
		b := c.fixed(1)
		v |= b & 0x7f << shift
		if b&0x80 == 0 {
			break
		}
	}
	return v
}

// sleb reads a signed LEB128 number.
func (c *cursor) sleb() (v uintptr) {
	for shift := uintptr(0); shift < 64; {
		b := c.fixed(1)
		v |= b & 0x7f << shift
		shift += 7
		if b&0x80 == 0 {
			if b&0x40 != 0 && shift < 64 {
				v |= ^uintptr(0) << shift
			}
			break
		}
	}
	return v
}

// Encodings of pointers (DW_EH_PE_…).
const (
	encForm     = 0x0f
	encFrom     = 0x70
	encPCRel    = 0x10
	encDataRel  = 0x30
	encIndirect = 0x80
)

// pointer reads a pointer. data is what DW_EH_PE_datarel counts from.
func (c *cursor) pointer(enc, data uintptr) (v uintptr, ok bool) {
	from := uintptr(0)
	switch enc & encFrom {
	case 0:
	case encPCRel:
		from = c.at
	case encDataRel:
		from = data
	default:
		return 0, false
	}
	v, ok = c.number(enc & encForm)
	return v + from, ok && enc&encIndirect == 0
}

// number reads a number in one of the forms of an encoded pointer.
func (c *cursor) number(form uintptr) (v uintptr, ok bool) {
	switch form {
	case 0x00, 0x04, 0x0c:
		return c.fixed(8), true
	case 0x01:
		return c.uleb(), true
	case 0x02:
		return c.fixed(2), true
	case 0x03:
		return c.fixed(4), true
	case 0x09:
		return c.sleb(), true
	case 0x0a:
		return c.signed(2), true
	case 0x0b:
		return c.signed(4), true
	}
	return 0, false
}
