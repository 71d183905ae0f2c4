package stats

// How much a report says of CUDA devices. Powers of two, so that a masked index is in
// range.
const (
	DeviceMax = 8  // devices
	LeakMax   = 32 // live blocks that are listed for each
)

// The tiers of a device, the index of Device.Tiers.
const (
	DeviceFast uint = iota // the device's own memory
	DeviceSlow             // host memory that blocks were spilled to
	DeviceTierCount
)

// Device is what one CUDA device's heap counts, over all contexts of the process. All
// of it is known to the host; the device is never asked.
//
//	HitsLocal + HitsGlobal + HitsSplit + Misses + ForeignCalls + Refused = AllocCalls
//	BytesReserved = BytesLive + BytesCachedLocal + BytesCachedGlobal + BytesPending + BytesHeld +
//	                BytesPrivate + BytesLost
//	BytesAsked <= BytesLive
//	LargestFree <= BytesCachedLocal + BytesCachedGlobal
//	Tiers[DeviceFast].BytesCurrent = BytesReserved + BytesForeign
//	Tiers[DeviceSlow].BytesCurrent = BytesSpilled
type Device struct {
	Ordinal     uint64    // as the process numbers its devices
	Uuid        [2]uint64 // its 16 bytes as they lie in memory; 0, 0: unknown
	Pci         uint64    // 1 + (domain<<16 | bus<<8 | device<<3); 0: unknown
	BytesDevice uint64    // memory that the device has
	Contexts    uint64    // in which there is a heap now

	Reuse     uint64 // 0: sync, 1: event
	Suballoc  uint64 // 0: small, 1: all
	OnHardcap uint64 // 0: fail, 1: spill
	// 1: segments are managed memory; then on the device, and on the host, is where they prefer to
	// be
	Managed     uint64
	SegmentSize uint64
	CacheLimit  uint64
	StreamLocal uint64 // blocks that the lists of one stream may hold for reuse as they are
	GlobalLimit uint64 // blocks that are kept for all streams; config.NoLimit: no limit

	AllocCalls   uint64 // requests for memory, those that failed and those of the driver too
	FreeCalls    uint64 // frees of blocks that are known
	HitsLocal    uint64 // served by a free block of the same stream, whole
	HitsGlobal   uint64 // served by a block that is free for all streams, whole
	HitsSplit    uint64 // served by a part of a larger free block of either kind
	Misses       uint64 // served by a new segment, spilled ones too
	ForeignCalls uint64 // served by the driver itself
	Refused      uint64 // that failed
	Waits        uint64 // requests that had to wait for work of the device to end
	FreesInvalid uint64 // of freed blocks, or of addresses within a block: refused
	FreesUnknown uint64 // of addresses that are not ours: handed to the driver

	BlocksLive        uint64 // foreign and spilled ones too
	BytesAsked        uint64 // that the live blocks of segments were asked for with
	BytesAskedPeak    uint64
	BytesLive         uint64 // rounded sizes of the same blocks
	BytesPeak         uint64 // largest BytesLive
	BytesReserved     uint64 // of segments on the device
	BytesReservedPeak uint64
	BytesCachedLocal  uint64 // free, for one stream
	BytesCachedGlobal uint64 // free, for every stream
	BytesPending      uint64 // freed, and waiting for work of the device to end
	BytesHeld         uint64 // freed while a graph was captured
	BytesPrivate      uint64 // free, for the graphs of one pool
	BytesLost         uint64 // freed, and the driver has failed since: not handed out again
	BytesForeign      uint64 // live, of the driver's own
	BytesSpilled      uint64 // of segments on the host
	LargestFree       uint64 // the largest block that is free

	Segments          uint64 // mapped now, on the host too
	Splits            uint64 // blocks cut in two
	Merges            uint64 // neighbours made one
	BlocksWarmed      uint64 // put into the cache by a warm-up
	Spills            uint64 // segments mapped on the host
	BytesTotalSpilled uint64
	Releases          uint64 // segments given back to the driver
	BytesReleased     uint64
	DriverRefused     uint64 // times that the driver had no memory
	Pressures         uint64 // times that the cache shrank since the device was nearly full

	DriverCalls DriverCalls
	Tiers       [2]DeviceTier // indexed by Device…

	// Leaks are the first LeakCount of the BlocksLive, where TA_CUDA_LEAKS asks for
	// them and the process has come to its end.
	LeakCount uint64 // <= LeakMax
	Leaks     [LeakMax]Leak
}

// DriverCalls counts what the heap had the driver do.
type DriverCalls struct {
	Map         uint64
	MapManaged  uint64
	Unmap       uint64
	Zero        uint64
	Synchronize uint64
	EventCreate uint64
	EventRecord uint64
	EventQuery  uint64
	StreamWait  uint64
	Info        uint64
}

// DeviceTier is one tier of a device, in the words of Tier. Segments and foreign
// allocations are charged whole.
type DeviceTier struct {
	AllocCalls          uint64 // blocks handed out in the tier
	FreeCalls           uint64
	BytesCurrent        uint64
	BytesPeak           uint64
	BytesTotalAlloc     uint64 // rounded sizes of those blocks
	BytesTotalFreed     uint64
	SimulatedWaitNs     uint64
	CapacitySoft        uint64 // 0: no cap
	CapacityHard        uint64 // 0: no cap
	CapacityViolations  uint64
	SoftExceeded        uint64
	RoutedSlow          uint64
	Refused             uint64
	ThrottleSleeps      uint64
	ThrottleOvershootNs uint64
	ThrottleBW          uint64
	ThrottleLatNs       uint64
}

// Leak is one live block.
type Leak struct {
	Address uint64
	Bytes   uint64 // asked for
	Stream  uint64 // that it was allocated for; 0: none
	Number  uint64 // of the allocation, counted from 1
}
