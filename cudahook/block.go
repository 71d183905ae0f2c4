package cudahook

import "tieralloc/internal/raw"

// A block is a part of a segment, or an allocation of the driver's own (stateForeign, without a
// segment). The blocks of a segment cover it without gaps, in the order of their addresses:
//
//	first.address = segment.address, last.address + last.bytes = end of the segment
//	b.after.address = b.address + b.bytes
//	asked <= bytes while it is in use
//	table[b.address] = b
//
// Two neighbours that may be merged (heap.joins) are never both in bins.
type block struct {
	raw.OffHeap
	address uint64
	bytes   uint64
	asked   uint64 // bytes of the request; kept while the block is in an exact-size bin
	number  uint64 // in use: its serial number; free: the heap's clock when it was freed
	since   uint64 // free: when it, or its larger part, was freed, in nanoseconds; 0: not known yet

	segment       *segment
	before, after *block       // its neighbours
	prev, next    *block       // in its list; an exact-size bin has no prev
	cache         *streamCache // in use: the one it was handed out from; free: the one it is in
	events        *streamEvent // in use: further streams that use it
	state         uint64

	claim, claimed uint64 // the round of a warm-up, and the bytes of the block that it counts on
}

// States of a block.
//
//	free   --obtain--> in use
//	in use --OpStreamFree on a stream with a cache--> exact, or free (of that cache)
//	in use --> freeing (the device is waited for) --> free (global)
//	in use --> pending (events are waited for) -----> free (global)
//	in use --> held (a graph is captured) --> freeing --> free (global)
//	exact  --flush--> free
//	free (of a stream cache) --an event has happened--> free (global)
const (
	stateGone    uint64 = iota // no block: the descriptor is spare
	stateInUse                 // allocated to the program
	stateExact                 // in an exact-size bin of its stream cache
	stateFree                  // in bins of its stream cache
	stateFreeing               // a request waits for the device
	statePending               // a pending free
	stateHeld                  // freed while a graph is captured
	stateTaken                 // a request moves it from one stream cache to another
	// a driver call failed during its free: never reused
	stateLost
	stateForeign // an allocation of the driver's own
)

// Units and bounds of sizes, in bytes.
const (
	granule     = 512      // of block sizes and addresses
	smallMax    = 1 << 20  // requests below it come from small segments
	smallBytes  = 2 << 20  // a small segment
	mapUnit     = 2 << 20  // the driver's unit of allocation
	ownMin      = 10 << 20 // suballocated requests from here on get a segment of their own size
	splitRest   = 1 << 20  // a large block is split if more than this remains
	maxRequest  = 1 << 46
	numberBase  = 1 << 62 // makes block numbers differ from the driver's buffer ids
	numberIndex = 48      // lowest bit of the heap's index
)

// Kinds of segments. A block never changes its kind.
const (
	kindSmall uint64 = iota // blocks below smallMax
	kindLarge               // split into blocks
	kindWhole               // one block, never split: the driver knows its start and size
)

// rounded returns the size of the block for a request. Precondition: n <= maxRequest.
func rounded(n uint64) uint64 { return (n + granule - 1) &^ (granule - 1) }

func mapRounded(n uint64) uint64 { return (n + mapUnit - 1) &^ (mapUnit - 1) }
