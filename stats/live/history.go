package live

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"tieralloc/stats"
)

// ErrNoHistory says that the process does not measure heat.
var ErrNoHistory = errors.New("no heat is measured")

// History is what a page has kept of heat, oldest first.
type History struct {
	Samples []Sample
	Moves   []stats.HeatMove
}

// Sample is the heap at one moment.
type Sample struct {
	UnixNs uint64
	Rows   []stats.HeatRow // in the order of their addresses, without an overlap
}

// History reads the samples and moves that are whole. It never waits.
func (p *Page) History() (*History, error) {
	if p.other != nil {
		return nil, fmt.Errorf("%s: %w", p.path, p.other)
	}
	if p.head.Size != uint64(stats.LiveSize+stats.LiveHistorySize) {
		return nil, ErrNoHistory
	}
	memory := make([]uint64, unsafe.Sizeof(stats.LiveHistory{})/8)
	h := (*stats.LiveHistory)(unsafe.Pointer(unsafe.SliceData(memory)))
	text := unsafe.Slice((*byte)(unsafe.Pointer(h)), 8*len(memory))
	const counts = unsafe.Offsetof(stats.LiveHistory{}.Samples)
	err := p.read(text[:counts], stats.LiveSize)
	samplesDone, movesDone := h.SamplesDone, h.MovesDone
	err = errors.Join(err, p.read(text[counts:], stats.LiveSize+counts),
		p.read(text[:counts], stats.LiveSize))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.path, err)
	}
	first, end, ok := entries(h.SamplesBegun, samplesDone, stats.HistorySamples)
	firstMove, endMove, okMoves := entries(h.MovesBegun, movesDone, stats.HistoryMoves)
	if !ok || !okMoves {
		return nil, fmt.Errorf("%s: damaged live page: more is kept than was begun", p.path)
	}
	var all History
	for n := first; n < end; n++ {
		s, ok := sampleIn(&h.Samples[n%stats.HistorySamples])
		if !ok {
			return nil, fmt.Errorf("%s: damaged live page: a sample is not in order", p.path)
		}
		all.Samples = append(all.Samples, s)
	}
	for n := firstMove; n < endMove; n++ {
		m := h.Moves[n%stats.HistoryMoves]
		if m.Start >= m.End || m.From > stats.HeatSwap || m.To > stats.HeatSwap ||
			m.Cause >= stats.HeatCauses {
			return nil, fmt.Errorf("%s: damaged live page: a move leads nowhere", p.path)
		}
		all.Moves = append(all.Moves, m)
	}
	return &all, nil
}

// entries is which entries of a ring are whole, from first up to end; see stats.LiveHistory.
func entries(begun, done, size uint64) (first, end uint64, ok bool) {
	if begun > size {
		first = begun - size
	}
	return first, max(first, done), begun >= done
}

// sampleIn copies a sample. ok is false if no library wrote it.
func sampleIn(s *stats.HeatSample) (_ Sample, ok bool) {
	if s.Rows > stats.HistoryRows {
		return Sample{}, false
	}
	end := uint64(0)
	for i := range s.Rows {
		r := &s.Row[i]
		last := r.Start + uint64(r.Pages)<<12
		if r.Start < end || r.Pages == 0 || last < r.Start || r.Tier > 2 {
			return Sample{}, false
		}
		end = last
	}
	return Sample{s.UnixNs, slices.Clone(s.Row[:s.Rows])}, true
}
