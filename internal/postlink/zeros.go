package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
)

// lastData is the last section of the data that is in the file (interpose/order.ld).
const lastData = ".data.near"

// trimZeros shortens lastData, and the segment that ends with it, by the zeros at its end. They are
// then like .bss, which follows.
func (m *image) trimZeros() error {
	var header elf.Header64
	if _, err := binary.Decode(m.data, binary.LittleEndian, &header); err != nil {
		return err
	}
	sections := make([]elf.Section64, header.Shnum)
	progs := make([]elf.Prog64, header.Phnum)
	if _, err := binary.Decode(m.data[header.Shoff:], binary.LittleEndian, sections); err != nil {
		return err
	}
	if _, err := binary.Decode(m.data[header.Phoff:], binary.LittleEndian, progs); err != nil {
		return err
	}
	at := slices.IndexFunc(m.file.Sections, func(s *elf.Section) bool { return s.Name == lastData })
	if at < 0 {
		return errors.New("no section " + lastData)
	}
	s := &sections[at]
	i := slices.IndexFunc(progs, func(p elf.Prog64) bool {
		return elf.ProgType(p.Type) == elf.PT_LOAD && p.Off+p.Filesz == s.Off+s.Size
	})
	if i < 0 {
		return errors.New("no segment ends with " + lastData)
	}
	zeros := s.Size - uint64(len(bytes.TrimRight(m.data[s.Off:s.Off+s.Size], "\x00")))
	s.Size -= zeros
	progs[i].Filesz -= zeros
	if _, err := binary.Encode(m.data[header.Shoff:], binary.LittleEndian, sections); err != nil {
		return err
	}
	_, err := binary.Encode(m.data[header.Phoff:], binary.LittleEndian, progs)
	return err
}
