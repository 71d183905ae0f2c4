package main

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"sort"
	"strings"
)

type span struct{ from, to uint64 }

type spans []span

func (s spans) contains(a uint64) bool {
	for _, r := range s {
		if a >= r.from && a < r.to {
			return true
		}
	}
	return false
}

// goRanges returns the addresses of data that Go's linker laid out. Its own symbols bound that of
// .data; the other sections hold nothing else (order.ld).
func (m *image) goRanges() spans {
	var list spans
	from, err1 := m.symbol("runtime.data")
	to, err2 := m.symbol("runtime.edata")
	if err1 == nil && err2 == nil {
		list = append(list, span{from, to})
	}
	for _, s := range m.file.Sections {
		if strings.HasPrefix(s.Name, ".go.") || s.Name == ".noptrdata" || s.Name == ".data.rel.ro" {
			list = append(list, span{s.Addr, s.Addr + s.Size})
		}
	}
	return list
}

// When a relocation is made.
const (
	atLoad    = iota
	forTables // by ta_tables
	forGo     // by ta_go_init
)

// tables are the packages whose tables of words a process needs when it has settings, or when it
// writes its report.
var tables = []string{"tieralloc/internal/config.", "tieralloc/stats.", "tieralloc/stats/document.",
	"tieralloc/stats/profile."}

// runtimeOnly are this project's packages whose code runs only on the runtime.
var runtimeOnly = []string{"tieralloc/stats/logger.", "tieralloc/stats/history.",
	"tieralloc/alloc/background.",
	"tieralloc/alloc/region.", "tieralloc/tiers/follow.", "tieralloc/tiers/heat.",
	"tieralloc/internal/control.", "tieralloc/interpose."}

// when says when the relocation of the word at addr, in Go's data, is made.
func (m *image) when(addr uint64) int {
	name := m.owner(addr)
	in := func(pkg string) bool { return strings.HasPrefix(name, pkg) }
	switch {
	case slices.ContainsFunc(tables, in):
		return forTables
	case slices.ContainsFunc(runtimeOnly, in), !in("tieralloc/") && !in("main."):
		return forGo
	}
	return atLoad
}

// protected reports whether the loader makes addr read-only after its relocations.
func (m *image) protected(addr uint64) bool {
	for _, p := range m.file.Progs {
		if p.Type == elf.PT_GNU_RELRO && addr >= p.Vaddr && addr < p.Vaddr+p.Memsz {
			return true
		}
	}
	return false
}

// owner returns the symbol that contains addr. Symbols of size 0 do not count.
func (m *image) owner(addr uint64) string {
	i := sort.Search(len(m.syms), func(i int) bool { return m.syms[i].Value > addr })
	for i--; i >= 0; i-- {
		s := m.syms[i]
		if s.Size == 0 {
			continue
		}
		if addr < s.Value+s.Size {
			return s.Name
		}
		break
	}
	return ""
}

func (m *image) symbol(name string) (uint64, error) {
	for _, s := range m.syms {
		if s.Name == name {
			return s.Value, nil
		}
	}
	return 0, fmt.Errorf("no symbol %s (is the library stripped?)", name)
}

// symbols returns the addresses of several symbols.
func (m *image) symbols(names ...string) (list []uint64, err error) {
	for _, name := range names {
		addr, err := m.symbol(name)
		if err != nil {
			return nil, err
		}
		list = append(list, addr)
	}
	return list, nil
}

func (m *image) inSection(name string, addr uint64) bool {
	s := m.file.Section(name)
	return s != nil && addr >= s.Addr && addr < s.Addr+s.Size
}

// fileOffset returns the file offset of the byte at addr.
func (m *image) fileOffset(addr uint64) (uint64, error) {
	for _, p := range m.file.Progs {
		if p.Type == elf.PT_LOAD && addr >= p.Vaddr && addr < p.Vaddr+p.Filesz {
			return addr - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("address %#x is not in the file", addr)
}

// dynamic returns the value of an entry of the dynamic section, 0 if there is none.
func (m *image) dynamic(tag elf.DynTag) uint64 {
	if at := m.dynamicAt(tag); at != nil {
		return binary.LittleEndian.Uint64(at[8:])
	}
	return 0
}

func (m *image) setDynamic(tag elf.DynTag, v uint64) {
	if at := m.dynamicAt(tag); at != nil {
		binary.LittleEndian.PutUint64(at[8:], v)
	}
}

// removeDynamic removes an entry of the dynamic section, which still ends in zeros.
func (m *image) removeDynamic(tag elf.DynTag) {
	if at := m.dynamicAt(tag); at != nil {
		copy(at, at[dynSize:])
		clear(at[len(at)-dynSize:])
	}
}

const dynSize = 16

// dynamicAt returns the dynamic section from the entry on, nil if there is none.
func (m *image) dynamicAt(tag elf.DynTag) []byte {
	s := m.file.Section(".dynamic")
	if s == nil {
		return nil
	}
	d := m.data[s.Offset : s.Offset+s.Size]
	for ; len(d) >= dynSize; d = d[dynSize:] {
		if elf.DynTag(binary.LittleEndian.Uint64(d)) == tag {
			return d
		}
	}
	return nil
}
