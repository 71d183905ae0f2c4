package config

// NoLimit is the CacheLimit that is no limit.
const NoLimit = 1 << 63

// Bounds and defaults of the CUDA settings.
const (
	segmentUnit        = 2 << 20
	maxSegment         = 64 << 30
	DefaultSegmentSize = 20 << 20

	// ProportionOne is a Proportion of all of the device's memory.
	ProportionOne = 1 << 16

	warmupMax  = 16
	warmupMask = warmupMax - 1
	maxWarm    = 1_000_000 // blocks of one size
)

// CUDA is the settings for device memory. They hold for each device separately.
//
//	Soft == 0 or Hard == 0 or Soft <= Hard
//	Proportion <= ProportionOne
//	SegmentSize == k·2 MiB, k >= 1
//	Warmups <= 16
//
// If Hard and Proportion are both set, the smaller of the two holds. Which one that is depends on
// the device's memory, which is known only later.
type CUDA struct {
	Enable      bool // TA_CUDA: false: all CUDA calls pass unchanged
	ReuseEvent  bool // TA_CUDA_REUSE: event; false: sync
	SuballocAll bool // TA_CUDA_SUBALLOC: all; false: small
	Spill       bool // TA_CUDA_ON_HARDCAP: spill; false: fail
	Zero        bool // TA_CUDA_ZERO: new segments are set to 0
	Leaks       bool // TA_CUDA_LEAKS: the report lists the blocks that are live at exit
	Managed     bool // TA_CUDA_MANAGED: the heap's memory is managed
	Expandable  bool // TA_CUDA_EXPANDABLE: segments are expanded where the driver allows it
	AsyncHeap   bool // TA_CUDA_ASYNC: heap; false: driver

	Soft, Hard  uint64 // TA_CUDA_SOFT, TA_CUDA_HARD: bytes; 0: no cap
	SpillHard   uint64 // TA_CUDA_SPILL_HARD: bytes of host memory; 0: half of the host's
	Proportion  uint64 // TA_CUDA_PROPORTION: in 1/65536 of the device's memory; 0: no cap
	SegmentSize uint64 // TA_CUDA_SEGMENT_SIZE: bytes
	CacheLimit  uint64 // TA_CUDA_CACHE_LIMIT: bytes of free blocks that are kept; 0: none
	BW          uint64 // TA_CUDA_BW: bytes per second; 0: no limit
	Lat         uint64 // TA_CUDA_LAT: nanoseconds

	Warmup  [warmupMax]Warm // TA_CUDA_WARMUP: the first Warmups of them
	Warmups uint64

	Traces    bool // Settings.TraceFile is not empty
	Snapshots bool // Settings.SnapshotFile is not empty
}

// Warm is a number of blocks to have ready.
type Warm struct{ Bytes, Count uint64 }

func (c *CUDA) setDefaults() {
	c.Enable = true
	c.ReuseEvent = false
	c.SuballocAll = false
	c.Spill = false
	c.Zero = false
	c.Leaks = false
	c.Managed = false
	c.Expandable = true
	c.AsyncHeap = false
	c.Soft = 0
	c.Hard = 0
	c.SpillHard = 0
	c.Proportion = 0
	c.SegmentSize = DefaultSegmentSize
	c.CacheLimit = NoLimit
	c.BW = 0
	c.Lat = 0
	c.Warmups = 0
}

