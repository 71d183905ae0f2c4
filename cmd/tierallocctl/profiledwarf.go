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

// A debugUnit is what a compilation unit says about some of its addresses.
type debugUnit struct {
	data      *dwarf.Data
	addresses []uint64                   // sorted
	scopes    map[uint64][]*dwarf.Entry  // functions at an address, the outermost first
	lines     map[uint64]dwarf.LineEntry // by address
	files     []*dwarf.LineFile

	// The namespace and class of functions that have no name for the linker, with the colons. The
	// compiler does not make one up for a function that it only inlined.
	qualifiers map[dwarf.Offset]string
}

// read reads the unit whose first entry is at an offset.
func (u *debugUnit) read(at dwarf.Offset) error {
	r := u.data.Reader()
	r.Seek(at)
	unit, err := r.Next()
	if err != nil {
		return err
	}
	if unit == nil {
		return errNoUnit
	}
	if err := u.readLines(unit); err != nil {
		return err
	}
	u.scopes, u.qualifiers = map[uint64][]*dwarf.Entry{}, map[dwarf.Offset]string{}
	if !unit.Children {
		return nil
	}
	return u.readScopes(r)
}

// readLines finds the lines of the addresses in the unit's line table.
func (u *debugUnit) readLines(unit *dwarf.Entry) error {
	u.lines = map[uint64]dwarf.LineEntry{}
	table, err := u.data.LineReader(unit)
	if err != nil || table == nil {
		return err
	}
	var last, next dwarf.LineEntry
	for inside := false; table.Next(&next) == nil; inside, last = !next.EndSequence, next {
		if inside && next.Address > last.Address {
			for _, at := range within(u.addresses, last.Address, next.Address) {
				u.lines[at] = last
			}
		}
	}
	u.files = table.Files()
	return nil
}

// readScopes finds the functions and inlined functions of the addresses. It passes over functions
// that have none of them.
func (u *debugUnit) readScopes(r *dwarf.Reader) error {
	for around := []string{""}; len(around) > 0; { // the qualifier at each depth
		qualifier := around[len(around)-1]
		e, err := r.Next()
		if err != nil {
			return err
		}
		if e == nil {
			return nil
		}
		enter := false
		switch e.Tag {
		case 0:
			around = around[:len(around)-1]
			continue
		case dwarf.TagSubprogram, dwarf.TagInlinedSubroutine:
			if qualifier != "" && e.Val(dwarf.AttrLinkageName) == nil {
				u.qualifiers[e.Offset] = qualifier
			}
			if enter, err = u.scope(e); err != nil {
				return err
			}
		case dwarf.TagLexDwarfBlock, dwarf.TagTryDwarfBlock, dwarf.TagCatchDwarfBlock:
			enter = true
		case dwarf.TagNamespace, dwarf.TagModule, dwarf.TagStructType, dwarf.TagClassType,
			dwarf.TagUnionType, dwarf.TagEnumerationType: // functions may be in them
			enter = true
			if e.Children {
				qualifier += qualifierOf(e)
			}
		}
		switch {
		case e.Children && enter:
			around = append(around, qualifier)
		case e.Children:
			r.SkipChildren()
		}
	}
	return nil
}

// qualifierOf is what a namespace or a class puts before names, as demangled names have it.
func qualifierOf(e *dwarf.Entry) string {
	name, _ := e.Val(dwarf.AttrName).(string)
	switch {
	case name != "":
		return name + "::"
	case e.Tag == dwarf.TagNamespace:
		return "(anonymous namespace)::"
	}
	return ""
}

// scope adds a function to the addresses that it contains, and reports whether there are any.
func (u *debugUnit) scope(e *dwarf.Entry) (any bool, err error) {
	ranges, err := u.data.Ranges(e)
	for _, p := range ranges {
		for _, at := range within(u.addresses, p[0], p[1]) {
			u.scopes[at] = append(u.scopes[at], e)
			any = true
		}
	}
	return any, err
}

// stack returns the functions at an address, the innermost first.
func (u *debugUnit) stack(at uint64) (stack []sourceFrame) {
	line, ok := u.lines[at]
	var frame sourceFrame // of the place that the next function contains
	if ok && line.File != nil {
		frame.file, frame.line = line.File.Name, int64(line.Line)
	}
	scopes := u.scopes[at]
	for i := len(scopes) - 1; i >= 0; i-- {
		e := scopes[i]
		frame.name, frame.start = u.function(e)
		inlined := e.Tag == dwarf.TagInlinedSubroutine
		if inlined && frame.name == "" {
			continue // its place stands for that of the call
		}
		stack = append(stack, frame)
		if !inlined {
			return stack
		}
		frame = u.callSite(e)
	}
	// The line is known, or the callers of an inlined function, but no function around them.
	if frame != (sourceFrame{}) {
		frame.name, frame.start = "", 0
		stack = append(stack, frame)
	}
	return stack
}

// callSite returns the place where an inlined function was called.
func (u *debugUnit) callSite(e *dwarf.Entry) (frame sourceFrame) {
	frame.line, _ = e.Val(dwarf.AttrCallLine).(int64)
	file, ok := e.Val(dwarf.AttrCallFile).(int64)
	if ok && file >= 0 && file < int64(len(u.files)) && u.files[file] != nil {
		frame.file = u.files[file].Name
	}
	return frame
}

// function returns the name of a function, as the linker has it, and its first line. They may be in
// the declaration or in the original of an inlined copy.
func (u *debugUnit) function(e *dwarf.Entry) (name string, start int64) {
	const (
		oldLinkageName = 0x2007 // DW_AT_MIPS_linkage_name
		references     = 8      // at most, as damaged ones may go round in circles
	)
	plain := ""
	r := u.data.Reader()
	for range references {
		linkage, _ := e.Val(dwarf.AttrLinkageName).(string)
		old, _ := e.Val(oldLinkageName).(string)
		short, _ := e.Val(dwarf.AttrName).(string)
		line, _ := e.Val(dwarf.AttrDeclLine).(int64)
		name, start = cmp.Or(name, linkage, old), cmp.Or(start, line)
		if plain == "" && short != "" {
			plain = u.qualifiers[e.Offset] + short
		}
		at, ok := e.Val(dwarf.AttrAbstractOrigin).(dwarf.Offset)
		if !ok {
			at, ok = e.Val(dwarf.AttrSpecification).(dwarf.Offset)
		}
		if !ok || name != "" && start != 0 {
			break
		}
		r.Seek(at)
		origin, err := r.Next()
		if err != nil || origin == nil {
			break
		}
		e = origin
	}
	return cmp.Or(name, plain), start
}
