package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
)

// addSymbols adds a symbol for each copy, for debuggers and profilers. It rewrites the tables of
// symbols and names, which are at the end of the file with the section headers.
func (m *image) addSymbols(area *elf.Section, list []duplicate) ([]byte, error) {
	const symSize, headerSize = 24, 64
	var header elf.Header64
	if _, err := binary.Decode(m.data, binary.LittleEndian, &header); err != nil {
		return nil, err
	}
	sections := make([]elf.Section64, header.Shnum)
	if _, err := binary.Decode(m.data[header.Shoff:], binary.LittleEndian, sections); err != nil {
		return nil, err
	}
	table := slices.IndexFunc(sections,
		func(s elf.Section64) bool { return elf.SectionType(s.Type) == elf.SHT_SYMTAB })
	if table < 0 || header.Shentsize != headerSize {
		return nil, errors.New("no table of symbols (is the library stripped?)")
	}
	symtab := &sections[table]
	strtab := &sections[symtab.Link]
	end := min(symtab.Off, strtab.Off, sections[header.Shstrndx].Off, header.Shoff)
	for i, s := range sections {
		if i != table && i != int(symtab.Link) && i != int(header.Shstrndx) &&
			elf.SectionType(s.Type) != elf.SHT_NOBITS && s.Off+s.Size > end {
			return nil, errors.New("there is more after the table of symbols")
		}
	}
	part := func(s *elf.Section64) []byte { return m.data[s.Off : s.Off+s.Size] }
	names, old := slices.Clone(part(strtab)), part(symtab)
	index := slices.IndexFunc(m.file.Sections, func(s *elf.Section) bool { return s == area })
	var added bytes.Buffer
	for _, d := range list {
		s := elf.Sym64{Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_LOCAL, elf.STT_FUNC),
			Shndx: uint16(index), Value: d.to, Size: d.size}
		names = append(append(names, d.name+copySuffix...), 0)
		if err := binary.Write(&added, binary.LittleEndian, s); err != nil {
			return nil, err
		}
	}
	locals := uint64(symtab.Info) * symSize // those of the file itself come first
	symtab.Info += uint32(len(list))
	out := slices.Clone(m.data[:end])
	put := func(s *elf.Section64, content ...[]byte) {
		for uint64(len(out))%max(s.Addralign, 1) != 0 {
			out = append(out, 0)
		}
		s.Off = uint64(len(out))
		for _, c := range content {
			out = append(out, c...)
		}
		s.Size = uint64(len(out)) - s.Off
	}
	sectionNames := part(&sections[header.Shstrndx])
	put(symtab, old[:locals], added.Bytes(), old[locals:])
	put(strtab, names)
	put(&sections[header.Shstrndx], sectionNames)
	for len(out)%8 != 0 {
		out = append(out, 0)
	}
	header.Shoff = uint64(len(out))
	if _, err := binary.Encode(out, binary.LittleEndian, header); err != nil {
		return nil, err
	}
	return binary.Append(out, binary.LittleEndian, sections)
}
