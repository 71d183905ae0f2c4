package main

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
