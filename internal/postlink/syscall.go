package main

import (
	"encoding/binary"
	"fmt"
)

// ownSystemCalls redirects all calls of syscall.RawSyscall6, by which the data plane makes its
// system calls, to ta_syscall6, which has the same arguments and results in the same registers. It
// also redirects the call in RawSyscall6 itself.
func (m *image) ownSystemCalls() error {
	const longest = 64 // bytes of syscall.RawSyscall6
	found, err := m.symbols("syscall.RawSyscall6", "internal/runtime/syscall/linux.Syscall6",
		"ta_syscall6")
	if err != nil {
		return err
	}
	from, theirs, ours := found[0], found[1], found[2]
	calls := 0
	if err := m.eachCall(func(at, callee uint64) uint64 {
		within := at-from < longest
		if !within && callee != from || within && callee != theirs {
			return callee
		}
		calls++
		return ours
	}); err != nil {
		return err
	}
	if calls < 2 {
		return fmt.Errorf("%d calls of syscall.RawSyscall6 and in it", calls)
	}
	return nil
}

// eachCall redirects each call in Go's code to what target returns for its address and its callee.
// It also sees bytes that only look like a call, whose callee is at random.
func (m *image) eachCall(target func(at, callee uint64) uint64) error {
	const (
		call   = 0xe8 // with the distance from its end to the callee in 4 bytes
		length = 5
	)
	text := m.file.Section(".text")
	if text == nil {
		return fmt.Errorf("no .text")
	}
	code := m.data[text.Offset : text.Offset+text.Size]
	for i := range len(code) - length {
		if code[i] != call {
			continue
		}
		at := text.Addr + uint64(i)
		distance := code[i+1 : i+length]
		callee := at + length + uint64(int64(int32(binary.LittleEndian.Uint32(distance))))
		if to := target(at, callee); to != callee {
			binary.LittleEndian.PutUint32(distance, uint32(to-at-length))
		}
	}
	return nil
}
