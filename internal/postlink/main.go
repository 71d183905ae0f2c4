// Command postlink makes a dormant Go runtime cost nothing at load time.
//
//	postlink build/libtieralloc.so
//
// A shared library with Go in it has thousands of relocations for the runtime's own data, and a
// constructor that reads every signal's disposition. The dynamic loader performs both in every
// process, although most never start the runtime. This command edits the linked library in place:
//
//   - The relative relocations of Go's data, except those of the data plane, move to the end
//     of the table, and the dynamic section's DT_RELASZ and DT_RELACOUNT leave them out. The
//     loader then reads only relocations near the symbols, which it reads as well. Before the
//     moved ones are those of the data plane's tables of words, which ta_tables makes on demand.
//   - So do the relocations for functions of libc that only the runtime calls (named.go).
//   - The entry of Go's constructor in .init_array becomes ta_go_init. If the runtime is wanted, it
//     applies the relocations and calls the constructor.
//   - ta_deferred, which both read, is filled in.
//   - The loader does not call _init and _fini. They do nothing, and are far from all other code
//     that every process runs, so that a call would make 64 KiB resident.
//   - The file's part of the data ends where only zeros follow (zeros.go).
//   - System calls are those of ta_syscall6 instead of the runtime's and package syscall's, for the
//     same reason.
//   - The probes of tracers take the place of Go functions (probes.go).
//   - The Go functions that most processes run are copied to one place, which is resident anyway
//     (hot.go).
//   - The runtime's fatal errors end the control plane and not the process (fatal.go).
//   - Signals lose the flag by which the runtime unblocks them in its threads. Otherwise a signal
//     that the host waits for with sigwait could go to a Go thread, or end the process.
//   - The runtime leaves the limit on descriptors alone (descriptors.go).
//
// A library that was not edited works too, but raises the limit on descriptors when the runtime
// starts; ta_deferred is then zero.
package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: postlink LIBRARY")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "postlink: %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func run(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if data, err = deferGo(data); err != nil {
		return err
	}
	return writeInPieces(path, data)
}

const relaSize = 24

// image is a shared library being edited.
type image struct {
	data []byte
	file *elf.File
	syms []elf.Symbol // with an address, by address
}

// deferGo edits the library in data and returns it.
func deferGo(data []byte) ([]byte, error) {
	m, err := load(data)
	if err != nil {
		return nil, err
	}
	if err := m.rewrite(); err != nil {
		return nil, err
	}
	return m.copyHot()
}

func load(data []byte) (*image, error) {
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	if f.Machine != elf.EM_X86_64 || f.Type != elf.ET_DYN {
		return nil, errors.New("not an amd64 shared library")
	}
	m := &image{data: data, file: f}
	if m.syms, err = f.Symbols(); err != nil {
		return nil, err
	}
	m.syms = slices.DeleteFunc(m.syms, func(s elf.Symbol) bool {
		return s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) == elf.STT_TLS
	})
	sort.SliceStable(m.syms, func(i, j int) bool { return m.syms[i].Value < m.syms[j].Value })
	return m, nil
}

func (m *image) rewrite() error {
	found, err := m.symbols("ta_deferred", "ta_go_init", "_rt0_amd64_linux_lib")
	if err != nil {
		return err
	}
	state, hook, start := found[0], found[1], found[2]
	table, count, err := m.relocations()
	if err != nil {
		return err
	}
	goOwned := m.goRanges()
	var group [3][]elf.Rela64
	for _, r := range table[:count] {
		when := atLoad
		if goOwned.contains(r.Off) {
			when = m.when(r.Off)
		}
		if when == forTables && m.protected(r.Off) {
			return fmt.Errorf("%s is read-only when ta_tables writes to it", m.owner(r.Off))
		}
		group[when] = append(group[when], r)
	}
	others, named, err := m.named(table[count:])
	if err != nil {
		return err
	}
	now, n := group[atLoad], uint64(len(group[forGo]))
	later := deferral{own: uint64(len(group[forTables])), count: n, named: uint64(len(named)),
		start: start}
	table = slices.Concat(now, others, group[forTables], group[forGo], named)
	hooked := false
	for i := range now {
		if uint64(table[i].Addend) == start && m.inSection(".init_array", table[i].Off) {
			table[i].Addend = int64(hook)
			hooked = true
		}
	}
	if n == 0 || !hooked {
		return fmt.Errorf("%d relocations to defer, constructor found: %v: was it edited before?",
			n, hooked)
	}
	if err := m.blockSignals(); err != nil {
		return err
	}
	if err := m.ownSystemCalls(); err != nil {
		return err
	}
	if err := m.connectProbes(); err != nil {
		return err
	}
	if err := m.keepDescriptors(); err != nil {
		return err
	}
	if err := m.surviveRuntime(); err != nil {
		return err
	}
	m.dropFrames()
	if err := m.trimZeros(); err != nil {
		return err
	}
	return m.store(table, later, state)
}

