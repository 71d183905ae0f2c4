package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
	"github.com/ianlancetaylor/demangle"
)

// debugFolder has debug information in files of its own, by build id.
const debugFolder = "/usr/lib/debug/.build-id"

// A sourceFrame is a function at an address, as symbols or debug information have it.
type sourceFrame struct {
	name  string // as the compiler wrote it
	file  string
	line  int64 // in the file
	start int64 // line of the function's first line
}

// A symbolizer gives names to the locations of a profile.
type symbolizer struct {
	profile   *profile.Profile
	debug     string // folder of debug information
	functions map[functionKey]*profile.Function
	lastID    uint64 // of a function
}

// A functionKey tells functions apart.
type functionKey struct {
	name, file string
	start      int64
}

// symbolize gives names to the locations that have none. It writes a line for each file that
// cannot be used.
func (f *profileFile) symbolize(stderr io.Writer) {
	s := &symbolizer{profile: f.profile, debug: debugFolder}
	for _, err := range s.run(perfMapOf(f)) {
		complain(stderr, err)
	}
}

// run names the locations in files, then those elsewhere by a perf map.
func (s *symbolizer) run(jit *perfMap) (unusable []error) {
	s.functions = map[functionKey]*profile.Function{}
	for _, fn := range s.profile.Function {
		s.lastID = max(s.lastID, fn.ID)
	}
	byMapping := map[*profile.Mapping][]*profile.Location{}
	var elsewhere []*profile.Location
	for _, l := range s.profile.Location {
		switch m := l.Mapping; {
		case len(l.Line) > 0:
		case m == nil || !isFile(m.File):
			elsewhere = append(elsewhere, l)
		default:
			byMapping[m] = append(byMapping[m], l)
		}
	}
	complained := map[string]bool{} // a file has several mappings
	for _, m := range s.profile.Mapping {
		if len(byMapping[m]) == 0 {
			continue
		}
		if err := s.nameMapping(m, byMapping[m]); err != nil && !complained[m.File] {
			complained[m.File] = true
			unusable = append(unusable, err)
		}
	}
	if len(elsewhere) > 0 && jit != nil {
		if err := s.nameElsewhere(jit, elsewhere); err != nil {
			unusable = append(unusable, err)
		}
	}
	return unusable
}

// isFile tells files from the kernel's names for other memory, such as [vdso] and //anon.
func isFile(name string) bool {
	return strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "//")
}

// nameMapping names the locations in a file.
func (s *symbolizer) nameMapping(m *profile.Mapping, locations []*profile.Location) error {
	file, err := openCode(m.File, m.BuildID, s.debug)
	if err != nil {
		return fmt.Errorf("%s: no names from this file: %w", m.File, err)
	}
	defer file.close()
	byAddress := map[uint64][]*profile.Location{}
	for _, l := range locations {
		if at, ok := file.address(l.Address - m.Start + m.Offset); ok {
			byAddress[at] = append(byAddress[at], l)
		}
	}
	addresses := slices.Sorted(maps.Keys(byAddress))
	found, err := file.lookup(addresses)
	for at, stack := range found {
		for _, l := range byAddress[at] {
			s.name(l, stack)
		}
		m.HasFunctions = true
		for i, frame := range stack {
			m.HasFilenames = m.HasFilenames || frame.file != ""
			m.HasLineNumbers = m.HasLineNumbers || frame.line != 0
			m.HasInlineFrames = m.HasInlineFrames || i > 0
		}
	}
	if err != nil {
		return fmt.Errorf("%s: debug information not used: %w", m.File, err)
	}
	return nil
}

// nameElsewhere names the locations in code that was compiled at run time.
func (s *symbolizer) nameElsewhere(jit *perfMap, locations []*profile.Location) error {
	var addresses []uint64
	for _, l := range locations {
		addresses = append(addresses, l.Address)
	}
	slices.Sort(addresses)
	names, err := jit.lookup(slices.Compact(addresses))
	for _, l := range locations {
		if name, ok := names[l.Address]; ok {
			s.name(l, []sourceFrame{{name: name}})
		}
	}
	return err
}

// name gives a location the functions of an address, the innermost first.
func (s *symbolizer) name(l *profile.Location, stack []sourceFrame) {
	for _, frame := range stack {
		l.Line = append(l.Line, profile.Line{Function: s.function(frame), Line: frame.line})
	}
}

// function returns the profile's function for a frame.
func (s *symbolizer) function(frame sourceFrame) *profile.Function {
	key := functionKey{frame.name, frame.file, frame.start}
	fn := s.functions[key]
	if fn == nil {
		s.lastID++
		fn = &profile.Function{ID: s.lastID, Name: demangled(frame.name), SystemName: frame.name,
			Filename: frame.file, StartLine: frame.start}
		s.functions[key] = fn
		s.profile.Function = append(s.profile.Function, fn)
	}
	return fn
}

// longestName bounds what a name expands to, as a power of 2: names of templates may grow without
// bound.
const longestName = 12

// madeFrom matches what GCC adds to the names of the parts and copies that it makes of a function.
var madeFrom = regexp.MustCompile(`(\.(cold|part|isra|constprop|lto_priv)(\.\d+)*)+$`)

// demangled writes a name of C, C++ or Rust as the source has it, without parameters. Other names
// stay.
func demangled(name string) string {
	name = cmp.Or(demangle.Filter(name, demangle.NoParams, demangle.MaxLength(longestName)), name)
	if at := madeFrom.FindStringIndex(name); at != nil && at[0] > 0 {
		return name[:at[0]]
	}
	return name
}
