package main

import (
	"cmp"
	"debug/dwarf"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"sort"
)

// debugInfo finds functions and lines in DWARF. Only the units with an address that is looked for
// are read: programs have tens of thousands.
type debugInfo struct {
	data  *dwarf.Data
	units []unitRange // sorted by start
}

// A unitRange is a range of addresses of a unit, and where the unit's first entry is.
type unitRange struct {
	start, end uint64
	entry      dwarf.Offset
}

// newDebugInfo reads the debug information of a file.
func newDebugInfo(file *elf.File) (*debugInfo, error) {
	sections := map[string][]byte{}
	for _, name := range []string{"abbrev", "info", "str", "line", "ranges",
		"addr", "line_str", "str_offsets", "rnglists"} {
		if name = ".debug_" + name; hasSection(file, name) {
			data, err := sectionData(file.Section(name))
			if err != nil {
				return nil, err
			}
			sections[name] = data
		}
	}
	data, err := dwarf.New(sections[".debug_abbrev"], nil, nil, sections[".debug_info"],
		sections[".debug_line"], nil, sections[".debug_ranges"], sections[".debug_str"])
	if err != nil {
		return nil, err
	}
	for _, name := range []string{".debug_addr", ".debug_line_str", ".debug_str_offsets",
		".debug_rnglists"} {
		if err := data.AddSection(name, sections[name]); err != nil {
			return nil, err
		}
	}
	d := &debugInfo{data: data}
	return d, d.index(sections[".debug_info"])
}

// index notes the addresses of all units.
func (d *debugInfo) index(info []byte) error {
	r := d.data.Reader()
	for _, at := range unitEntries(info) {
		r.Seek(at)
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil || e.Tag != dwarf.TagCompileUnit && e.Tag != dwarf.TagSkeletonUnit {
			continue
		}
		ranges, err := d.data.Ranges(e)
		if err != nil {
			return err
		}
		for _, p := range ranges {
			if p[0] < p[1] {
				d.units = append(d.units, unitRange{p[0], p[1], at})
			}
		}
	}
	slices.SortFunc(d.units, func(a, b unitRange) int { return cmp.Compare(a.start, b.start) })
	return nil
}

// unitEntries returns the offsets of the units' first entries. A dwarf.Reader finds them only by
// reading all entries before.
func unitEntries(info []byte) (offsets []dwarf.Offset) {
	const (
		smallest  = 12 // header
		long      = 0xffffffff
		skeleton  = 4 // unit types of DWARF 5
		splitUnit = 5
		typeUnit  = 2
		splitType = 6
	)
	for at := uint64(0); uint64(len(info))-at >= 2*smallest; {
		length, width := uint64(binary.LittleEndian.Uint32(info[at:])), uint64(4)
		head := at + 4
		if length == long {
			length, width = binary.LittleEndian.Uint64(info[head:]), 8
			head += 8
		}
		next := head + length
		if next < head || next > uint64(len(info)) || length < smallest-4 {
			break
		}
		entry := head + 2 + width + 1 // version, offset of abbreviations, size of addresses
		if binary.LittleEndian.Uint16(info[head:]) >= 5 {
			kind := info[head+2]
			entry++
			switch kind {
			case skeleton, splitUnit:
				entry += 8
			case typeUnit, splitType:
				entry += 8 + width
			}
		}
		if entry < next {
			offsets = append(offsets, dwarf.Offset(entry))
		}
		at = next
	}
	return offsets
}

// unitAt returns the unit with an address. Ranges of units do not overlap.
func (d *debugInfo) unitAt(at uint64) (dwarf.Offset, bool) {
	i := sort.Search(len(d.units), func(i int) bool { return d.units[i].start > at })
	if i == 0 || d.units[i-1].end <= at {
		return 0, false
	}
	return d.units[i-1].entry, true
}

// lookup returns the functions at addresses, which are sorted: the innermost first. The last has no
// name if only its line is known. Units that cannot be read are left out.
func (d *debugInfo) lookup(addresses []uint64) map[uint64][]sourceFrame {
	byUnit := map[dwarf.Offset][]uint64{}
	for _, at := range addresses {
		if unit, ok := d.unitAt(at); ok {
			byUnit[unit] = append(byUnit[unit], at)
		}
	}
	found := map[uint64][]sourceFrame{}
	for unit, addresses := range byUnit {
		u := &debugUnit{data: d.data, addresses: addresses}
		if u.read(unit) == nil {
			for _, at := range addresses {
				if stack := u.stack(at); len(stack) > 0 {
					found[at] = stack
				}
			}
		}
	}
	return found
}

// errNoUnit says that there is no unit at the offset of one.
var errNoUnit = errors.New("no unit")
