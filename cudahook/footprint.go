package cudahook

// A Footprint is the memory that blocks of stream-ordered requests take at most on an empty device:
//
//	bytes = Σ blocks from 1 MiB on, each in whole units of the driver's
//	      + small segments, all but one filled up to less than the widest small block
type Footprint struct {
	large, small, widest uint64
}

const mostFootprint = 1 << 62

// Add counts a request.
func (f *Footprint) Add(bytes uint64) {
	switch n := rounded(min(bytes, mostFootprint)); {
	case n == 0:
	case bytes < smallMax:
		f.small = min(f.small+n, mostFootprint)
		f.widest = max(f.widest, n)
	default:
		f.large = min(f.large+mapRounded(n), mostFootprint)
	}
}

// Bytes returns the memory that all requests take together.
func (f *Footprint) Bytes() uint64 {
	filled := smallBytes - f.widest + granule
	if f.small == 0 || filled == 0 {
		return f.large
	}
	return min(f.large+(f.small+filled-1)/filled*smallBytes, mostFootprint)
}
