package main

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"tieralloc/stats/live"
)

// A codeFile is the file of a mapping, with its debug information, which may be in another file.
type codeFile struct {
	file   *elf.File
	debug  *elf.File // the same as file, or nil if there is none
	opened []io.Closer
}

// openCode opens the file of a mapping if it has the build id. A mapping without one takes any
// file. folder has debug information by build id.
func openCode(path, id, folder string) (*codeFile, error) {
	b := &codeFile{}
	file, found, err := b.open(path)
	switch {
	case err != nil:
	case id != "" && !strings.EqualFold(id, found):
		err = fmt.Errorf("it was replaced: its build id is %s, the profile's %s",
			cmp.Or(found, "missing"), id)
	}
	if err != nil {
		b.close()
		return nil, err
	}
	b.file = file
	if hasSection(file, ".debug_info") {
		b.debug = file
	} else if len(found) > 2 {
		apart, other, err := b.open(filepath.Join(folder, found[:2], found[2:]+".debug"))
		if err == nil && other == found {
			b.debug = apart
		}
	}
	return b, nil
}

// open opens an object of this machine and returns its build id.
func (b *codeFile) open(path string) (file *elf.File, id string, err error) {
	f, err := live.OpenRegular(unix.AT_FDCWD, path, path, 0)
	var pathErr *os.PathError
	if errors.As(err, &pathErr) {
		err = pathErr.Err // the caller names the file
	}
	if err != nil {
		return nil, "", err
	}
	b.opened = append(b.opened, f)
	if file, err = elf.NewFile(f); err != nil {
		return nil, "", err
	}
	if file.Class != elf.ELFCLASS64 || file.Data != elf.ELFDATA2LSB {
		return nil, "", errors.New("it is not of this machine")
	}
	return file, buildID(file), nil
}

func (b *codeFile) close() {
	for _, f := range b.opened {
		f.Close()
	}
}

func hasSection(file *elf.File, name string) bool {
	s := file.Section(name)
	return s != nil && s.Type != elf.SHT_NOBITS
}

// address returns the address in the file's own terms of an offset in the file.
func (b *codeFile) address(offset uint64) (uint64, bool) {
	for _, p := range b.file.Progs {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && offset >= p.Off &&
			offset-p.Off < p.Filesz {
			return offset - p.Off + p.Vaddr, true
		}
	}
	return 0, false
}

// buildID returns the build id of a file in hexadecimal digits, or "". Files of debug information
// have it in a section only, files without sections in a segment.
func buildID(file *elf.File) string {
	for _, s := range file.Sections {
		if s.Type == elf.SHT_NOTE {
			if id := noteID(s.Open(), s.Size, file); id != "" {
				return id
			}
		}
	}
	for _, p := range file.Progs {
		if p.Type == elf.PT_NOTE {
			if id := noteID(p.Open(), p.Filesz, file); id != "" {
				return id
			}
		}
	}
	return ""
}

// noteID finds a build id among notes.
func noteID(r io.Reader, length uint64, file *elf.File) string {
	const (
		notesMax = 64 << 10
		isID     = 3 // NT_GNU_BUILD_ID
	)
	notes, err := io.ReadAll(io.LimitReader(r, int64(min(length, notesMax))))
	if err != nil {
		return ""
	}
	for len(notes) >= 12 {
		nameLength := uint64(file.ByteOrder.Uint32(notes))
		length := uint64(file.ByteOrder.Uint32(notes[4:]))
		kind := file.ByteOrder.Uint32(notes[8:])
		from := 12 + aligned(nameLength)
		next := from + aligned(length)
		if from+length > uint64(len(notes)) {
			return ""
		}
		if kind == isID && string(notes[12:12+nameLength]) == "GNU\x00" {
			return fmt.Sprintf("%x", notes[from:from+length])
		}
		notes = notes[min(next, uint64(len(notes))):]
	}
	return ""
}

// aligned rounds up a length as notes do.
func aligned(n uint64) uint64 { return (n + 3) &^ 3 }

// lookup returns the functions at addresses of the file, which are sorted. Debug information that
// cannot be read is an error, and the names are then those of the symbol tables.
func (b *codeFile) lookup(addresses []uint64) (map[uint64][]sourceFrame, error) {
	found := map[uint64][]sourceFrame{}
	for at, name := range b.symbols(addresses) {
		found[at] = []sourceFrame{{name: name}}
	}
	if b.debug == nil {
		return found, nil
	}
	d, err := newDebugInfo(b.debug)
	if err != nil {
		return found, err
	}
	for at, stack := range d.lookup(addresses) {
		outer := &stack[len(stack)-1]
		if outer.name == "" {
			symbol := found[at]
			if symbol == nil {
				continue
			}
			outer.name = symbol[0].name
		}
		found[at] = stack
	}
	return found, nil
}

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
