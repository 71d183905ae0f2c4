package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

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
