package heat

import "fmt"

// Source measures how often regions of the own process are touched. It is used by one goroutine.
type Source interface {
	// Name is one word or two.
	Name() string

	// WritesOnly reports that the source does not see reads.
	WritesOnly() bool

	// Probe reports why the source does not work here, in a line that names the file or the call,
	// what it said, and what is needed. It leaves nothing behind.
	Probe() error

	// Start sets the regions, which are in order and do not overlap. A source that is started
	// takes others for them, at little cost: the heap grows and shrinks. If that fails, all that is
	// left is to call Stop.
	Start(regions []Range) error

	// Sample sets rates, one for each region of the last Start, to an estimate of the touches per
	// second of all pages of the region together (see rate, in window.go). It watches the memory
	// for a window, in which it sleeps. The source chooses the window's length, from milliseconds
	// to seconds, by how much was touched in the last one. A region that is no longer mapped has
	// rate 0.
	//
	// Regions that are not resolution bytes apart may share their rate: in the mean over their
	// bytes, where that differs. A resolution of 0 says that each region is told apart.
	//
	// An error ends the source: all that is left is to call Stop.
	Sample(rates []Rate) (resolution uintptr, err error)

	// Stop ends what Start began. The source may be started again.
	Stop()
}

// Sources are all sources, best first. Referenced bits come before DAMON: where each region is a
// mapping of its own they are exact, and need neither root nor the only DAMON of the machine.
func Sources() []Source {
	return []Source{&Referenced{}, &Damon{}, &Written{}, &SoftDirty{}}
}

// First starts the first source that works, and returns its index. Where there is none that is the
// number of sources. The errors say why the sources before it do not work.
//
// A source that takes regions of more than want bytes together does not suit. First takes a sample
// to find out. If want is 0, any source suits.
//
// When a source fails later, the caller stops it and passes the sources that follow it.
func First(sources []Source, regions []Range, want uintptr) (int, []error) {
	var refused []error
	for i, s := range sources {
		err := s.Probe()
		if err == nil {
			if err = begin(s, regions, want); err == nil {
				return i, refused
			}
			s.Stop()
		}
		refused = append(refused, fmt.Errorf("%s: %w", s.Name(), err))
	}
	return len(sources), refused
}

// begin starts a source, and reports an error if it does not suit.
func begin(s Source, regions []Range, want uintptr) error {
	if err := s.Start(regions); err != nil || want == 0 {
		return err
	}
	resolution, err := s.Sample(make([]Rate, len(regions)))
	if err == nil && resolution > want {
		err = fmt.Errorf("it tells apart %d bytes only; regions here are of %d", resolution, want)
	}
	return err
}
