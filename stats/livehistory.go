package stats

import (
	"sync/atomic"
	"unsafe"

	"tieralloc/internal/raw"
)

// LiveHistory follows the LivePage in the file of a process that measures heat: the last samples
// and moves. Each ring has one writer, the thread that follows.
//
// Begun counts the entries that were started, Done those that are complete; entry n is in slot
// n modulo the size. A reader loads Done, copies the ring, and loads Begun. Of the entries below
// Done those are whole that no later one has begun to overwrite: n + size >= Begun.
type LiveHistory struct {
	raw.OffHeap
	SamplesBegun, SamplesDone uint64
	MovesBegun, MovesDone     uint64
	Samples                   [HistorySamples]HeatSample
	Moves                     [HistoryMoves]HeatMove
}

// Sizes of the rings.
const (
	HistorySamples = 64
	HistoryRows    = 512
	HistoryMoves   = 256
)

// LiveHistorySize is how much longer the file is with a LiveHistory, in bytes.
const LiveHistorySize = (unsafe.Sizeof(LiveHistory{}) + raw.Page - 1) &^ (raw.Page - 1)

// HeatSample is the heap at one moment, by rows in the order of their addresses.
type HeatSample struct {
	UnixNs uint64
	Rows   uint64 // <= HistoryRows
	Row    [HistoryRows]HeatRow
}

// HeatRow is memory of about one heat in one tier.
type HeatRow struct {
	Start uint64
	Pages uint32 // of 4 KiB
	Heat  uint8  // as package history scales it
	Tier  uint8  // config's number
	_     uint16
}

// HeatMove is memory that moved to another tier.
type HeatMove struct {
	UnixNs     uint64
	Start, End uint64
	Bytes      uint64 // of it that moved
	From, To   uint8  // tiers, config's numbers; HeatSwap
	Cause      uint8  // Heat…
	_          [5]uint8
}

// HeatSwap is the destination of memory that was paged out.
const HeatSwap = 3

// Causes of moves.
const (
	HeatCapExceeded uint8 = iota
	HeatRoom
	HeatHotter
	HeatColder
	HeatPagedOut
	HeatCauses
)

// history returns the LiveHistory of this process, nil if there is none.
func history() *LiveHistory {
	if live.size <= LiveSize || !LiveOn() || raw.Pid() != live.pid {
		return nil
	}
	return (*LiveHistory)(raw.Ptr(live.page + LiveSize))
}

// KeepSample adds a sample of rows, of which it takes the first HistoryRows.
func KeepSample(rows []HeatRow) {
	h := history()
	if h == nil {
		return
	}
	n := h.SamplesDone
	atomic.SwapUint64(&h.SamplesBegun, n+1) // see LiveBegin
	s := &h.Samples[n%HistorySamples]
	s.UnixNs = raw.Clock(raw.ClockReal)
	s.Rows = uint64(copy(s.Row[:], rows))
	atomic.StoreUint64(&h.SamplesDone, n+1)
}

// KeepMove adds a move, whose time is now.
func KeepMove(m HeatMove) {
	h := history()
	if h == nil {
		return
	}
	m.UnixNs = raw.Clock(raw.ClockReal)
	n := h.MovesDone
	atomic.SwapUint64(&h.MovesBegun, n+1)
	h.Moves[n%HistoryMoves] = m
	atomic.StoreUint64(&h.MovesDone, n+1)
}
