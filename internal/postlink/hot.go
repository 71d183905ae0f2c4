package main

import (
	"cmp"
	"debug/elf"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The Go functions that most processes run are placed side by side, so that little else becomes
// resident with them. Go's linker lays functions out by package and file, and they cannot be moved,
// because the runtime knows them by their addresses. So they are copied to room that the linker
// script left. The C stubs of the exports call the copies, and the copies call each other. All
// other code calls the originals: a goroutine must never be in a function that the runtime does not
// know.
//
//	an instruction of a copy = the original's, except for distances to what it refers to
//	a copy refers to the copy of what the original refers to, if there is one
const (
	copiesSection = ".text.copies"
	copySuffix    = ".copy"
	copyAlign     = 32 // as Go aligns functions
)

//go:embed hot.txt
var hotNames string

// hotList returns the functions to copy, the most wanted first.
func hotList() []string {
	return slices.DeleteFunc(strings.Split(hotNames, "\n"),
		func(line string) bool { return line == "" || line[0] == '#' })
}

// A duplicate is a function and the address of its copy.
type duplicate struct {
	name     string
	from, to uint64
	size     uint64
}

var (
	// the hash of the package, which the list leaves out
	exportHash = regexp.MustCompile(`^_cgoexp_[0-9a-f]+_`)
	branch     = regexp.MustCompile(`\b(?:call|j[a-z]+) +([0-9a-f]+)( |$)`)
	relative   = regexp.MustCompile(`\(%rip\).*# ([0-9a-f]+)`)
)

// copyHot makes the copies, redirects calls to them, and gives them symbols. It leaves out names
// that are not in the library and functions that do not fit; tests/verify reports them. It returns
// the library, which has become longer.
func (m *image) copyHot() ([]byte, error) {
	area := m.file.Section(copiesSection)
	if area == nil {
		return m.data, nil
	}
	list := m.place(area)
	copyOf := map[uint64]uint64{}
	for _, d := range list {
		copyOf[d.from] = d.to
	}
	code, err := m.disassemble()
	if err != nil {
		return nil, err
	}
	for _, d := range list {
		if err := m.copy(d, code, copyOf); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	text := m.file.Section(".text")
	calls := 0
	for _, in := range code {
		to := copyOf[in.target]
		if to == 0 || in.addr >= text.Addr && in.addr < text.Addr+text.Size {
			continue
		}
		if err := m.retarget(in, 0, to); err != nil {
			return nil, err
		}
		calls++
	}
	if calls == 0 {
		return nil, fmt.Errorf("no export has a copy")
	}
	return m.addSymbols(area, list)
}

// place finds room for the functions of the list, from the end of the section down.
func (m *image) place(area *elf.Section) (list []duplicate) {
	known := map[string]elf.Symbol{}
	for _, s := range m.syms {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && s.Size > 0 {
			known[exportHash.ReplaceAllString(s.Name, "_cgoexp_")] = s
		}
	}
	at := area.Addr + area.Size
	for _, name := range hotList() {
		s, ok := known[name]
		to := (at - s.Size) &^ (copyAlign - 1)
		if !ok || at < s.Size || to < area.Addr {
			continue
		}
		at = to
		list = append(list, duplicate{s.Name, s.Value, to, s.Size})
	}
	return list
}

// copy makes one copy.
func (m *image) copy(d duplicate, code []instruction, copyOf map[uint64]uint64) error {
	from, err := m.fileOffset(d.from)
	if err != nil {
		return err
	}
	to, err := m.fileOffset(d.to)
	if err != nil {
		return err
	}
	copy(m.data[to:to+d.size], m.data[from:from+d.size])
	first, _ := slices.BinarySearchFunc(code, d.from, byAddress)
	for _, in := range code[first:] {
		if in.addr >= d.from+d.size {
			break
		}
		if in.target == 0 || in.target >= d.from && in.target < d.from+d.size && !in.data {
			continue
		}
		target := in.target
		if c := copyOf[target]; c != 0 {
			target = c
		}
		if err := m.retarget(in, d.to-d.from, target); err != nil {
			return err
		}
	}
	return nil
}

// An instruction that refers to a place, or any other one (target 0).
type instruction struct {
	addr, end uint64
	target    uint64
	data      bool // it does not branch there
}

func byAddress(in instruction, addr uint64) int { return cmp.Compare(in.addr, addr) }

// disassemble reads all code, from the first section with code to the last.
func (m *image) disassemble() (code []instruction, err error) {
	f, err := os.CreateTemp("", "postlink.*.so")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	if _, err := f.Write(m.data); err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	out, err := exec.Command("objdump", "-d", "--no-show-raw-insn", "-w", f.Name()).Output()
	if err != nil {
		return nil, fmt.Errorf("objdump: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		head, text, ok := strings.Cut(line, ":\t")
		addr, err := strconv.ParseUint(strings.TrimSpace(head), 16, 64)
		if !ok || err != nil {
			continue
		}
		in := instruction{addr: addr}
		if n := len(code); n > 0 {
			code[n-1].end = addr
		}
		if g := branch.FindStringSubmatch(text); g != nil {
			in.target, err = strconv.ParseUint(g[1], 16, 64)
		} else if g := relative.FindStringSubmatch(text); g != nil {
			in.target, err = strconv.ParseUint(g[1], 16, 64)
			in.data = true
		}
		if err != nil {
			return nil, err
		}
		code = append(code, in)
	}
	slices.SortFunc(code, func(a, b instruction) int { return byAddress(a, b.addr) })
	return code, nil
}

// retarget makes the copy of an instruction, which is by bytes after the original, refer to target.
// The distance is at the instruction's end, or before a constant there.
func (m *image) retarget(in instruction, by, target uint64) error {
	at, err := m.fileOffset(in.addr)
	if err != nil {
		return err
	}
	to, err := m.fileOffset(in.addr + by)
	if err != nil {
		return err
	}
	places, length := []uint64{0}, in.end-in.addr
	if in.data {
		places = []uint64{0, 1, 2, 4}
	}
	found := uint64(0)
	for _, constant := range places {
		if length < 4+constant+1 {
			continue
		}
		i := length - constant - 4
		if in.end+uint64(int64(int32(binary.LittleEndian.Uint32(m.data[at+i:])))) != in.target {
			continue
		}
		if found != 0 {
			return fmt.Errorf("at %#x: two distances to %#x", in.addr, in.target)
		}
		found = i
	}
	if found == 0 {
		return fmt.Errorf("at %#x: no distance to %#x", in.addr, in.target)
	}
	distance := int64(target - (in.end + by))
	if distance != int64(int32(distance)) {
		return fmt.Errorf("at %#x: %#x is too far away", in.addr, target)
	}
	binary.LittleEndian.PutUint32(m.data[to+found:], uint32(distance))
	return nil
}
