package main

import (
	"encoding/binary"
	"fmt"
)

// fatal lists the functions by which the Go runtime ends the process after an internal error.
var fatal = []string{"runtime.throw", "runtime.fatal", "runtime.fatalpanic"}

// surviveRuntime makes them begin with a jump to ta_runtime_fatal, which lets the host continue.
func (m *image) surviveRuntime() error {
	const (
		jump   = 0xe9 // with the distance from its end in 4 bytes
		length = 5
	)
	found, err := m.symbols(append([]string{"ta_runtime_fatal"}, fatal...)...)
	if err != nil {
		return err
	}
	for i, from := range found[1:] {
		at, err := m.fileOffset(from)
		if err != nil {
			return err
		}
		if m.data[at] == jump {
			return fmt.Errorf("%s begins with a jump: was it edited before?", fatal[i])
		}
		m.data[at] = jump
		binary.LittleEndian.PutUint32(m.data[at+1:], uint32(found[0])-uint32(from+length))
	}
	return nil
}
