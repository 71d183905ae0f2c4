package config

// SiteMax is the largest number of callers that a condition on the site names.
const SiteMax = 4

// Caller is a place in a program: the function whose symbol is Name or, if Offset is not 0, the
// call that returns to that address of an object whose file name matches the pattern Name. Offset
// counts from the object's load bias, as addresses in its symbol table do.
type Caller struct {
	Name   Glob // a zero follows its text
	Offset uint64
}

// Function reports whether a symbol names the caller.
func (c *Caller) Function() bool { return c.Name.Set() && c.Offset == 0 }

// site adds the callers of a condition, the caller of malloc first.
func (l *RuleList) site(r *Rule, v value) flaw {
	if r.Site[0].Name.Set() {
		return twice
	}
	depth := uintptr(0)
	for i := uintptr(0); i <= v.n; depth++ {
		if depth >= SiteMax {
			return badSite
		}
		end := v.find(i, '<')
		if f := l.caller(&r.Site[depth&(SiteMax-1)], v.part(i, end).trim()); f != sound {
			return f
		}
		i = end + 1
	}
	return sound
}

func (l *RuleList) caller(c *Caller, v value) flaw {
	name, plus := v, v.n
	for i := uintptr(0); i < v.n; i++ {
		if v.at(i) == '+' {
			plus = i
		}
	}
	if plus < v.n {
		name = v.part(0, plus)
		if !v.part(plus+1, v.n).asHex(&c.Offset) || c.Offset == 0 {
			return badSite
		}
	}
	if name.n == 0 {
		return badSite
	}
	if f := l.glob(&c.Name, name, true); f != sound {
		return f
	}
	if !l.text.Byte(0) {
		return tooLong
	}
	return sound
}

// asHex reads 0x and up to 16 digits.
func (v value) asHex(dst *uint64) bool {
	if v.n < 3 || v.n > 18 || v.at(0) != '0' || v.at(1)|0x20 != 'x' {
		return false
	}
	n := uint64(0)
	for i := uintptr(2); i < v.n; i++ {
		c := v.at(i)
		switch {
		case c-'0' < 10:
			c -= '0'
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return false
		}
		n = n<<4 | uint64(c)
	}
	*dst = n
	return true
}