// set is Settings.set for variable k of CUDA.
func (c *CUDA) set(k uintptr, v value) bool {
	switch k {
	case cudaEnable:
		return v.asSwitch(&c.Enable)
	case cudaReuse:
		return v.asEither(&c.ReuseEvent, "sync", "event")
	case cudaSuballoc:
		return v.asEither(&c.SuballocAll, "small", "all")
	case cudaOnHardcap:
		return v.asEither(&c.Spill, "fail", "spill")
	case cudaZero:
		return v.asSwitch(&c.Zero)
	case cudaLeaks:
		return v.asSwitch(&c.Leaks)
	case cudaManaged:
		return v.asSwitch(&c.Managed)
	case cudaExpandable:
		return v.asSwitch(&c.Expandable)
	case cudaAsync:
		return v.asEither(&c.AsyncHeap, "driver", "heap")
	case cudaSoft:
		return v.asSize(&c.Soft)
	case cudaHard:
		return v.asSize(&c.Hard)
	case cudaSpillHard:
		return v.asSize(&c.SpillHard)
	case cudaProportion:
		return v.asProportion(&c.Proportion)
	case cudaSegmentSize:
		return v.asSegment(&c.SegmentSize)
	case cudaCacheLimit:
		return v.asLimit(&c.CacheLimit)
	case cudaBW:
		return v.asRate(&c.BW)
	case cudaLat:
		return v.asTime(&c.Lat, maxLatency)
	case cudaWarmup:
		return c.setWarmup(v)
	}
	return false
}

// asProportion reads a part of the whole, above 0 and up to 1, such as 0.25 or 25%. It is rounded
// to the nearest 1/65536, and the result must not be 0. Decimals after the ninth are ignored.
func (v value) asProportion(dst *uint64) bool {
	const one = 1_000_000_000 // nine decimals
	most := uint64(one)
	if v.n != 0 && v.at(v.n-1) == '%' {
		most *= 100
		v.n--
	}
	point := v.find(0, '.')
	n, ok := v.part(0, point).digits(100)
	if point == v.n {
		if !ok || n > most/one {
			return false
		}
		n *= one
	} else {
		if !ok && point != 0 {
			return false
		}
		n *= one
		frac, ok := v.part(point+1, v.n).fraction(one)
		if !ok || n >= most && frac != 0 {
			return false
		}
		n += frac
	}
	if n > most {
		return false
	}
	// n <= 100·one: the product is below 2^53.
	n = (n*ProportionOne + most/2) / max(most, 1)
	if n == 0 {
		return false
	}
	*dst = n
	return true
}

// digits reads a decimal integer up to most. Precondition: most < 1<<60.
func (v value) digits(most uint64) (n uint64, ok bool) {
	for i := uintptr(0); i < v.n; i++ {
		if !isDigit(v.at(i)) {
			return 0, false
		}
		n = n*10 + uint64(v.at(i)-'0')
		if n > most {
			return 0, false
		}
	}
	return n, v.n != 0
}

// fraction reads decimals as multiples of 1/one; one is a power of ten. A value that is too small
// but not zero counts as one part, so that only zeros are 0.
func (v value) fraction(one uint64) (n uint64, ok bool) {
	rest := uint64(0)
	for i := uintptr(0); i < v.n; i++ {
		if !isDigit(v.at(i)) {
			return 0, false
		}
		one /= 10
		d := uint64(v.at(i) - '0')
		n += d * one
		if one == 0 && d != 0 {
			rest = 1
		}
	}
	return max(n, rest), v.n != 0
}

// asSegment reads a size from 2 MiB to 64 GiB in steps of 2 MiB.
func (v value) asSegment(dst *uint64) bool {
	n, ok := v.bytes()
	if !ok || n == 0 || n > maxSegment || n%segmentUnit != 0 {
		return false
	}
	*dst = n
	return true
}

// asLimit reads a size as asSize does, and 0 too.
func (v value) asLimit(dst *uint64) bool {
	n, ok := v.bytes()
	if ok {
		*dst = n
	}
	return ok
}

// setWarmup reads a list of size:count, separated by commas. A bad list leaves Warmups at 0 and
// Warmup undefined.
func (c *CUDA) setWarmup(v value) bool {
	count := uint64(0)
	for i := uintptr(0); i <= v.n; count++ {
		if count == warmupMax {
			return false
		}
		end := v.find(i, ',')
		colon := min(v.find(i, ':'), end)
		if colon == end {
			return false
		}
		w := &c.Warmup[count&warmupMask]
		blocks, ok := v.part(colon+1, end).digits(maxWarm)
		if !ok || blocks == 0 || !v.part(i, colon).asSize(&w.Bytes) {
			return false
		}
		w.Count = blocks
		i = end + 1
	}
	c.Warmups = count
	return true
}
