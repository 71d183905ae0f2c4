package heat

const (
	clearRefs = "/proc/self/clear_refs"
	smaps     = "/proc/self/smaps"
)

// Referenced counts the pages whose page table entry has the referenced bit, from the kernel's
// figure for each mapping. A mapping's pages are spread evenly over its regions, so what is in one
// mapping cannot be told apart. It needs no right, and is process-wide: it clears the bits of all
// memory, and reads the figures of all mappings.
type Referenced struct {
	regions []Range
	buf     []byte
}

func (*Referenced) Name() string     { return "referenced bits" }
func (*Referenced) WritesOnly() bool { return false }

func (s *Referenced) Probe() error {
	err := write(clearRefs, clearReferenced)
	if err == nil {
		err = readBlocks(smaps, make([]byte, 4096), func([]byte) {})
	}
	return needingProc(err)
}

// What clear_refs clears.
const (
	clearReferenced = "1"
	clearSoftDirty  = "4"
)

func (s *Referenced) Start(regions []Range) error {
	s.regions = regions
	s.buf = make([]byte, 64<<10)
	return write(clearRefs, clearReferenced)
}

func (s *Referenced) Sample(counts []uint32) (uintptr, error) {
	clear(counts)
	resolution := uintptr(RegionBytes)
	p := smapsParser{mapping: func(m Range, referenced uint64) {
		i := from(s.regions, m.Start)
		if i == len(s.regions) || overlap(s.regions[i], m) == 0 {
			return
		}
		resolution = max(resolution, m.End-m.Start)
		spread(s.regions, counts, m, referenced/pageBytes)
	}}
	if err := readBlocks(smaps, s.buf, p.feed); err != nil {
		return 0, err
	}
	return resolution, write(clearRefs, clearReferenced)
}

func (s *Referenced) Stop() {}

// pageBytes is what pages are counted in.
const pageBytes = 4096
