package heat

import (
	"bytes"
	"strconv"
)

// smapsParser takes /proc/PID/smaps in blocks, and passes on each mapping that has pages in memory,
// with the bytes of them and of those that were referenced.
type smapsParser struct {
	mapping func(m Range, rss, referenced uint64)
	current Range
	rss     uint64
	rest    []byte // of a line that the last block did not end
}

func (p *smapsParser) feed(block []byte) {
	for {
		line, after, whole := bytes.Cut(block, []byte{'\n'})
		if !whole {
			p.rest = append(p.rest, line...)
			return
		}
		if len(p.rest) > 0 {
			p.rest = append(p.rest, line...)
			line = p.rest
		}
		p.line(line)
		p.rest = p.rest[:0]
		block = after
	}
}

// Figures of a mapping, in the order in which the kernel writes them.
var (
	rssField        = []byte("Rss:")
	referencedField = []byte("Referenced:")
)

// line looks at one line: a mapping's first, or one of its figures.
func (p *smapsParser) line(line []byte) {
	if kB, ok := bytes.CutPrefix(line, rssField); ok {
		p.rss = figure(kB)
		return
	}
	if kB, ok := bytes.CutPrefix(line, referencedField); ok {
		if p.rss > 0 {
			p.mapping(p.current, p.rss, figure(kB))
		}
		return
	}
	// Figures begin with a capital letter, addresses do not.
	if len(line) == 0 || line[0] >= 'A' && line[0] <= 'Z' {
		return
	}
	first, _, _ := bytes.Cut(line, []byte{' '})
	from, to, _ := bytes.Cut(first, []byte{'-'})
	start, errStart := strconv.ParseUint(string(from), 16, 64)
	end, errEnd := strconv.ParseUint(string(to), 16, 64)
	if errStart == nil && errEnd == nil {
		p.current, p.rss = Range{uintptr(start), uintptr(end)}, 0
	}
}

// figure is a number of kB in bytes, 0 if it is none.
func figure(kB []byte) uint64 {
	kB = bytes.TrimSpace(bytes.TrimSuffix(kB, []byte(" kB")))
	n, err := strconv.ParseUint(string(kB), 10, 54)
	if err != nil {
		return 0
	}
	return n << 10
}
