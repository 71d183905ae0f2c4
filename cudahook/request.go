package cudahook

import "tieralloc/internal/raw"

// A Request is one call of the program or of the C API while the device heap serves it. The heap
// never calls the driver. Step returns an Action. C carries it out, with no lock of the heap held,
// and calls Step again with the driver's answer, until the action is ActDone or ActPass.
//
// All fields are words, so that C sees the same structure (interpose/layout.h).
type Request struct {
	raw.OffHeap

	// What is asked; set before the first step.
	Op      Op     // what the program asks for
	Token   uint64 // the thread's name for locks
	Now     uint64 // monotonic time in nanoseconds, coarse
	Context uint64 // the CUcontext that is current; 0: the primary one of Device
	Device  uint64 // ordinal, where Context is 0
	Stream  uint64 // CUstream, for stream-ordered operations
	Address uint64 // the pointer; the block's, once an allocation is done
	Bytes   uint64 // the bytes asked for
	Count   uint64 // OpWarmup: blocks
	// the thread's hint, used if no rule matches: 1 + a hint of internal/config; 0:
	// TA_DEFAULT_HINT. OpWarmup: 1 for the first size of a list
	Hint    uint64
	Allowed uint64 // rules that match by the caller's object, as in alloc.Malloc

	// Where snapshots are taken: the thread's PyThreadState, and the minor version of its Python 3;
	// 0: none.
	Python      uint64
	PythonMinor uint64

	// The driver's answer to the last action.
	Result uint64 // CUresult; with ActDone: what the program gets
	Value  uint64 // address, event, context or figure
	Extra  uint64 // a second figure

	Number uint64 // OpRange, and while blocks are sampled (sampled.go): the block's

	// What the action is about.
	OnEvent      uint64
	OnStream     uint64
	OnContext    uint64
	OnAddress    uint64
	OnBytes      uint64
	OnPiece      uint64 // ActMapAt: the most bytes of one piece
	OnHost       uint64 // ActSave, ActRestore, ActFreeHost: page-locked memory of the host; 0: none
	OnUsed       uint64 // ActUnreserve: the bytes from OnAddress on that may be mapped
	OnAccess     uint64 // ActMapAt, ActAccess: further devices that get access, a bit each
	PreferDevice uint64 // ActMapManaged: the preferred location: 1 the device, 0 the host

	// The answer to ActContext, with Value and Extra.
	UUID [2]uint64
	PCI  uint64 // its address on the bus (stats.Device)

	// The heap's own state between steps; zero before the first.
	state uint64
	notes

	other    uint64 // the heap (heap.place) that it waits for
	deadline uint64 // OpCapture: until when it waits, in nanoseconds

	spoiling uint64 // the context whose captures its call would invalidate (capture.go); 0: none

	caller uint64 // the context that was current, or meant, when the request began
}

// notes are the data of a request's phase. They are zero when a request enters a heap.
type notes struct {
	object      uint64 // address of the block, segment, stream cache or group of pending frees
	event       uint64 // address of the stream event
	naming      uint64 // 1 + the hash of the stream that the action passes to the driver
	unmapping   uint64 // bytes of the segment that is returned, and 1 if it is on the host
	owner       uint64 // the heap of that segment (heap.place)
	returned    uint64 // bytes that the driver took back while it was short of memory
	foreign     uint64 // bytes of the foreign block that is freed
	nextContext uint64 // index of the next context to wait for (heap.contextAt)
	until       uint64 // the heap's clock when that wait began
	failure     uint64 // CUresult of a wait that failed within a free
	warmBlocks  uint64 // blocks of the segment that is mapped for a warm-up
	visit       uint64 // its number among the requests that visit stream caches
	region      uint64 // address of the pool that falls asleep or wakes
	rising      uint64 // bytes that are charged for a region that wakes, and not mapped
	seen        uint64 // heaps that it has seen, a bit each
	renewed     uint64 // how often it began to wait anew (renewals)
}

// An Op is what a request is for.
type Op uint64

