package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"github.com/google/pprof/profile"
)

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
