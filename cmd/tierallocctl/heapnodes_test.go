package main

import (
	"encoding/binary"
	"testing"

	"tieralloc/alloc"
)

// hostileMemory answers each read with pointers to ever new descriptors.
type hostileMemory struct{ reads, next uint64 }

func (m *hostileMemory) ReadAt(p []byte, _ int64) (int, error) {
	m.reads++
	for at := 0; at+8 <= len(p); at += 8 {
		m.next += uint64(alloc.DescriptorSize)
		binary.LittleEndian.PutUint64(p[at:], m.next)
	}
	return len(p), nil
}

// A process whose page map leads from span to span without end is given up.
func TestHostilePageMap(t *testing.T) {
	const mapped, resident = 16 << 40, 1 << 20
	memory := &hostileMemory{}
	h := newHeapReader(memory, []mapping{{start: 1 << 32, end: 1<<32 + mapped,
		perNode: map[int]uint64{0: resident}}})
	for i := range alloc.RootEntries {
		binary.LittleEndian.PutUint64(h.root[i*8:], 1<<33)
	}
	if err := h.read(); err == nil {
		t.Fatal("it was not refused")
	}
	if limit := uint64(spareSteps + resident); memory.reads > limit {
		t.Errorf("%d reads, more than %d", memory.reads, limit)
	}
}
