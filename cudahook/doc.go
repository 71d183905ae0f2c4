// Package cudahook is the device heap: it decides which address a program gets when it asks a CUDA
// device for memory, and when that memory is reused, returned to the driver, or taken from the host
// instead. It keeps its accounts in host memory and never calls the driver: it tells its caller
// what to call, one action at a time (request.go). docs/device-heap.md explains it, and
// docs/glossary.md maps names in this package to the field's words.
//
// It is freestanding Go (docs/runtime.md).
//
// # Reuse
//
// A freed block is not handed out again until all work that was given to any stream before its
// free, and may touch it, is done. There are four ways to that:
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
// While any stream captures a graph nothing is waited for or recorded, and frees are held.
//
// # One allocation
//
// A stream-ordered request takes the heap's lock and the first block of the stream's exact-size bin
// for its size: most end here. Else the stream's exact-size bins are merged into its bins, and the
// better of the best fits in its bins and in the global ones is split to size. Else other streams'
// lists are merged, and events of pending frees and fences of other streams are queried (more).
// Else a segment is mapped. Before that, segments are returned that were idle for 10 s, or that the
// soft cap or a nearly full device leave no room for (grow, shrink). When that fails, shortage
// tries other streams' blocks, idle segments, waiting for the device, other contexts' pending frees
// and idle segments, a smaller segment, and the host; then the request is refused. Most calls on a
// device's primary context need no Request (Take, Give).
//
// Memory that is not worth keeping is looked for on these slower ways and at plain frees only. A
// program that is idle, or lives on its exact-size bins, keeps its cache until OpTrim.
//
// # Sizes
//
// Requests below 1 MiB are split from segments of 2 MiB. Larger ones that are stream-ordered, and
// all with TA_CUDA_SUBALLOC=all, are split from segments of TA_CUDA_SEGMENT_SIZE, or of their own
// size from 10 MiB on, which may be split later. Other plain ones have segments of their own. These
// are never split, because the driver names them by their start and size (IPC, GPUDirect). One is
// reused for requests of at least 7/8 of it.
//
// With TA_CUDA_MANAGED all segments are managed memory: those of the pool of spilled blocks prefer
// the host, and serve cold requests at once; all others prefer the device (managed.go).
//
// With TA_CUDA_ZERO a segment is cleared when it is mapped. A block that is handed out again has
// what its last owner wrote.
//
// # Locks
//
// Each context's heap has a lock, held within one step only. tableLock guards the table of
// contexts, the peers and the figures of ended contexts, and is taken before it. No two heaps'
// locks are held at once, except across fork. The locks of the trace and of the history are held
// alone. A lock knows its owner: a request of a signal handler that has interrupted its own
// thread's step is passed on to the driver, and memory that it frees is lost.
package cudahook
