package config

import "tieralloc/internal/raw"

// isTemplate reports whether Expand accepts every % of the value.
func (v value) isTemplate() bool {
	for i := uintptr(0); i < v.n; i++ {
		if v.at(i) != '%' {
			continue
		}
		i++
		switch v.at(i) {
		case 'p', 'e', 'r', 'h', '%':
		default:
			return false
		}
	}
	return true
}

// liveTemplate is the template that TA_STATS_LIVE=1 stands for.
const liveTemplate = "/dev/shm/tieralloc.%p"

// asLive reads 0, 1, or an absolute template that gives each process a path of its own.
func (v value) asLive(dst *Text, given *bool) bool {
	if v.isFrom(0, "0") {
		reset(given, dst)
		return true
	}
	if v.isFrom(0, "1") {
		v = value{raw.Bytes(liveTemplate), uintptr(len(liveTemplate))}
		return v.asPath(dst, given)
	}
	return v.at(0) == '/' && v.isTemplate() && v.hasPid() && v.asPath(dst, given)
}

// LiveIsDefault reports whether TA_STATS_LIVE is 1 rather than a path.
func (s *Settings) LiveIsDefault() bool {
	return value{s.StatsLive.Addr(), s.StatsLive.Len()}.isFrom(0, liveTemplate)
}

// hasPid reports whether there is a %p. Precondition: isTemplate.
func (v value) hasPid() bool {
	for i := uintptr(0); i < v.n; i++ {
		if v.at(i) != '%' {
			continue
		}
		i++
		if v.at(i) == 'p' {
			return true
		}
	}
	return false
}

// Expand writes tmpl to dst with %p replaced by pid, %e by the program's name, %r by the rank (a
// Settings.Rank) or "none", %h by the host's name and %% by a percent sign. A slash in a name
// becomes an underscore, so that the name of a program cannot choose the directory. hasPid says
// that there was a %p. If the template contains another %, or the result is longer than PathMax, ok
// is false and dst is empty.
//
// Precondition: dst is neither tmpl nor program.
func Expand(dst, tmpl *Text, pid uintptr, program *Text, rank uint64) (hasPid, ok bool) {
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
			ok = appendName(dst, value{program.Addr(), program.Len()})
		case 'r':
			ok = appendRank(dst, rank)
		case 'h':
			ok = appendHost(dst)
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

// appendName appends a name with its slashes replaced.
func appendName(dst *Text, name value) bool {
	for i := uintptr(0); i < name.n; i++ {
		c := name.at(i)
		if c == '/' {
			c = '_'
		}
		if !dst.Byte(c) {
			return false
		}
	}
	return true
}
