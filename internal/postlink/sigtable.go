package main

import (
	"encoding/binary"
	"fmt"
)

// blockSignals clears _SigUnblock in runtime.sigtable for every signal that has it, except 32 and
// 33: glibc sends these to each thread, and setuid would wait for ever. (The runtime unblocks
// SIGURG unless asyncpreemptoff is set: see build.sh.)
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
	for _, sig := range unblocked {
		flags := m.data[at+sig*entry:]
		old := binary.LittleEndian.Uint32(flags)
		if old&sigUnblock == 0 {
			return fmt.Errorf("signal %d: flags %#x of runtime.sigtable are not as expected", sig,
				old)
		}
		binary.LittleEndian.PutUint32(flags, old&^sigUnblock)
	}
	return nil
}

// unblocked lists SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSTKFLT, SIGCHLD, SIGPROF and the
// first real-time signal.
var unblocked = []uint64{4, 5, 7, 8, 11, 16, 17, 27, 34}
