package main

import (
	"encoding/binary"
	"fmt"
)

// blockSignals clears _SigUnblock in runtime.sigtable for the asynchronous signals
// that have it. Those that glibc sends to each thread itself, 32 and 33, must stay
// unblocked, or setuid would wait for ever.
//
// An entry of the table is struct{ flags int32; name string }.
func (m *image) blockSignals() error {
	const (
		entry      = 24
		sigUnblock = 128
	)
	table, err := m.symbol("runtime.sigtable")
	if err != nil {
		return err
	}
	at, err := m.fileOffset(table)
	if err != nil {
		return err
	}
	for _, sig := range []uint64{27, 34} { // SIGPROF, SIGRTMIN
		flags := m.data[at+sig*entry:]
		old := binary.LittleEndian.Uint32(flags)
		if old&sigUnblock == 0 {
			return fmt.Errorf("signal %d: flags %#x of runtime.sigtable are not as expected", sig, old)
		}
		binary.LittleEndian.PutUint32(flags, old&^sigUnblock)
	}
	return nil
}
