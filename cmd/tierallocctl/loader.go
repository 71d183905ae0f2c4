package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// loaderSymbols returns two addresses in a loader that was started as a program, with another
// program as its argument: the function that it calls after mapping that program, and its r_debug.
// entry is the process's entry point. Both are 0 if the program at path is not a loader.
func loaderSymbols(path string, entry uint64) (state, debug uint64) {
	file, err := elf.Open(path)
	if err != nil {
		return 0, 0
	}
	defer file.Close()
	if !isLoader(file) {
		return 0, 0
	}
	symbols, _ := file.DynamicSymbols()
	for _, s := range symbols {
		switch s.Name {
		case "_dl_debug_state":
			state = entry - file.Entry + s.Value
		case "_r_debug":
			debug = entry - file.Entry + s.Value
		}
	}
	return state, debug
}

// armLoaded moves the breakpoint to the entry of the program that the loader has mapped. Until a
// program is mapped, the breakpoint alternates between the loader's function and its return
// address.
func (i *image) armLoaded() bool {
	state, _ := loaderSymbols(i.exe, i.aux[atEntry])
	if i.stop != state {
		return i.breakAt(state)
	}
	entry, err := i.findLoaded()
	if err == nil && entry == 0 {
		entry, err = i.returnAddress()
	}
	if err != nil {
		i.unknown = unseen(err)
		return false
	}
	return i.breakAt(entry)
}

// returnAddress returns the return address of the function that the process is about to enter.
func (i *image) returnAddress() (uint64, error) {
	var r unix.PtraceRegs
	if err := unix.PtraceGetRegs(i.pid, &r); err != nil {
		return 0, err
	}
	var at [8]byte
	_, err := unix.PtracePeekData(i.pid, uintptr(r.Rsp), at[:])
	return binary.LittleEndian.Uint64(at[:]), err
}

// findLoaded sets the image's path to the program that the loader has mapped. That program is the
// first in the loader's list, where it has no name; its file is that of the mapping with its
// dynamic section. entry is 0 if none is mapped yet.
func (i *image) findLoaded() (entry uint64, err error) {
	memory, err := i.memory()
	if err != nil {
		return 0, err
	}
	defer memory.Close()
	first := memory.firstObject(i.debug)
	if first == 0 {
		return 0, memory.err
	}
	var program linkMap
	memory.read(first, &program)
	if memory.err != nil {
		return 0, memory.err
	}
	maps, err := mapsOf(i.pid)
	if err != nil {
		return 0, err
	}
	m := containing(maps, program.Dynamic)
	if m == nil || m.path == "" {
		return 0, fmt.Errorf("no file is mapped at %#x", program.Dynamic)
	}
	i.path, i.exe = m.path, i.file(m.path)
	file, err := elf.Open(i.exe)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return program.Addr + file.Entry, nil
}

// processMemory is the memory of another process. After an error it reads nothing more.
type processMemory struct {
	*os.File
	err error
}

func (i *image) memory() (*processMemory, error) {
	file, err := os.Open(i.proc("mem"))
	return &processMemory{File: file}, err
}

// read fills in data from the bytes at an address, as binary.Read does.
func (m *processMemory) read(at uint64, data any) {
	if m.err == nil {
		from := io.NewSectionReader(m, int64(at), 1<<20)
		m.err = binary.Read(from, binary.LittleEndian, data)
	}
}

// linkMap is an object in the loader's list.
type linkMap struct{ Addr, Name, Dynamic, Next uint64 }

// firstObject returns the address of the first object in the list of an r_debug.
func (m *processMemory) firstObject(debug uint64) uint64 {
	var head struct{ Version, Map uint64 }
	m.read(debug, &head)
	return head.Map
}

// stringAt returns the C string at an address of a process.
func stringAt(memory io.ReaderAt, at uint64) (string, bool) {
	buffer := make([]byte, unix.PathMax)
	n, _ := memory.ReadAt(buffer, int64(at))
	name, _, ok := bytes.Cut(buffer[:n], []byte{0})
	return string(name), ok
}