// dropFrames removes DT_INIT and DT_FINI from the dynamic section if .init and .fini are only the
// frames of crti.o and crtn.o. (The frame of .init calls the start of the profiler, and the
// program's own .init does that, too.) And it removes DT_FINI_ARRAY if it has the function of
// crtbeginS.o alone, which is for libraries that are unloaded.
func (m *image) dropFrames() {
	_, err := m.symbol("__do_global_dtors_aux")
	if s := m.file.Section(".fini_array"); err == nil && s != nil && s.Size == 8 {
		m.removeDynamic(elf.DT_FINI_ARRAY)
		m.removeDynamic(elf.DT_FINI_ARRAYSZ)
	}
	for _, f := range []struct {
		section string
		frame   uint64
		tag     elf.DynTag
	}{{".init", 27, elf.DT_INIT}, {".fini", 13, elf.DT_FINI}} {
		if s := m.file.Section(f.section); s != nil && s.Size <= f.frame {
			m.removeDynamic(f.tag)
		}
	}
}

// relocations reads .rela.dyn and the number of its leading relative entries.
func (m *image) relocations() (table []elf.Rela64, count int, err error) {
	addr, size := m.dynamic(elf.DT_RELA), m.dynamic(elf.DT_RELASZ)
	count = int(m.dynamic(elf.DT_RELACOUNT))
	off, err := m.fileOffset(addr)
	if err != nil {
		return nil, 0, err
	}
	table = make([]elf.Rela64, size/relaSize)
	if err := binary.Read(bytes.NewReader(m.data[off:off+size]), binary.LittleEndian,
		table); err != nil {
		return nil, 0, err
	}
	for i := range table[:count] {
		if elf.R_X86_64(table[i].Info) != elf.R_X86_64_RELATIVE {
			return nil, 0, fmt.Errorf("relocation %d of the leading %d is not relative", i, count)
		}
	}
	return table, count, nil
}

// deferral is what ta_deferred holds besides the table's address: the numbers of relocations for
// the tables of words, of others of Go's data, and of those for functions of libc, and Go's
// constructor.
type deferral struct{ own, count, named, start uint64 }

// store writes the table, the shortened dynamic section and ta_deferred, which is at state.
func (m *image) store(table []elf.Rela64, d deferral, state uint64) error {
	addr, size, count := m.dynamic(elf.DT_RELA), m.dynamic(elf.DT_RELASZ),
		m.dynamic(elf.DT_RELACOUNT)
	off, err := m.fileOffset(addr)
	if err != nil {
		return err
	}
	if _, err := binary.Encode(m.data[off:off+size], binary.LittleEndian, table); err != nil {
		return err
	}
	left := size - (d.own+d.count+d.named)*relaSize
	m.setDynamic(elf.DT_RELASZ, left)
	m.setDynamic(elf.DT_RELACOUNT, count-d.own-d.count)
	at, err := m.fileOffset(state)
	if err != nil {
		return err
	}
	_, err = binary.Encode(m.data[at:], binary.LittleEndian, [5]uint64{addr + left, d.own, d.count,
		d.named, d.start})
	return err
}

// writeInPieces writes a file one memory page at a time. The kernel keeps data that is written at
// once in large units, and maps a whole unit if a part is touched: each process would have up to
// 1.3 MiB of the library resident that it does not use. (With pieces of 64 KiB it was two pieces
// instead of one window.)
func writeInPieces(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o755)
	if err != nil {
		return err
	}
	for piece := range slices.Chunk(data, 4<<10) {
		if _, err := f.Write(piece); err != nil {
			f.Close()
			return err
		}
	}
	return f.Close()
}
