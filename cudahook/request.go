package cudahook

import "tieralloc/internal/raw"

// A Request is one call of the program, or of the C API, on its way through the device
// heap. The heap never calls the driver: Step returns an Action, C carries it out
// without any lock of ours and calls Step again with what came back, until the action is
// ActDone or ActPass.
//
// All fields are words, so that C sees the same structure (interpose/layout.h).
type Request struct {
	raw.OffHeap

	// What is asked; set before the first step.
	Op      uint64 // an Op
	Token   uint64 // the thread's name for locks
	Now     uint64 // monotonic time in nanoseconds, coarse
	Context uint64 // the CUcontext that is current; 0: the primary one of Device
	Device  uint64 // ordinal, where Context is 0
	Stream  uint64 // CUstream, for stream-ordered operations
	Address uint64 // the pointer; the block's, once an allocation is done
	Bytes   uint64 // what is asked for
	Count   uint64 // OpWarmup: blocks
	// the thread's own, for what no rule matches: 1 + a hint of internal/config; 0:
	// TA_DEFAULT_HINT. OpWarmup: 1 for the first size of a list
	Hint uint64
	Libs uint64 // rules that match by the caller's object, as in alloc.Malloc

	// What the driver said to the last action.
	Result uint64 // CUresult; with ActDone: what the program gets
	Value  uint64 // address, event, context or figure
	Extra  uint64 // a second figure

	Number uint64 // OpRange: the block's

	// What the action is about.
	OnEvent      uint64
	OnStream     uint64
	OnContext    uint64
	OnAddress    uint64
	OnBytes      uint64
	PreferDevice uint64 // ActMapManaged: 1 the memory's place is the device, 0 the host

	// What ActContext tells of the device.
	UUID [2]uint64
	PCI  uint64 // its place on the bus (stats.Device)

	// The heap's own between steps; zero before the first.
	state uint64
	notes

	other    uint64 // the heap (heap.place) that it waits for
	deadline uint64 // OpCapture: until when it waits, in nanoseconds

	spoiling uint64 // the context that it is one of spoilers for

	caller uint64 // the context that was current, or meant, when the request began
}

// notes are what a request's phase works on; a request that enters a heap begins without any.
type notes struct {
	object      uint64 // address of the block, segment, stream cache or group of pending frees
	event       uint64 // address of the stream event
	naming      uint64 // 1 + the place of the stream that the action names (heap.naming)
	unmapping   uint64 // bytes of the segment that is returned, and 1 if it is on the host
	owner       uint64 // the heap (heap.place) that it is of
	returned    uint64 // bytes that the driver took back while it was short of memory
	foreign     uint64 // bytes of the driver's own block that is freed
	nextContext uint64 // from which place on contexts are waited for
	until       uint64 // the heap's clock when that wait began
	failure     uint64 // CUresult of a wait that failed within a free
	warmBlocks  uint64 // of the segment that is mapped for a warm-up
	visit       uint64 // its number among the requests that look at stream caches
	seen        uint64 // heaps that it has seen, a bit each
}

// What a request is for.
const (
	OpAlloc       uint64 = iota + 1 // cuMemAlloc: safe on every stream at once
	OpFree                          // cuMemFree
	OpStreamAlloc                   // ta_cuda_malloc: for use on Stream first
	// ta_cuda_free, cuMemFreeAsync: after what Stream has been given
	OpStreamFree
	OpRecord // the block is in use on Stream, too
	// an allocation of Bytes that the driver serves itself: ActDriver in between
	OpForeign
	// which block Address lies in: ActDone with Value its start, Extra its size, Number;
	// ActPass: not ours
	OpRange
	// the driver treats the memory at Address in a way of its own from now on: it is not kept when
	// it is free
	OpNonReusable
	// cuMemGetInfo: in Value the free bytes, in Extra all, as the program is to see them
	OpInfo
	OpTotal      // cuDeviceTotalMem of Device: in Extra; changes it
	OpContextEnd // Context is gone with all its memory
	OpStreamEnd  // Stream is about to be destroyed
	OpCapture    // Count: 1 a stream begins to capture a graph, 0 it has ended
	OpPeer       // Context may reach the memory of context Address
	// allocations on Device belong to graph pool (Address, Bytes); Count: 1 from now on, 0 no
	// longer, 2 the pool is gone
	OpPool
	OpTrim     // give cached memory back until Bytes are left
	OpWarmup   // fill the cache with Count blocks of Bytes
	OpCoalesce // merge all free blocks that may be merged
)

// What Step asks for. The context that a driver call needs is Request.Context, which C
// makes current for it when it is not. Every call is made with stream capture relaxed.
const (
	ActDone uint64 = iota // the request is served: Result, Address
	ActPass               // hand the program's call to the driver as it is
	// the same, then Step again with Result (and Value: the address it got)
	ActDriver
	// Context is new: Value = its device's ordinal, Extra = the device's memory in bytes, UUID, PCI
	ActContext
	ActPrimary // Value = the primary context of Device, retained
	ActMap     // cuMemAlloc of OnBytes: Value = address
	// cuMemAllocManaged of OnBytes, accessed by the device, by PreferDevice: Value = address;
	// CUDA_ERROR_NOT_SUPPORTED: the device has no managed memory
	ActMapManaged
	ActUnmap       // cuMemFree of OnAddress
	ActZero        // OnBytes at OnAddress set to 0, finished for every stream
	ActSynchronize // cuCtxSynchronize of OnContext
	ActEventCreate // a new event without timing: Value
	ActEventRecord // OnEvent is recorded on OnStream
	// OnEvent is recorded for all of OnContext (driver 12.5 and later; else
	// CUDA_ERROR_NOT_SUPPORTED)
	ActEventRecordContext
	ActEventQuery // has OnEvent happened: Result 0 or 600
	ActStreamWait // OnStream waits for OnEvent
	ActYield      // the thread lets others go first
	ActInfo       // cuMemGetInfo: Value = free, Extra = total
)

// CUresult values that the heap gives or understands (CUDA driver API, cuda.h).
const (
	Success            uint64 = 0
	ErrorInvalidValue  uint64 = 1
	ErrorOutOfMemory   uint64 = 2
	ErrorDeinitialized uint64 = 4
	ErrorNotReady      uint64 = 600

	errorNotSupported uint64 = 801
	errorCapture      uint64 = 900 // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
)