// The operations.
const (
	OpAlloc       Op = iota + 1 // cuMemAlloc: safe on every stream at once
	OpFree                      // cuMemFree
	OpStreamAlloc               // ta_cuda_malloc: for use on Stream first
	// ta_cuda_free, cuMemFreeAsync: after what Stream has been given; Count 1: that includes all
	// work on the block
	OpStreamFree
	OpRecord // the block is in use on Stream, too
	// an allocation of the driver's own, of Bytes: ActDriver in between; Count 1: managed memory
	OpForeign
	// which block Address lies in: ActDone with its start in Value, its size in Extra, and Number;
	// ActPass: not a block of the heap
	OpRange
	// the driver treats the memory at Address specially from now on (IPC, attributes): its segment
	// is unmapped once it is idle
	OpNonReusable
	// cuMemGetInfo: the free bytes in Value and all bytes in Extra, as the program is to see them
	OpInfo
	OpTotal      // cuDeviceTotalMem of Device: lowers Extra to the hard cap
	OpContextEnd // Context has ended, and its memory is freed
	OpStreamEnd  // Stream is about to be destroyed
	OpCapture    // Count: 1 a stream begins to capture a graph, 0 it has ended
	OpPeer       // Context may access the memory of context Address
	// allocations on Device belong to graph pool (Address, Bytes); Count: 1 from now on, 0 no
	// longer, 2 the pool is gone, 3 from now on, and the pool is a region
	OpPool
	OpTrim   // unmap cached memory until Bytes are left
	OpWarmup // fill the cache with Count blocks of Bytes
	// region (Address, Bytes) of Device gives its memory back; Count 1: the host keeps its contents
	OpSleep
	OpWake     // it gets memory again
	OpCoalesce // merge all free blocks that may be merged
	// bytes of blocks in use in Value and of segments in Extra, and their peaks in OnBytes and
	// OnUsed; Count: peaks that start anew, 1 the first, 2 the second
	OpPoolFigures
)

// An Action is what Step asks for. A driver call needs Request.Context; C makes it current if it is
// not. C makes every call in the relaxed mode of stream capture.
type Action uint64

// The actions.
const (
	ActDone Action = iota // the request is served: Result, Address
	ActPass               // pass the program's call to the driver unchanged
	// pass the program's call to the driver, then Step again with Result (and the address in Value)
	ActDriver
	// Context is new: Value = its device's ordinal, Extra = the device's memory in bytes, UUID, PCI
	ActContext
	ActPrimary // Value = the primary context of Device, retained
	ActMap     // cuMemAlloc of OnBytes: Value = address
	// cuMemAllocManaged of OnBytes, accessed by the device, by PreferDevice: Value = address;
	// CUDA_ERROR_NOT_SUPPORTED: the device has no managed memory
	ActMapManaged
	ActUnmap       // cuMemFree of OnAddress
	ActZero        // clear OnBytes at OnAddress; the work is done when the call returns
	ActSynchronize // cuCtxSynchronize of OnContext
	ActEventCreate // a new event without timing: Value
	ActEventRecord // OnEvent is recorded on OnStream
	// OnEvent is recorded for all of OnContext (driver 12.5 and later; else
	// CUDA_ERROR_NOT_SUPPORTED)
	ActEventRecordContext
	ActEventQuery // has OnEvent happened: Result 0 or 600
	ActStreamWait // OnStream waits for OnEvent
	ActYield      // let other threads run for a moment
	ActInfo       // cuMemGetInfo: Value = free, Extra = total

	// cuMemAddressReserve of OnBytes, at a multiple of 2 MiB: Value = address;
	// CUDA_ERROR_NOT_SUPPORTED: the device has no virtual memory management
	ActReserve
	ActUnreserve // unmap OnUsed bytes at OnAddress, and return the addresses
	ActMapAt     // map OnBytes of new memory at OnAddress, in pieces of OnPiece at most
	ActUnmapAt   // unmap OnBytes at OnAddress, and return the memory
	ActSave      // copy OnBytes at OnAddress to OnHost, or to new memory of the host: Value
	ActRestore   // copy OnBytes back from OnHost
	ActFreeHost  // free OnHost, which has OnBytes
	ActAccess    // the devices in OnAccess may access OnBytes at OnAddress

	ActForget // SampleBegin: the block Number is about to be free
	ActSample // ActDone, after the sample that SampleBegin and SampleEnd take
)

// CUresult values that the heap returns or examines (CUDA driver API, cuda.h).
const (
	Success            uint64 = 0
	ErrorInvalidValue  uint64 = 1
	ErrorOutOfMemory   uint64 = 2
	ErrorDeinitialized uint64 = 4
	ErrorNotReady      uint64 = 600

	errorNotSupported uint64 = 801
	errorCapture      uint64 = 900 // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
)
