package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
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

// deferred are the relocations that ta_deferred tells of, and Go's constructor.
func deferred(t *testing.T, m *image) (list []elf.Rela64, table, start uint64) {
	t.Helper()
	at, err := m.symbol("ta_deferred")
	if err != nil {
		t.Fatal(err)
	}
	off, err := m.fileOffset(at)
	if err != nil {
		t.Fatal(err)
	}
	var state [4]uint64
	if err := binary.Read(bytes.NewReader(m.data[off:]), binary.LittleEndian, &state); err != nil {
		t.Fatal(err)
	}
	if off, err = m.fileOffset(state[0]); err != nil {
		t.Fatal(err)
	}
	list = make([]elf.Rela64, state[1]+state[2])
	if err := binary.Read(bytes.NewReader(m.data[off:]), binary.LittleEndian, list); err != nil {
		t.Fatal(err)
	}
	for i, r := range list {
		if table := i < int(state[1]); table != (m.when(r.Off) == forTables) {
			t.Errorf("relocation %d, at %#x, is among those of tables: %v", i, r.Off, table)
		}
	}
	return list, state[0], state[3]
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
	list, at, _ := deferred(t, m)
	if count >= 900 || len(list) < 4*count {
		t.Errorf("%d relocations left, %d deferred", count, len(list))
	}
	if end := m.dynamic(elf.DT_RELA) + uint64(len(table))*relaSize; at != end {
		t.Errorf("the loader's table ends at %#x, the deferred one begins at %#x", end, at)
	}
	if section := m.file.Section(".rela.dyn"); m.dynamic(elf.DT_RELA) != section.Addr {
		t.Errorf("the loader's table begins at %#x, its section at %#x", m.dynamic(elf.DT_RELA), section.Addr)
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
	list, _, _ := deferred(t, m)
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
	_, _, start := deferred(t, m)
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

// TestNoFrames: the dynamic section has lost two entries, and ends as before.
func TestNoFrames(t *testing.T) {
	m := edited(t)
	for _, tag := range []elf.DynTag{elf.DT_INIT, elf.DT_FINI} {
		if at := m.dynamic(tag); at != 0 {
			t.Errorf("the loader calls %v at %#x", tag, at)
		}
	}
	for _, tag := range []elf.DynTag{elf.DT_INIT_ARRAY, elf.DT_FINI_ARRAY, elf.DT_VERNEED, elf.DT_VERSYM} {
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
	for a, want := range map[uint64]bool{9: false, 10: true, 19: true, 20: false, 29: false, 30: true, 31: false} {
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
	for addr, want := range map[uint64]int{99: forGo, 100: forGo, 109: forGo, 110: atLoad, 115: atLoad, 129: atLoad, 130: forGo,
		139: forGo, 140: atLoad, 147: atLoad, 148: forTables, 155: forTables, 156: forGo, 164: forGo} {
		if got := m.when(addr); got != want {
			t.Errorf("when(%d) is %d, not %d", addr, got, want)
		}
	}
}

func TestNotALibrary(t *testing.T) {
	for name, data := range map[string][]byte{"empty": nil, "text": []byte("no library at all"), "header": []byte("\x7fELF\x02\x01\x01")} {
		if deferGo(data) == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if deferGo(program) == nil {
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
