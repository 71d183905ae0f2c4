package main

import (
	"encoding/binary"
	"fmt"
)

// ownSystemCalls redirects all calls of syscall.RawSyscall6, by which the data plane makes its
// system calls, to ta_syscall6, which has the same arguments and results in the same registers. It
// also redirects the call in RawSyscall6 itself.
func (m *image) ownSystemCalls() error {
	const (
		call    = 0xe8 // with the distance from its end to the callee in 4 bytes
		length  = 5
		longest = 64 // bytes of syscall.RawSyscall6
	)
	found, err := m.symbols("syscall.RawSyscall6", "internal/runtime/syscall/linux.Syscall6",
		"ta_syscall6")
	if err != nil {
		return err
	}
	from, theirs, ours := found[0], found[1], found[2]
	at, err := m.fileOffset(from)
	if err != nil {
		return err
	}
	text := m.file.Section(".text")
	if text == nil {
		return fmt.Errorf("no .text")
	}
	code := m.data[text.Offset : text.Offset+text.Size]
	calls := 0
	for i := range len(code) - length {
		if code[i] != call {
			continue
		}
		end := text.Addr + uint64(i) + length
		callee, within := uint32(from), text.Offset+uint64(i)-at
		if within < longest {
			callee = uint32(theirs)
		}
		if binary.LittleEndian.Uint32(code[i+1:]) == callee-uint32(end) {
			binary.LittleEndian.PutUint32(code[i+1:], uint32(ours)-uint32(end))
			calls++
		}
	}
	if calls < 2 {
		return fmt.Errorf("%d calls of syscall.RawSyscall6 and in it", calls)
	}
	return nil
}
