package main

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/pprof/profile"
)

// A profileFrame is a function in a stack.
type profileFrame struct {
	name string // printable
	file string
	line int64
}

// where is the place in the source, or "" if it is not known.
func (f profileFrame) where() string {
	switch {
	case f.file == "":
		return ""
	case f.line <= 0:
		return printable(f.file)
	}
	return printable(f.file) + ":" + strconv.FormatInt(f.line, 10)
}

// frames returns the functions of a stack, callees first. An inlined function has a frame as any
// other.
func frames(s *profile.Sample) (list []profileFrame) {
	for _, l := range s.Location {
		if len(l.Line) == 0 {
			list = append(list, profileFrame{name: unnamed(l)})
		}
		for _, line := range l.Line {
			name, file := line.Function.Name, line.Function.Filename
			if isPython(l) && file != "" {
				name = pythonName(name, file)
			}
			list = append(list, profileFrame{printable(name), file, line.Line})
		}
	}
	return list
}

// unnamed stands for a function without a name. It is the same in all processes if the address is
// in a file.
func unnamed(l *profile.Location) string {
	if m := l.Mapping; m != nil && m.File != "" {
		return fmt.Sprintf("%s+%#x", printable(filepath.Base(m.File)),
			l.Address-m.Start+m.Offset)
	}
	return fmt.Sprintf("%#x", l.Address)
}

// shortName leaves out the arguments of templates in a name that is too long for a line.
func shortName(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	var short strings.Builder
	depth := 0
	for i, c := range name {
		part := strings.TrimRight(name[:i], "<=>-")
		switch operator := strings.HasSuffix(part, "operator"); {
		case c == '<' && !operator:
			if depth++; depth == 1 {
				short.WriteString("<…>")
			}
			continue
		case c == '>' && !operator && depth > 0:
			depth--
			continue
		}
		if depth == 0 {
			short.WriteRune(c)
		}
	}
	return short.String()
}

// magnitude returns a value without its sign.
func magnitude(v int64) uint64 {
	if v == math.MinInt64 {
		return 1 << 63
	}
	return uint64(max(v, -v))
}

// amount writes a value of a sample type.
func amount(v int64, unit string) string {
	sign := ""
	if v < 0 {
		sign = "-"
	}
	switch unit {
	case "bytes":
		return sign + size(magnitude(v))
	case "count":
		return sign + count(magnitude(v))
	case "nanoseconds":
		return sign + duration(magnitude(v))
	}
	return sign + count(magnitude(v)) + " " + printable(unit)
}

// change is amount with a sign for growth.
func change(v int64, unit string) string {
	if v > 0 {
		return "+" + amount(v, unit)
	}
	return amount(v, unit)
}

// share writes part of whole in percent, signed as part is.
func share(part, whole int64) string {
	if whole <= 0 {
		return none
	}
	return ratio(float64(part) / float64(whole))
}

// foldPython leaves functions of Python and their callers in a profile's stacks: what C does for
// the innermost of them, and the functions of the interpreter that called the outermost, go.
func foldPython(p *profile.Profile) {
	for _, s := range p.Sample {
		first := slices.IndexFunc(s.Location, isPython)
		if first < 0 {
			continue
		}
		last := first
		for last < len(s.Location) && isPython(s.Location[last]) {
			last++
		}
		rest := s.Location[last:]
		for i, interpreter := range rest {
			if interpreter.Mapping != rest[0].Mapping {
				rest = rest[i:]
				break
			}
		}
		s.Location = slices.Concat(s.Location[first:last], rest)
	}
}

// pythonName tells functions of the same name apart by the last parts of their files' paths.
func pythonName(name, file string) string {
	folder, base := filepath.Split(file)
	return fmt.Sprintf("%s (%s)", name, filepath.Join(filepath.Base(folder), base))
}

// isPython reports whether a location is a function of Python, which has no address.
func isPython(l *profile.Location) bool { return l.Mapping == nil && l.Address == 0 }
