package config

// asSize reads a number of bytes from 1 to maxSize: a decimal integer, which K, M, G or T may
// follow, the powers of 1024.
func (v value) asSize(dst *uint64) bool {
	n, ok := v.bytes()
	if !ok || n == 0 {
		return false
	}
	*dst = n
	return true
}

// asSizeOrZero reads a size as asSize does, and 0 too.
func (v value) asSizeOrZero(dst *uint64) bool {
	n, ok := v.bytes()
	if ok {
		*dst = n
	}
	return ok
}

// asRate reads a number of bytes per second from minBandwidth on, or 0 for no limit.
func (v value) asRate(dst *uint64) bool {
	n, ok := v.bytes()
	if !ok || n != 0 && n < minBandwidth {
		return false
	}
	*dst = n
	return true
}

// asProfileRate reads a number of bytes between samples, or auto, which is 0.
func (v value) asProfileRate(dst *uint64) bool {
	if v.isWord("auto") {
		*dst = 0
		return true
	}
	n, ok := v.bytes()
	if !ok || n < minProfileRate || n > maxProfileRate {
		return false
	}
	*dst = n
	return true
}

// asProfileEvery reads a number of bytes between two writings of the profile, or 0 for none.
func (v value) asProfileEvery(dst *uint64) bool {
	n, ok := v.bytes()
	if !ok || n != 0 && n < minProfileEvery {
		return false
	}
	*dst = n
	return true
}

// bytes reads a size as asSize does, and 0 too.
func (v value) bytes() (n uint64, ok bool) {
	i := uintptr(0)
	for ; i < v.n && isDigit(v.at(i)); i++ {
		n = n*10 + uint64(v.at(i)-'0')
		if n > maxSize {
			return 0, false
		}
	}
	if i == 0 {
		return 0, false
	}
	shift := uint(0)
	if i < v.n {
		shift = unitShift(v.at(i))
		i++
		if shift == 0 || i != v.n {
			return 0, false
		}
	}
	if n > maxSize>>(shift&63) {
		return 0, false
	}
	return n << (shift & 63), true
}

// unitShift is the power of two that a unit of size stands for, 0 for another byte.
func unitShift(c byte) uint {
	switch lower(c) {
	case 'k':
		return 10
	case 'm':
		return 20
	case 'g':
		return 30
	case 't':
		return 40
	}
	return 0
}

// asNodes reads a list of nodes such as 0,2-3. The way to use them and a colon may precede it. No
// node may occur twice.
func (v value) asNodes(dst *uint64, spread *uint32) bool {
	how := SpreadPrefer
	if colon := v.find(0, ':'); colon < v.n {
		switch word := v.part(0, colon); {
		case word.isWord("interleave"):
			how = SpreadInterleave
		case word.isWord("weighted"):
			how = SpreadWeighted
		default:
			return false
		}
		v = v.part(colon+1, v.n)
	}
	nodes := uint64(0)
	for i := uintptr(0); i <= v.n; {
		end := v.find(i, ',')
		bits, ok := v.part(i, end).nodeRange()
		if !ok || nodes&bits != 0 {
			return false
		}
		nodes |= bits
		i = end + 1
	}
	*dst, *spread = nodes, how
	return true
}

// nodeRange reads a node or a range of nodes as a bit for each.
func (v value) nodeRange() (bits uint64, ok bool) {
	dash := v.find(0, '-')
	first, ok := v.part(0, dash).node()
	if !ok {
		return 0, false
	}
	last := first
	if dash < v.n {
		last, ok = v.part(dash+1, v.n).node()
		if !ok || last < first {
			return 0, false
		}
	}
	return ^uint64(0) >> ((63 - last + first) & 63) << (first & 63), true
}

// node reads the number of a node, 0 to 63.
func (v value) node() (n uint64, ok bool) {
	for i := uintptr(0); i < v.n; i++ {
		if !isDigit(v.at(i)) {
			return 0, false
		}
		n = n*10 + uint64(v.at(i)-'0')
		if n > 63 {
			return 0, false
		}
	}
	return n, v.n != 0
}
