// Package cudahook is the device heap: it decides which address a program gets when it asks a CUDA
// device for memory, and when that memory is reused, returned to the driver, or taken from the host
// instead. It keeps its data in host memory and never calls the driver: it returns to its C caller
// what to call, one action at a time (request.go). docs/device-heap.md explains it, and
// docs/glossary.md maps names in this package to the field's words.
//
// It is freestanding Go (docs/runtime.md).
//
// # Reuse
//
// A freed block is not handed out again until all work that was submitted before its free, on any
// stream that may use it, has finished. There are four ways to ensure that:
//
//	the same stream    work of one stream runs in order. So a block freed behind a stream's work
//	                   (OpStreamFree) may be reused by that stream at once: the block is local, of
//	                   the stream's cache
//	wait               a plain free (OpFree) waits until the block's context, and those with peer
//	                   access to it, are idle, as the driver's does; the block is global
//	events             with TA_CUDA_REUSE=event, for blocks that several streams work with, and for
//	                   streams that end: the block is pending with others that wait
//	                   for the same events, and global when these have happened
//	a stream's wait    where memory is short, a stream waits on the device for another one's event,
//	                   and takes that one's block
//
// While any stream captures a graph, the heap waits for nothing and records no events, and freed
// blocks are held.
//
// # One allocation
//
// A stream-ordered request takes the heap's lock and the first block of the stream's exact-size bin
// for its size. Most requests end here. Otherwise the stream's exact-size bins are merged into its
// bins. The best fit in its bins and the best fit in the global ones are compared, and the smaller
// is split to size (obtain). Otherwise other streams' exact-size bins are merged, and the events of
// pending frees and of other streams are queried (more). Otherwise a segment is mapped. Before
// that, idle segments are returned that were idle for 10 s, or that must make room because of the
// soft cap or a nearly full device (grow, shrink).
//
// If the driver or a cap refuses the segment, shortage tries other streams' blocks, idle segments,
// waiting for the device, other contexts' pending frees and idle segments, a smaller segment, and
// the host. If all fail, the request is refused. Most calls on a device's primary context need no
// Request (Take, Give).
//
// Idle memory is returned only on these slower paths and at plain frees. A program that is idle, or
// that finds all its blocks in exact-size bins, keeps its cache until OpTrim.
//
// # Sizes
//
// Requests below 1 MiB are split from segments of 2 MiB. Larger stream-ordered requests are split
// from segments of TA_CUDA_SEGMENT_SIZE; from 10 MiB on they get a segment of their own size, which
// may be split later. With TA_CUDA_SUBALLOC=all the same holds for plain requests. Without it, a
// larger plain request gets a whole segment, which is never split, because the driver identifies it
// by its start and size (IPC, GPUDirect). A whole segment is reused for requests of at least 7/8 of
// it.
//
// Where the driver has virtual memory management, stream-ordered requests from 1 MiB on are split
// from expandable segments instead (reservation.go).
//
// With TA_CUDA_MANAGED all segments are managed memory. Segments of the spill pool prefer the host,
// and serve cold requests first. All others prefer the device (managed.go).
//
// With TA_CUDA_ZERO a segment is cleared when it is mapped. A block that is reused still holds what
// its last owner wrote.
//
// # Locks
//
// Each context's heap has a lock, held within one step only. tableLock guards the table of
// contexts, the peers and the figures of ended contexts, and is taken before a heap's lock. No two
// heaps' locks are held at once, except across fork. The locks of the trace and of the history are
// held alone. A lock knows its owner. If a signal handler interrupts a step of its own thread, its
// requests are passed on to the driver, and memory that it frees is lost.
package cudahook
