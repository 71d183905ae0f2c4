// Package cudahook is the device heap: which address a program gets when it asks a CUDA
// device for memory, and when that is reused, given back, or taken from the host instead. It
// keeps its accounts in host memory and never calls the driver: it tells its caller what
// to call, one action at a time (request.go).
//
// It is freestanding Go (docs/runtime.md).
//
// # Reuse
//
// A freed block is not handed out again until all that was given to any stream before its
// free, and may touch it, is done. There are four ways to that:
//
//	the same stream    work given to a stream runs in order, so what was freed behind a stream's
//	                   work (OpStreamFree) may be used again by that stream at once: the block
//	                   is local, of the stream's tag
//	wait               a plain free (OpFree) waits until the block's context, and those with peer
//	                   access to it, are idle, as the driver's does; the block is global
//	events             with TA_CUDA_REUSE=event, for blocks that several streams work with, and
//	                   for streams that end: the block is pending in a batch, and global when the
//	                   batch's events have happened
//	a stream's wait    where memory is short, a stream waits on the device for another one's
//	                   event, and takes that one's block
//
// While any stream captures a graph nothing is waited for or recorded, and frees are held.
//
// # One allocation
//
// A stream-ordered request takes the heap's lock and the first block of the stream's quick
// list for its size: most end here. Else the stream's quick lists are merged into its bins,
// and the better of the best fits in its bins and in the global ones is cut to size. Else other
// streams' lists are merged, events of batches are asked for, and fences of other streams
// (more). Else a segment is mapped, after what is due has been given back: what was idle
// for 10 s, what the soft cap or a nearly full device leave no room for (grow, shrink). When
// that fails: other streams' blocks, idle segments, waiting for the device, other contexts'
// pending frees and idle segments, a smaller segment, the host (shortage); then the request is
// refused. Most calls on a device's primary context get by without a Request (Take, Give).
//
// What is not worth keeping is looked for on these slower ways and at plain frees only: a
// program that does nothing, or lives on its quick lists, keeps what it has until OpTrim.
//
// # Sizes
//
// Requests below 1 MiB are cut from segments of 2 MiB. Larger ones that are stream-ordered, and
// all with TA_CUDA_SUBALLOC=all, from segments of TA_CUDA_SEGMENT_SIZE, or of their own size from
// 10 MiB on, that may be cut later. Other plain ones have segments of their own, which are
// never cut, since the driver names them by their start and size (IPC, GPUDirect); one is
// reused for requests of at least 7/8 of it.
//
// With TA_CUDA_MANAGED all segments are managed memory: those of the pool of spilled blocks
// prefer the host, and get what cold requests ask for at once, all others the device
// (managed.go).
//
// With TA_CUDA_ZERO a segment is cleared when it is mapped; a block that is handed out again has
// what its last owner wrote.
//
// # Locks
//
// Each context's heap has a lock, held within one step only. tableLock, for the table of
// contexts, the peers and what devices keep of ended contexts, is taken before it. No two heaps'
// locks are held at once, but across fork; the locks of the trace and of the history are held
// alone. A lock knows its owner: what a signal handler asks that has interrupted its own
// thread's step is passed on to the driver, and what it frees is lost.
package cudahook
