package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tieralloc/internal/testlib"
)

// edited is the built library, which postlink has edited.
func edited(t *testing.T) *image {
	t.Helper()
	data, err := os.ReadFile(testlib.Lib(t))
	if err != nil {
		t.Fatal(err)
	}
	m, err := load(data)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// deferred are the relative relocations that ta_deferred tells of, those for functions of libc, and
// Go's constructor.
func deferred(t *testing.T, m *image) (list, named []elf.Rela64, table, start uint64) {
	t.Helper()
	at, err := m.symbol("ta_deferred")
	if err != nil {
		t.Fatal(err)
	}
	off, err := m.fileOffset(at)
	if err != nil {
		t.Fatal(err)
	}
	var state [5]uint64
	if err := binary.Read(bytes.NewReader(m.data[off:]), binary.LittleEndian, &state); err != nil {
		t.Fatal(err)
	}
	if off, err = m.fileOffset(state[0]); err != nil {
		t.Fatal(err)
	}
	count := state[1] + state[2]
	list = make([]elf.Rela64, count+state[3])
	if err := binary.Read(bytes.NewReader(m.data[off:]), binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	for i, r := range list[:count] {
		if table := i < int(state[1]); table != (m.when(r.Off) == forTables) {
			t.Errorf("relocation %d, at %#x, is among those of tables: %v", i, r.Off, table)
		}
	}
	return list[:count], list[count:], state[0], state[4]
}

// TestSecondEdit: a library that was edited is refused, and stays as it is.
func TestSecondEdit(t *testing.T) {
	m := edited(t)
	path := filepath.Join(t.TempDir(), "copy.so")
	if err := os.WriteFile(path, m.data, 0o600); err != nil {
		t.Fatal(err)
	}
	err := run(path)
	if err == nil || !strings.Contains(err.Error(), "edited before") {
		t.Errorf("the second edit ends with %v", err)
	}
	after, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(after, m.data) {
		t.Errorf("the refused library was changed: %v", err)
	}
}

// TestRelocationsLeft: few relocations are left to the loader, and all those that
// come first are relative, as DT_RELACOUNT says.
func TestRelocationsLeft(t *testing.T) {
	m := edited(t)
	table, count, err := m.relocations()
	if err != nil {
		t.Fatal(err)
	}
	list, _, at, _ := deferred(t, m)
	if count >= 900 || len(list) < 4*count {
		t.Errorf("%d relocations left, %d deferred", count, len(list))
	}
	if end := m.dynamic(elf.DT_RELA) + uint64(len(table))*relaSize; at != end {
		t.Errorf("the loader's table ends at %#x, the deferred one begins at %#x", end, at)
	}
	if section := m.file.Section(".rela.dyn"); m.dynamic(elf.DT_RELA) != section.Addr {
		t.Errorf("the loader's table begins at %#x, its section at %#x", m.dynamic(elf.DT_RELA),
			section.Addr)
	}
	for _, r := range table[count:] {
		if elf.R_X86_64(r.Info) == elf.R_X86_64_RELATIVE {
			t.Errorf("the relocation at %#x is relative and not among the first", r.Off)
		}
	}
	goOwned := m.goRanges()
	for _, r := range table[:count] {
		if goOwned.contains(r.Off) && m.when(r.Off) != atLoad {
			t.Errorf("the relocation at %#x, in %q, is Go's and is left", r.Off, m.owner(r.Off))
		}
	}
}

// TestDeferred: every deferred relocation is a relative one of Go's own data.
func TestDeferred(t *testing.T) {
	m := edited(t)
	list, _, _, _ := deferred(t, m)
	goOwned := m.goRanges()
	bad := 0
	for _, r := range list {
		if elf.R_X86_64(r.Info) != elf.R_X86_64_RELATIVE || !goOwned.contains(r.Off) {
			t.Errorf("the deferred relocation %+v is not relative, or not in Go's data", r)
			bad++
		}
		if m.when(r.Off) == atLoad {
			t.Errorf("the deferred relocation at %#x is in %s", r.Off, m.owner(r.Off))
			bad++
		}
		if bad > 10 {
			t.FailNow()
		}
	}
}

// TestConstructor: ta_go_init stands in .init_array, Go's constructor does not.
func TestConstructor(t *testing.T) {
	m := edited(t)
	_, _, _, start := deferred(t, m)
	if want, err := m.symbol("_rt0_amd64_linux_lib"); err != nil || start != want {
		t.Errorf("ta_deferred names %#x as Go's constructor, not %#x (%v)", start, want, err)
	}
	hook, err := m.symbol("ta_go_init")
	if err != nil {
		t.Fatal(err)
	}
	table, count, err := m.relocations()
	if err != nil {
		t.Fatal(err)
	}
	hooks := 0
	for _, r := range table[:count] {
		switch {
		case uint64(r.Addend) == hook && m.inSection(".init_array", r.Off):
			hooks++
		case uint64(r.Addend) == start && m.inSection(".init_array", r.Off):
			t.Error("Go's constructor is still called")
		}
	}
	if hooks != 1 {
		t.Errorf("ta_go_init stands %d times in .init_array", hooks)
	}
}

// TestNoFrames: the dynamic section has lost some entries, and ends as before.
func TestNoFrames(t *testing.T) {
	m := edited(t)
	for _, tag := range []elf.DynTag{elf.DT_INIT, elf.DT_FINI, elf.DT_FINI_ARRAY,
		elf.DT_FINI_ARRAYSZ} {
		if at := m.dynamic(tag); at != 0 {
			t.Errorf("the loader calls %v at %#x", tag, at)
		}
	}
	for _, tag := range []elf.DynTag{elf.DT_INIT_ARRAY, elf.DT_VERNEED, elf.DT_VERSYM} {
		if m.dynamic(tag) == 0 {
			t.Errorf("%v is lost", tag)
		}
	}
	if d := m.dynamicAt(elf.DT_NULL); len(d) < dynSize || len(bytes.Trim(d, "\x00")) != 0 {
		t.Errorf("the dynamic section ends in % x", d)
	}
}

// TestSpans: a span ends before its end.
func TestSpans(t *testing.T) {
	s := spans{{10, 20}, {30, 31}}
	for a, want := range map[uint64]bool{9: false, 10: true, 19: true, 20: false, 29: false,
		30: true, 31: false} {
		if s.contains(a) != want {
			t.Errorf("contains(%d) is %v", a, !want)
		}
	}
	if spans(nil).contains(0) {
		t.Error("no spans contain 0")
	}
}

// TestWhen: a symbol of size 0 marks a place and covers nothing.
func TestWhen(t *testing.T) {
	m := &image{syms: []elf.Symbol{
		{Name: "runtime.x", Value: 100, Size: 10},
		{Name: "tieralloc/alloc.pool", Value: 110, Size: 20},
		{Name: "runtime.mark", Value: 115},
		{Name: "main.y", Value: 140, Size: 8},
		{Name: "tieralloc/stats.names", Value: 148, Size: 8},
		{Name: "tieralloc/stats/logger.names", Value: 156, Size: 8},
		{Name: "runtime.edata", Value: 164},
	}}
	for addr, want := range map[uint64]int{99: forGo, 100: forGo, 109: forGo, 110: atLoad,
		115: atLoad, 129: atLoad, 130: forGo,
		139: forGo, 140: atLoad, 147: atLoad, 148: forTables, 155: forTables, 156: forGo,
		164: forGo} {
		if got := m.when(addr); got != want {
			t.Errorf("when(%d) is %d, not %d", addr, got, want)
		}
	}
}

func TestNotALibrary(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("no library at all"),
		"header": []byte("\x7fELF\x02\x01\x01")} {
		if _, err := deferGo(data); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if _, err := deferGo(program); err == nil {
		t.Error("a Go program was accepted")
	}
}

// TestSystemCalls: the data plane's system calls are the library's own.
func TestSystemCalls(t *testing.T) {
	m := edited(t)
	if err := m.ownSystemCalls(); err == nil {
		t.Error("package syscall still called the runtime's")
	}
}

// TestCopies: a copy is its function but for distances, and leads to the same places or the copies
// of them. Nothing but copies and C calls copies, and C calls no function that has one.
func TestCopies(t *testing.T) {
	m := edited(t)
	code, err := m.disassemble()
	if err != nil {
		t.Fatal(err)
	}
	of := func(s elf.Symbol) []instruction {
		from, _ := slices.BinarySearchFunc(code, s.Value, byAddress)
		to, _ := slices.BinarySearchFunc(code, s.Value+s.Size, byAddress)
		return code[from:to]
	}
	bytesAt := func(from, to uint64) []byte {
		at, err := m.fileOffset(from)
		if err != nil {
			t.Fatal(err)
		}
		return m.data[at : at+to-from]
	}
	named, copyOf := map[string]elf.Symbol{}, map[uint64]uint64{}
	for _, s := range m.syms {
		named[s.Name] = s
	}
	missing := map[string]bool{}
	for _, name := range hotList() {
		missing[name] = true
	}
	for name, s := range named {
		if original, ok := strings.CutSuffix(name, copySuffix); ok {
			copyOf[named[original].Value] = s.Value
			delete(missing, exportHash.ReplaceAllString(original, "_cgoexp_"))
		}
	}
	for name := range missing {
		t.Errorf("%s, of hot.txt, has no copy: there is no such function any more, or no room",
			name)
	}
	for name, s := range named {
		original, ok := strings.CutSuffix(name, copySuffix)
		if !ok {
			continue
		}
		a, b := of(named[original]), of(s)
		if s.Size != named[original].Size || len(a) != len(b) || s.Value%copyAlign != 0 {
			t.Errorf("%s has %d bytes, %d instructions; its copy, at %#x, %d and %d", original,
				named[original].Size, len(a), s.Value, s.Size, len(b))
			continue
		}
		for i, in := range a {
			end, endOfCopy := in.addr-named[original].Value, b[i].addr-s.Value
			if i+1 < len(a) {
				end, endOfCopy = in.end-named[original].Value, b[i].end-s.Value
			}
			want := in.target
			if inside := want >= named[original].Value && want < named[original].Value+s.Size &&
				!in.data; inside {
				want += s.Value - named[original].Value
			} else if c := copyOf[want]; c != 0 {
				want = c
			}
			if end != endOfCopy || b[i].target != want || b[i].data != in.data {
				t.Errorf("%s at %#x leads to %#x, its copy at %#x to %#x", original, in.addr,
					in.target, b[i].addr, b[i].target)
			} else if in.target == 0 && i+1 < len(a) &&
				!bytes.Equal(bytesAt(in.addr, in.end), bytesAt(b[i].addr, b[i].end)) {
				t.Errorf("%s at %#x differs from its copy at %#x", original, in.addr, b[i].addr)
			}
		}
	}
	text, area := m.file.Section(".text"), m.file.Section(copiesSection)
	fromC := 0
	for _, in := range code {
		inGo := in.addr >= text.Addr && in.addr < text.Addr+text.Size
		inCopy := in.addr >= area.Addr && in.addr < area.Addr+area.Size
		toCopy := in.target >= area.Addr && in.target < area.Addr+area.Size
		switch {
		case inGo && toCopy:
			t.Errorf("%s at %#x leads to a copy", m.owner(in.addr), in.addr)
		case !inGo && !inCopy && copyOf[in.target] != 0:
			t.Errorf("%s at %#x leads to a function that has a copy", m.owner(in.addr), in.addr)
		case !inGo && !inCopy && toCopy:
			fromC++
		}
	}
	if fromC < 8 {
		t.Errorf("C leads to %d copies", fromC)
	}
}

// TestSymbols: the tables that were written anew are whole: sections, names, and locals in front.
func TestSymbols(t *testing.T) {
	m := edited(t)
	s := m.file.Section(".symtab")
	all, err := m.file.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for i, sym := range all {
		if local := elf.ST_BIND(sym.Info) == elf.STB_LOCAL; local != (uint32(i+1) < s.Info) {
			t.Fatalf("symbol %d, %s: local is %v, and %d come first", i+1, sym.Name, local, s.Info)
		}
		if strings.HasSuffix(sym.Name, copySuffix) &&
			m.file.Sections[sym.Section].Name != copiesSection {
			t.Errorf("%s is in %s", sym.Name, m.file.Sections[sym.Section].Name)
		}
	}
}
