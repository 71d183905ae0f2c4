package main

import (
	"cmp"
	"debug/dwarf"
)

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
