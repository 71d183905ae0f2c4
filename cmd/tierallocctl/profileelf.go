package main

import (
	"bytes"
	"debug/elf"
	"sort"
)

// symbols returns the names of functions at addresses of the file, which are sorted. It reads the
// full symbol table where there is one, else that of the loader. It decodes no more names than it
// returns: large programs have millions.
func (b *codeFile) symbols(addresses []uint64) map[uint64]string {
	for _, file := range []*elf.File{b.file, b.debug} {
		if file != nil {
			if names, ok := symbolsIn(file, ".symtab", addresses); ok {
				return names
			}
		}
	}
	names, _ := symbolsIn(b.file, ".dynsym", addresses)
	return names
}

// symbolsIn looks addresses up in a symbol table. ok says that there is one.
func symbolsIn(file *elf.File, section string, addresses []uint64) (_ map[uint64]string, ok bool) {
	if !hasSection(file, section) {
		return nil, false
	}
	table := file.Section(section)
	if table.Link == 0 || table.Link >= uint32(len(file.Sections)) {
		return nil, false
	}
	data, err := sectionData(table)
	if err != nil {
		return nil, false
	}
	text, err := sectionData(file.Sections[table.Link])
	if err != nil {
		return nil, false
	}
	best := map[uint64]symbol{}
	for ; len(data) >= elf.Sym64Size; data = data[elf.Sym64Size:] {
		order := file.ByteOrder
		s := symbol{name: order.Uint32(data), info: data[4], value: order.Uint64(data[8:]),
			size: order.Uint64(data[16:])}
		if order.Uint16(data[6:]) == uint16(elf.SHN_UNDEF) || !s.isFunction() {
			continue
		}
		for _, at := range within(addresses, s.value, s.value+max(s.size, 1)) {
			if old, ok := best[at]; !ok || s.before(old) {
				best[at] = s
			}
		}
	}
	names := map[uint64]string{}
	for at, s := range best {
		if name := nameAt(text, s.name); name != "" {
			names[at] = name
		}
	}
	return names, true
}

// sectionData reads a section. Section.Data grows its result piece by piece, which takes twice the
// memory where a section has hundreds of MiB. Here a damaged size cannot ask for more than the file
// has, as its last byte is read first.
func sectionData(s *elf.Section) ([]byte, error) {
	if s.Flags&elf.SHF_COMPRESSED != 0 || s.Size == 0 {
		return s.Data()
	}
	if _, err := s.ReadAt(make([]byte, 1), int64(s.Size-1)); err != nil {
		return nil, err
	}
	data := make([]byte, s.Size)
	_, err := s.ReadAt(data, 0)
	return data, err
}

// A symbol is an entry of a symbol table.
type symbol struct {
	name        uint32 // offset
	info        byte
	value, size uint64
}

func (s symbol) isFunction() bool {
	const gnuIfunc = 10
	kind := elf.ST_TYPE(s.info)
	return kind == elf.STT_FUNC || kind == gnuIfunc
}

// before reports whether a symbol names an address better than another: it is global rather than
// local, or begins later.
func (s symbol) before(other symbol) bool {
	if s.value != other.value {
		return s.value > other.value
	}
	return elf.ST_BIND(s.info) == elf.STB_GLOBAL && elf.ST_BIND(other.info) != elf.STB_GLOBAL
}

// nameAt returns the string at an offset of a string table.
func nameAt(text []byte, offset uint32) string {
	if uint64(offset) >= uint64(len(text)) {
		return ""
	}
	name, _, _ := bytes.Cut(text[offset:], []byte{0})
	return string(name)
}

// within returns those of sorted addresses that are from start on and before end.
func within(addresses []uint64, start, end uint64) []uint64 {
	from := sort.Search(len(addresses), func(i int) bool { return addresses[i] >= start })
	rest := addresses[from:]
	return rest[:sort.Search(len(rest), func(i int) bool { return rest[i] >= end })]
}
