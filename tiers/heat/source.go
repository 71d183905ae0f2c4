package heat

import "fmt"

// Source counts accesses to regions of the own process. It is used by one goroutine.
type Source interface {
	// Name is one word or two.
	Name() string

	// WritesOnly reports that the source does not see reads.
	WritesOnly() bool

	// Probe reports why the source does not work here, in a line that names the file or the call,
	// what it said, and what is needed. It leaves nothing behind.
	Probe() error

	// Start begins to count accesses to regions, which are in order and do not overlap.
	Start(regions []Range) error

	// Sample sets counts, one for each region of Start, to the accesses since Start or the last
	// Sample. Their unit is the source's own: only counts of one source can be compared. Regions
	// that are not resolution bytes apart may share their count.
	//
	// An error ends the source: all that is left is to call Stop.
	Sample(counts []uint32) (resolution uintptr, err error)

	// Stop ends what Start began. The source may be started again.
	Stop()
}

// Sources are all sources, best first.
func Sources() []Source {
	return []Source{&Damon{}, &Referenced{}, &Written{}, &SoftDirty{}}
}

// First starts the first source that works, and returns its index. Where there is none that is the
// number of sources. The errors say why the sources before it do not work.
func First(sources []Source, regions []Range) (int, []error) {
	var refused []error
	for i, s := range sources {
		err := s.Probe()
		if err == nil {
			if err = s.Start(regions); err == nil {
				return i, refused
			}
			s.Stop()
		}
		refused = append(refused, fmt.Errorf("%s: %w", s.Name(), err))
	}
	return len(sources), refused
}
