// Package alloc is the CPU heap: size classes, thread heaps, pages, spans and huge blocks, all in
// freestanding Go. docs/architecture.md and docs/heap.md explain it, and docs/glossary.md maps
// names in this package to the field's words.
//
// # The story of one malloc
//
// malloc in C rounds the size to a class and pops a block from the free list of the calling
// thread's current page of that class ([Heap], [Page]). When that list is empty it calls [Malloc],
// which takes back blocks that other threads freed, carves new ones, or goes to the next page of
// the class. When the heap has none, the pool ([pool]) provides a span, a row of 64 KiB slices of a
// segment that is mapped from the kernel. Its bytes are charged to a tier first ([reserve.go]).
// Above [sizeclass.MaxSize] a block is a span or a mapping of its own ([hugealloc.go], [huge.go]).
//
// # The story of one free
//
// free in C looks the address up in the page map (two loads, [pagemap.go]) and finds the page. If
// the page belongs to the calling thread's heap, it pushes the block on the page's list, or on the
// class's thread-cache free list ([CacheList]). Another thread's block goes on a remote-free queue
// to its owner ([RemoteQueue]), or is pushed on the page's remote list by one compare-and-swap
// (freeRemote). An emptied page returns to the pool, and its memory to the kernel after a delay
// ([purge.go]).
//
// # Ownership
//
// One thread at a time owns a [Thread], which has a [Heap] for each hint. Only the owner touches
// their lists and the owner-written line of their pages. A thread that ends abandons it whole, and
// the next new thread adopts it ([Acquire]). Heaps and page descriptors are never unmapped, so a
// late reader sees a descriptor, perhaps a reused one, and never faults.
//
// # Locks
//
// heapsLock guards the list of abandoned threads, and poolLock everything in poolState. They are
// never held together except across fork and in signal handlers, and heapsLock is taken first
// (package lockrank has the order of all locks). A lock refuses a thread that holds it already, in
// a signal handler; see spanalloc.go.
//
// Segments are mapped under poolLock; memory gets its policy (mbind without a move); and mincore
// tells whether a few slices are resident (sparse). What holds no contents is given back under it:
// reservations and mappings that failed are unmapped ([segment.go]), and so are guards
// ([guardpages.go]) when addresses are scarce; what huge pages left in a free segment is discarded
// (dropLeft). The memory of spans and blocks is discarded, moved, unmapped and counted by nodes
// without it, and a span in use is held meanwhile ([migrationpin.go]).
//
// # The page heap
//
// The files that tests/verify/pageheap_test.go lists are the page heap: spans, placements, purging
// and migration. They name nothing that the other files, the thread heap's, declare, such as
// [Thread] or [Heap].
package alloc
