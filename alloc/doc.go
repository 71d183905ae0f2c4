// Package alloc is the CPU heap: size classes, thread heaps, pages, spans and
// huge blocks, all in freestanding Go.
//
// # The story of one malloc
//
// malloc in C rounds the size to a class and pops a block from the free list of
// the calling thread's current page of that class ([Heap], [Page]). When that
// list is empty it comes here: [Malloc] takes back blocks that other threads
// freed, carves never-used ones, or moves on to the next page of
// the class. When the heap has none, the pool ([pool]) hands out a span, a row of
// 64 KiB slices, from a segment mapped from the kernel; its bytes are charged to a
// tier first ([charge.go]). Above [MaxClass] a block is a mapping of its own
// ([huge.go]).
//
// # The story of one free
//
// free in C looks the address up in the page map (two loads, [pagemap.go]), finds
// the page, and, if the page belongs to the calling thread's heap, pushes the
// block on the page's list, or on the class's spill list ([Spill]). Another thread's block
// goes on a ring to its owner ([Ring]), or else is pushed on the page's
// remote list by one compare-and-swap ([remote.go]). An emptied page goes back to
// the pool, and its memory to the kernel after a delay ([purge.go]).
//
// # Ownership
//
// A [Thread], with a [Heap] for each hint, is owned by one thread at a time; only the
// owner touches their lists and the owner-written line of their pages. When a thread dies
// it is abandoned whole and the next new thread adopts it ([Acquire]). Heaps and page
// descriptors are never unmapped, so a late reader sees a descriptor, perhaps a
// reused one, and never a fault.
//
// # Locks
//
// There are two, never held together but across fork, heapsLock first: heapsLock
// (the list of abandoned threads) and poolLock (everything in poolState). New mappings
// are made under poolLock; memory is discarded, moved and unmapped without it, and a
// span is held while that is done to it in use ([move.go]). A lock
// refuses a thread that holds it already, in a signal handler; see emergency.go.
package alloc

import "tieralloc/internal/config"

// Levels of the events that this package puts into the log.
const (
	logError = config.LogError
	logInfo  = config.LogInfo
	logDebug = config.LogDebug
)
