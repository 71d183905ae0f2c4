package stats

// ShareMax is how many instances a report lists; a power of two.
const ShareMax = 64

// Share is what an instance of a memory manager has of a device (package share).
//
//	BytesLive <= BytesPeak
type Share struct {
	Manager     uint64 // number of its manager, from 1 on
	Instances   uint64 // that its manager has, listed or not
	ManagerName [48]byte
	Device      uint64
	Mode        uint64 // 0: passive, 1: active
	BytesTotal  uint64 // that the manager shares out

	Id         uint64
	Name       [48]byte
	Group      [48]byte
	Manual     uint64 // 1: the proportion was given, 0: it is an equal part of the rest
	Proportion uint64 // in millionths
	BytesCap   uint64
	BytesLive  uint64
	BytesPeak  uint64
	AllocCalls uint64
	FreeCalls  uint64
	Refused    uint64 // allocations that failed
	Evictions  uint64 // times that it gave way to others
}
