package main

import (
	"encoding/binary"
	"fmt"
)

// ownSystemCalls has syscall.RawSyscall6, by which the data plane makes its system calls, call ta_syscall6.
func (m *image) ownSystemCalls() error {
	const (
		caller  = "syscall.RawSyscall6"
		call    = 0xe8 // with the distance from its end to the callee in 4 bytes
		length  = 5
		longest = 64 // bytes of the caller
	)
	found, err := m.symbols(caller, "internal/runtime/syscall/linux.Syscall6", "ta_syscall6")
	if err != nil {
		return err
	}
	from, theirs, ours := found[0], found[1], found[2]
	at, err := m.fileOffset(from)
	if err != nil {
		return err
	}
	for i := uint64(0); i < longest; i++ {
		text, end := m.data[at+i:], from+i+length
		if text[0] == call && binary.LittleEndian.Uint32(text[1:]) == uint32(theirs-end) {
			binary.LittleEndian.PutUint32(text[1:], uint32(ours-end))
			return nil
		}
	}
	return fmt.Errorf("%s does not call the runtime's system call", caller)
}
